"""Bad input to the real command: one sentence, the exact fix, nothing booted, nothing written.

Each test takes one thing away from a host that has everything (its image boots nothing, so a test
that got further than it should fails as well). Commands run in this process, but for a first one of
all and where they need other rights: those are processes as a user starts them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from app import main
from tests.doubles.images import put_image
from tests.doubles.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

LAUNCHER = Path(__file__).resolve().parents[2] / "cloche.py"
PROGRAMS = ("qemu-system-x86_64", "qemu-img", "mksquashfs", "unsquashfs", "prlimit")
COMMAND_S = 60


class Host:
    """A user's folders and search path, with everything that a session needs."""

    def __init__(self, root: Path, run: Path) -> None:
        self.workspace = root / "project"
        self.workspace.mkdir()
        (self.workspace / "a.txt").write_text("a\n")
        self.root = root
        self.programs = root / "bin"
        self.programs.mkdir()
        for name in PROGRAMS:
            found = shutil.which(name)
            assert found, f"the tests need {name}"
            (self.programs / name).symlink_to(found)
        self.store = root / "data" / "cloche" / "store"
        put_image(self.store / "images")
        self.environment = {
            "PATH": str(self.programs),
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_DATA_HOME": str(root / "data"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "XDG_RUNTIME_DIR": str(run),
            "CLOCHE_ACCEL": "tcg",
            "LC_ALL": "C.UTF-8",
        }
        self.before: tuple[str, ...] | None = None
        """Words before the command, to run it with less; None to run it in this process."""

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._here(words) if self.before is None else self._process(self.before, words)

    def _here(self, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self.environment, clear=True),
            contextlib.chdir("/"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = main.run(words)
        return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())

    def _process(
        self, before: tuple[str, ...], words: tuple[str, ...]
    ) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-P", str(LAUNCHER), *words]
        return subprocess.run(
            command,
            env=self.environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def refused(self, status: int, *words: str) -> dict[str, Any]:
        """Run a session that must be refused, in every form of the command; return the error."""
        words = words or ("shell", "--workspace", str(self.workspace))
        for form in (("--detach",), ("--headless",), ()):
            done = self.call("run", *words, *form, "--json")
            assert (done.returncode, done.stderr) == (status, ""), done
            assert self.sessions() == []
        answer = json.loads(done.stdout)
        assert answer["ok"] is False
        error: dict[str, Any] = answer["error"]
        plain = self.call("run", *words, "--detach")
        assert (plain.returncode, plain.stdout) == (status, "")
        first, second = plain.stderr.splitlines()
        assert first.startswith(f"cloche: {error['message'][:30]}")
        assert second == f"  {error['hint']}"
        return error

    def sessions(self) -> list[Path]:
        folder = self.root / "state" / "cloche" / "sessions"
        return list(folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def run_folder() -> Iterator[Path]:
    # sockets have short addresses, and a test's own folder may lie deep
    with tempfile.TemporaryDirectory(prefix="cloche-") as folder:
        yield Path(folder)


@pytest.fixture
def host(tmp_path: Path, run_folder: Path) -> Host:
    return Host(tmp_path, run_folder)


def test_no_qemu(host: Host) -> None:
    host.before = ()
    (host.programs / "qemu-system-x86_64").unlink()
    error = host.refused(5)
    assert error["message"] == "This host lacks qemu-system-x86_64."
    assert error["hint"] == "Install: sudo apt-get install qemu-system-x86"
    assert not (host.root / "state").exists()


def test_a_qemu_that_is_too_old(host: Host) -> None:
    program = host.programs / "qemu-system-x86_64"
    program.unlink()
    program.write_text("#!/bin/sh\necho 'QEMU emulator version 5.2.0 (Debian 1:5.2+dfsg-11)'\n")
    program.chmod(0o755)
    error = host.refused(5)
    assert error["message"] == "QEMU 5.2 is too old: Cloche needs 7.2 or later."
    assert "sudo apt install qemu-system-x86" in error["hint"]
    assert not (host.root / "state").exists()


def test_no_squashfs_tools(host: Host) -> None:
    for name in ("mksquashfs", "unsquashfs"):
        (host.programs / name).unlink()
    error = host.refused(5)
    assert error["message"] == "This host lacks mksquashfs, unsquashfs."
    assert error["hint"] == "Install: sudo apt-get install squashfs-tools"
    assert not (host.root / "state").exists()


def test_no_image(host: Host) -> None:
    shutil.rmtree(host.store)
    error = host.refused(5)
    assert error["message"] == "The image base is not built."
    assert error["hint"] == "cloche image build base"
    assert not (host.root / "state").exists()


def test_a_damaged_image(host: Host) -> None:
    (kernel,) = host.store.glob("images/.built/*/vmlinux")
    kernel.write_text("half")
    error = host.refused(5)
    assert error["message"] == "The image base is damaged (vmlinux)."
    assert error["hint"] == "cloche image build base"


@pytest.fixture
def full_host(tmp_path: Path, run_folder: Path) -> Iterator[Host]:
    with small_disk(tmp_path / "state"):
        yield Host(tmp_path, run_folder)


def test_a_full_disk(full_host: Host) -> None:
    error = full_host.refused(5)
    assert error["message"].startswith("Only 32 MiB are free at ")
    assert "export XDG_STATE_HOME=DIR" in error["hint"]
    assert not (full_host.root / "state" / "cloche").exists()


def without_override(host: Host) -> None:
    """Run commands as processes, without root's right to read everything."""
    host.before = ()
    if os.geteuid() == 0:
        rights = "-dac_override,-dac_read_search"
        setpriv = shutil.which("setpriv")
        assert setpriv, "the tests need setpriv"
        host.before = (setpriv, "--bounding-set", rights, "--inh-caps", rights, "--")


def test_an_unreadable_file_in_the_workspace(host: Host) -> None:
    without_override(host)
    secret = host.workspace / "unreadable.txt"
    secret.write_text("x")
    secret.chmod(0)
    error = host.refused(1)
    assert error["code"] == "workspace-refused"
    assert "unreadable.txt" in error["message"]
    assert error["hint"].startswith("In the workspace, run: chmod u+r ./unreadable.txt")
    assert secret.stat().st_mode & 0o777 == 0


def test_an_unreadable_folder_as_workspace(host: Host) -> None:
    without_override(host)
    host.workspace.chmod(0)
    error = host.refused(1)
    assert error["hint"] == f"Run: chmod u+rx '{host.workspace}'"
    host.workspace.chmod(0o755)


@pytest.mark.parametrize("place", ["XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"])
def test_a_workspace_inside_our_own_folders(host: Host, place: str) -> None:
    folder = Path(host.environment[place]) / "cloche" / "deep"
    folder.mkdir(parents=True)
    error = host.refused(1, "shell", "--workspace", str(folder))
    assert f"{folder} lies inside Cloche's own folder" in error["message"]
    assert error["hint"] == "Give the project's folder: cloche run AGENT --workspace DIR"


def test_a_workspace_that_is_not_there(host: Host) -> None:
    error = host.refused(4, "shell", "--workspace", str(host.root / "no"))
    assert error["hint"] == f"Make it: mkdir -p '{host.root / 'no'}'"


def test_a_socket_path_over_the_limit(host: Host) -> None:
    host.environment["XDG_RUNTIME_DIR"] = f"/tmp/{'long/' * 20}"
    error = host.refused(5)
    assert "Linux allows 107" in error["message"]
    assert error["hint"].endswith("export XDG_RUNTIME_DIR=/run/user/$(id -u)")
    assert not (host.root / "state").exists()


def test_an_unknown_agent(host: Host) -> None:
    error = host.refused(4, "shel", "--workspace", str(host.workspace))
    assert error["message"] == "There is no agent called 'shel'."
    assert error["hint"] == "Did you mean: cloche run shell"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("agents:\n  a: [\n", "3:1", ""),
        ("agents:\n  mine:\n    comand: [sh]\n", "3:5", "comand"),
        ("defaults:\n  memory: lots\n", "2:3", "memory"),
    ],
)
def test_bad_yaml(host: Host, text: str, where: str, what: str) -> None:
    config = host.root / "config" / "cloche" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    error = host.refused(1)
    assert f"{config}:{where}:" in error["message"]
    assert what in error["message"]
    assert error["hint"]
    assert not (host.root / "state").exists()


def test_bad_yaml_of_the_project(host: Host) -> None:
    (host.workspace / ".cloche.yaml").write_text("# ours\nmemory: 999999\n")
    error = host.refused(1)
    assert f"{host.workspace / '.cloche.yaml'}:2:" in error["message"]


def test_an_unknown_session(host: Host) -> None:
    for words in (("stop",), ("rm",), ("changes",), ("merge",), ("resume",), ("logs",)):
        done = host.call(*words, "nothing", "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "not-found")
