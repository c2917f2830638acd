"""Bad input: one sentence and the exact fix, before anything boots or is written."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from app import main
from app.client import checks
from app.client.launch import take_lock
from app.paths import Paths
from app.records import Process, SessionRecord, StateRecord, write_record
from tests.doubles.images import any_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., "Said"]


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def error(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert value["ok"] is False
        error: dict[str, Any] = value["error"]
        return error


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*words: str) -> Said:
        status = main.run(words)
        captured = capsys.readouterr()
        return Said(status, captured.out, captured.err)

    return run


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has everything, so that each test can take one thing away."""
    monkeypatch.setattr(checks, "check_image", any_image)
    monkeypatch.setattr(checks, "check_programs", nothing)

    async def fine() -> None:
        return

    monkeypatch.setattr(checks, "check_qemu", fine)


def nothing(*_: object) -> None:
    """Find no fault."""


def written() -> list[Path]:
    paths = Paths.from_environment()
    return [folder for folder in (paths.state, paths.data) if folder.exists()]


@pytest.mark.usefixtures("host")
class TestRun:
    def test_an_unknown_agent_and_the_one_that_was_meant(self, cli: Cli, tmp_path: Path) -> None:
        said = cli("run", "shel", "--workspace", str(tmp_path), "--json")
        assert said.status == 4
        assert said.error["message"] == "There is no agent called 'shel'."
        assert said.error["hint"] == "Did you mean: cloche run shell"
        assert written() == []

    def test_a_missing_workspace(self, cli: Cli, tmp_path: Path) -> None:
        said = cli("run", "shell", "--workspace", str(tmp_path / "no"), "--json")
        assert (said.status, said.error["code"]) == (4, "not-found")
        assert said.error["hint"].startswith("Make it: mkdir -p")

    def test_a_file_as_workspace(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "f").write_text("")
        said = cli("run", "shell", "--workspace", str(tmp_path / "f"), "--json")
        assert (said.status, said.error["code"]) == (1, "workspace-refused")

    @pytest.mark.parametrize("place", ["state", "data"])
    def test_a_workspace_inside_our_own_folders(self, cli: Cli, place: str) -> None:
        folder: Path = getattr(Paths.from_environment(), place) / "deep"
        folder.mkdir(parents=True)
        said = cli("run", "shell", "--workspace", str(folder), "--json")
        assert (said.status, said.error["code"]) == (1, "workspace-refused")
        assert "inside Cloche's own folder" in said.error["message"]

    def test_bad_yaml_is_named_with_file_and_line(self, cli: Cli, tmp_path: Path) -> None:
        config = Paths.from_environment().config
        config.mkdir(parents=True)
        (config / "config.yaml").write_text("agents:\n  a: [\n")
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (1, "bad-config")
        assert "config.yaml:3:1:" in said.error["message"]
        assert written() == []

    def test_a_project_that_asks_for_more(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / ".cloche.yaml").write_text("memory: 999999\n")
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (1, "bad-config")

    def test_a_socket_path_over_the_limit(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp/" + "long/" * 20)
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (5, "host-lacks")
        assert "Linux allows 107" in said.error["message"]
        assert "XDG_RUNTIME_DIR" in said.error["hint"]

    def test_a_full_disk(self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)

        def full(_: object) -> object:
            return usage

        monkeypatch.setattr(shutil, "disk_usage", full)
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (5, "host-lacks")
        assert "Only 1 MiB are free" in said.error["message"]

    def test_a_name_that_is_taken_or_unprintable(self, cli: Cli, tmp_path: Path) -> None:
        make_session("0000000001", name="mine")
        for name in ("mine", "a\nb", "x" * 61):
            said = cli("run", "shell", "--workspace", str(tmp_path), "--name", name, "--json")
            assert (said.status, said.error["code"]) == (2, "usage")


class TestHost:
    def test_missing_programs_are_named_with_their_packages(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (5, "host-lacks")
        assert "qemu-system-x86_64" in said.error["message"]
        assert said.error["hint"] == (
            "Install: sudo apt-get install qemu-system-x86 qemu-utils squashfs-tools util-linux"
        )
        assert written() == []

    def test_an_old_qemu_is_named_with_the_upgrade(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checks, "check_image", any_image)
        monkeypatch.setattr(checks, "check_programs", nothing)
        program = tmp_path / "bin" / "qemu-system-x86_64"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho QEMU emulator version 5.2.0\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (5, "host-lacks")
        assert "QEMU 5.2 is too old" in said.error["message"]
        assert written() == []

    def test_a_missing_image_is_named_with_the_build_command(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checks, "check_programs", nothing)
        said = cli("run", "shell", "--workspace", str(tmp_path), "--json")
        assert (said.status, said.error["code"]) == (5, "image-missing")
        assert "cloche image build base" in said.error["hint"]
        assert written() == []


def make_session(session_id: str, name: str = "", state: StateRecord | None = None) -> Path:
    folder = Paths.from_environment().session(session_id)
    folder.mkdir(parents=True)
    from app.agents import shell

    record = SessionRecord(session_id, name or session_id, shell(), "/w", 0.0, "base", "key")
    write_record(folder / "session.json", record)
    write_record(folder / "state.json", state or StateRecord(state="stopped"))
    return folder


class TestSessions:
    def test_none_is_a_true_answer(self, cli: Cli) -> None:
        said = cli("ps", "--json")
        assert (said.status, json.loads(said.out)) == (0, {"ok": True, "sessions": []})

    @pytest.mark.parametrize(
        "command", ["stop", "rm", "changes", "diff", "merge", "logs", "resume"]
    )
    def test_an_unknown_one(self, cli: Cli, command: str) -> None:
        said = cli(command, "nothing", "--json")
        assert (said.status, said.error["code"]) == (4, "not-found")
        assert said.error["hint"] == "See them: cloche ps"

    def test_an_unknown_one_for_exec_leaves_the_statuses_to_the_guest(self, cli: Cli) -> None:
        said = cli("exec", "nothing", "--json", "--", "true")
        assert (said.status, said.error["code"]) == (125, "not-found")

    def test_exec_waits_for_a_start_and_starts_what_is_stopped(self, cli: Cli) -> None:
        lock = take_lock(make_session("aaaaaaaa01", state=StateRecord(state="starting")))
        assert lock is not None
        make_session("aaaaaaaa02")
        said = cli("exec", "aaaaaaaa01", "--json", "--", "true")
        assert said.error["code"] == "not-running"
        assert said.error["hint"] == "Wait until it runs, then do it again: cloche ps"
        os.close(lock)
        said = cli("exec", "aaaaaaaa02", "--json", "--", "true")
        assert said.error["hint"] == "Start it: cloche resume aaaaaaaa02"

    def test_a_prefix_that_means_two(self, cli: Cli) -> None:
        make_session("aaaaaaaa01")
        make_session("aaaaaaaa02")
        said = cli("logs", "aaaa", "--json")
        assert said.error["message"] == "'aaaa' means 2 sessions."
        assert "aaaaaaaa01, aaaaaaaa02" in said.error["hint"]
        assert cli("logs", "aaaaaaaa02", "--json").status == 0

    def test_a_name_means_its_session(self, cli: Cli) -> None:
        make_session("aaaaaaaa01", name="parser")
        assert json.loads(cli("logs", "parser", "--json").out)["session"] == "aaaaaaaa01"

    def test_a_dead_machine_is_lost_and_an_orphaned_start_failed(self, cli: Cli) -> None:
        gone = Process(1 << 22, 1)
        make_session("aaaaaaaa01", state=StateRecord(state="running", machine=gone))
        make_session("aaaaaaaa02", state=StateRecord(state="starting"))
        alive = Process(os.getpid(), _started(os.getpid()))
        make_session("aaaaaaaa03", state=StateRecord(state="running", machine=alive))
        sessions = json.loads(cli("ps", "--json").out)["sessions"]
        assert [one["state"] for one in sessions] == ["lost", "failed", "running"]
        assert [bool(one["message"]) for one in sessions] == [True, True, False]
        for one in sessions[:2]:
            assert one["hint"].startswith(f"Start it again: cloche resume {one['id']}")

    def test_a_start_whose_keeper_lives_is_starting(self, cli: Cli) -> None:
        folder = make_session("aaaaaaaa01", state=StateRecord(state="starting"))
        lock = take_lock(folder)
        assert lock is not None
        assert json.loads(cli("ps", "--json").out)["sessions"][0]["state"] == "starting"
        os.close(lock)

    def test_a_damaged_one_is_shown_and_can_be_removed(self, cli: Cli) -> None:
        folder = make_session("aaaaaaaa01")
        (folder / "session.json").write_bytes(b"{}")
        shown = json.loads(cli("ps", "--json").out)["sessions"][0]
        assert shown["state"] == "failed"
        assert "does not hold what it must" in shown["message"]
        assert cli("rm", "aaaaaaaa01", "--json").status == 0
        assert not folder.exists()

    def test_a_running_one_is_not_removed(self, cli: Cli) -> None:
        alive = Process(os.getpid(), _started(os.getpid()))
        make_session("aaaaaaaa01", state=StateRecord(state="running", machine=alive))
        said = cli("rm", "aaaaaaaa01", "--json")
        assert (said.status, said.error["code"]) == (1, "busy")
        assert "cloche stop aaaaaaaa01" in said.error["hint"]

    def test_whether_a_machine_runs_is_seen_and_what_all_share_is_said_once(self, cli: Cli) -> None:
        alive = Process(os.getpid(), _started(os.getpid()))
        ended = StateRecord(
            state="running",
            agent_state="done",
            exit_code=0,
            accelerator="tcg",
            machine=alive,
            notices=("Guests are slow.", "Two files are secret."),
        )
        stopped = msgspec.structs.replace(
            ended, state="stopped", machine=None, notices=("Guests are slow.",)
        )
        make_session("aaaaaaaa01", state=ended)
        make_session("aaaaaaaa02", state=stopped)
        heads, first, second, *told = cli("ps").out.splitlines()
        place = heads.index("MACHINE")
        assert [row[place:].split()[0] for row in (first, second)] == ["tcg", "-"]
        assert told == ["aaaaaaaa01: Two files are secret.", "2 sessions: Guests are slow."]

    def test_text_for_a_terminal_is_made_safe(self, cli: Cli) -> None:
        make_session("aaaaaaaa01", name="evil\x1b]52;c;aGk=\x07\u202e")
        out = cli("ps").out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "evil␛" in out


def _started(pid: int) -> int:
    from app.processes import start_time

    return start_time(pid)


class TestUsage:
    @pytest.mark.parametrize(
        "words",
        [
            ("nonsense",),
            ("run",),
            ("run", "a", "b"),
            ("ps", "--nope"),
            ("ps", "--", "x"),
            ("exec", "x"),
            ("image",),
            ("undo",),
        ],
    )
    def test_a_wrong_command_line_is_one_sentence_and_2(
        self, cli: Cli, words: tuple[str, ...]
    ) -> None:
        said = cli(*words)
        assert said.status == 2
        assert said.err.startswith("cloche: ")
        assert "Traceback" not in said.err

    def test_json_is_one_object_even_then(self, cli: Cli) -> None:
        assert cli("ps", "--json", "--nope").error["code"] == "usage"

    def test_help_and_version_end_well(self, capsys: pytest.CaptureFixture[str]) -> None:
        for words in (["--help"], ["run", "--help"], ["--version"]):
            with pytest.raises(SystemExit) as ended:
                main.run(words)
            assert ended.value.code == 0
            assert "cloche" in capsys.readouterr().out

    def test_the_workstation_needs_a_terminal(self, cli: Cli) -> None:
        assert cli().status == 2

    def test_a_fault_of_our_own_is_one_sentence(
        self, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("oops")

        monkeypatch.setattr("app.client.fleet.list_sessions", broken)
        said = cli("ps", "--json")
        assert (said.status, said.error["code"]) == (1, "internal")

    def test_agents_and_version_answer(self, cli: Cli) -> None:
        names = [one["name"] for one in json.loads(cli("agents", "list", "--json").out)["agents"]]
        assert {"demo", "shell", "claude-code"} <= set(names)
        assert "version" in json.loads(cli("version", "--json").out)
        assert json.loads(cli("image", "list", "--json").out)["images"] == []
