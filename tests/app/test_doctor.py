"""What `cloche doctor` finds is what Cloche itself would find, and always in one form."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.cli import doctor
from app.cli.output import Output
from app.doctor import look
from app.doctor.host import Acceleration, Fault, Jail, Space
from app.errors import EXIT_DONE, EXIT_HOST
from app.paths import Paths
from vm.image import tools
from vm.image.store import ImageSet
from vm.machine import accel, jail_check
from vm.machine.spec import BadSpec
from vm.machine.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = (
    *("python", "config", "qemu", "accelerator", "qemu-img", "mksquashfs", "unsquashfs", "prlimit"),
    *("mkfs.ext4", "mmdebstrap", "guest-init", "image", "disk-state", "disk-data", "reflink"),
    *("memory", "sockets", "userns", "jail", "panes", "clock"),
    *("colours", "size", "unicode", "keys", "clipboard"),
)
WHY = "/dev/kvm is there but no guest runs under it (QEMU crashed with signal 6)"


def _always(value: object) -> Callable[..., object]:
    def answer(*_: object) -> object:
        return value

    return answer


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Folders of a user who has nothing yet, on a host where all that is asked is well."""
    for name in ("STATE", "DATA", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("CLOCHE_ACCEL", raising=False)
    monkeypatch.setattr(look, "qemu", _always((7, 2, 22)))
    monkeypatch.setattr(look, "image", _always(("ab" * 32, "6.1.0")))
    monkeypatch.setattr(look, "acceleration", _always(Acceleration(works=False, why=WHY)))
    monkeypatch.setattr(look, "jail", _always(Jail()))
    monkeypatch.setattr(look, "sockets", _always(None))
    monkeypatch.setattr(look, "free_program", _always("/bin/it"))
    real = look.space

    def space(name: str, holds: str, variable: str, folder: Path) -> Space:
        return replace(real(name, holds, variable, folder), free=100 << 30)

    monkeypatch.setattr(look, "space", space)
    return Paths.from_environment()


def _said(capsys: pytest.CaptureFixture[str], *, as_json: bool = True) -> tuple[int, str]:
    status = doctor.doctor(argparse.Namespace(), Output(as_json=as_json))
    return status, capsys.readouterr().out


@pytest.mark.usefixtures("paths")
def test_json_has_one_stable_form(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = _said(capsys)
    answer = json.loads(text)
    assert status == EXIT_DONE
    assert set(answer) == {"ok", "status", "findings"}
    assert (answer["ok"], answer["status"]) == (True, "warn")
    assert tuple(one["id"] for one in answer["findings"]) == IDS
    for one in answer["findings"]:
        assert set(one) == {"id", "status", "message", "fix", "facts"}
        assert one["status"] in ("ok", "warn", "fail")
        assert bool(one["fix"]) == (one["status"] != "ok")


@pytest.mark.usefixtures("paths")
def test_a_kvm_that_is_there_and_does_not_work_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = _said(capsys)
    (found,) = [one for one in json.loads(text)["findings"] if one["id"] == "accelerator"]
    assert found["status"] == "warn"
    assert found["facts"]["accelerator"] == "tcg"
    assert found["facts"]["kvm_device"] is True
    assert found["facts"]["kvm_works"] is False
    assert WHY in found["message"]


@pytest.mark.usefixtures("paths")
def test_people_get_a_line_and_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = _said(capsys, as_json=False)
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("! Guests are emulated"))
    assert lines[place + 1].startswith("    Use a host on which KVM runs guests")
    assert len([line for line in lines if "The output goes to no terminal" in line]) == 1


@pytest.mark.usefixtures("paths")
def test_what_stops_every_session_is_the_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "image", _always(Fault("No image.", "Build one")))
    status, text = _said(capsys)
    assert (status, json.loads(text)["status"]) == (EXIT_HOST, "fail")


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("config.yaml", "defaults: {accel: magic}\n", "fail"),
        ("config.yaml", "defaults: [\n", "fail"),
        ("rules.yaml", "always: {denyy: [a.example]}\n", "fail"),
        ("rules.yaml", "always: {allow: [127.0.0.1]}\n", "fail"),
        ("images/go.yaml", "packages: 3\n", "warn"),
    ],
)
def test_a_configuration_that_no_command_would_take_is_found(
    paths: Paths, capsys: pytest.CaptureFixture[str], name: str, text: str, status: str
) -> None:
    place = paths.config / name
    place.parent.mkdir(parents=True)
    place.write_text(text)
    ended, said = _said(capsys)
    found = json.loads(said)["findings"][1]
    assert (found["id"], found["status"]) == ("config", status)
    assert ended == (EXIT_HOST if status == "fail" else EXIT_DONE)
    assert name in found["message"] + found["fix"]


def test_the_probe_is_asked_anew_and_the_configuration_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def verdict(*_: object, anew: bool, place: object) -> Verdict:
        asked.append(anew)
        return Verdict(False, WHY)

    image = ImageSet("base", tmp_path, tmp_path, tmp_path, tmp_path, "d", "6.1")
    monkeypatch.delenv("CLOCHE_ACCEL", raising=False)
    monkeypatch.setattr(accel, "kvm_verdict", verdict)
    monkeypatch.setattr("app.client.checks.check_image", _always(image))
    paths = Paths.from_environment()
    auto, forced = look.acceleration(paths, "auto"), look.acceleration(paths, "kvm")
    assert (auto.wish, auto.chosen_by, auto.why) == ("", "probe", WHY)
    assert (forced.wish, forced.chosen_by) == ("kvm", "config")
    assert asked == [True, True]


def test_room_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    seen = look.space("disk-state", "sessions", "XDG_STATE_HOME", tmp_path / "not" / "there")
    assert (seen.folder, seen.holds) == (str(tmp_path), "sessions")
    assert seen.free > 0
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_looked_into_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied", "/closed")

    monkeypatch.delenv("CLOCHE_ACCEL", raising=False)
    monkeypatch.setattr("app.client.checks.check_image", closed)
    monkeypatch.setattr("vm.image.guest.find_init", closed)
    paths = Paths.from_environment()
    for seen in (look.image(paths), look.guest_init(paths)):
        assert isinstance(seen, Fault)
        assert seen.message == "The system refused /closed: Permission denied."
        assert seen.hint == "Look at it: ls -ld '/closed'"
    assert look.acceleration(paths, "auto").untried is not None
    monkeypatch.setattr(Path, "exists", closed)
    assert look.space("x", "y", "Z", tmp_path).folder == "/"


def test_a_folder_that_is_not_ours_is_not_tried() -> None:
    assert look.space("x", "y", "Z", Path("/proc")).reflink is None


def test_what_bubblewrap_complains_of_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: no permission' >&2; exit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert look.namespaces().trial == "bwrap: no permission"
    program.write_text("not a program")
    assert "could not be run" in look.namespaces().trial


def test_the_wish_for_a_jail_is_the_variables_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail_check, "check", _always(jail_check.Verdict(None, "no", "do it")))
    monkeypatch.delenv("CLOCHE_JAIL", raising=False)
    assert look.jail("on") == Jail("on", "no", "do it")
    monkeypatch.setenv("CLOCHE_JAIL", "off")
    assert look.jail("on").wish == "off"
    monkeypatch.setenv("CLOCHE_JAIL", "of")
    with pytest.raises(BadSpec):
        look.jail("on")


@pytest.mark.usefixtures("paths")
def test_a_variable_that_is_no_word_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise BadSpec("CLOCHE_ACCEL is 'xen'.", "Unset it.")

    monkeypatch.setattr(look, "acceleration", refuse)
    monkeypatch.setattr(look, "jail", refuse)
    status, text = _said(capsys)
    failed = [one["id"] for one in json.loads(text)["findings"] if one["status"] == "fail"]
    assert (status, failed) == (EXIT_HOST, ["accelerator", "jail"])


def test_this_host_answers() -> None:
    """No number is expected, but every question has an answer of the right kind."""
    assert look.available_memory() > 0
    assert look.clock().now > 1e9
    assert look.panes().filter
    assert isinstance(look.namespaces().trial, str)


def test_a_program_in_sbin_is_found_by_users_whose_path_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian gives sbin to root's search path only, and mkfs.ext4 lies there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look.free_program("mkfs.ext4") is not None


def test_what_a_checkout_lacks_to_compile_the_guest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(tools, "find", nothing)
    found = doctor.guest_init(look.guest_init(Paths.from_environment()))
    assert found.status == "warn"
    assert found.fix == "sudo apt-get install binutils musl-tools"


def test_the_guide_names_every_finding() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "guide" / "machines.md"
    text = guide.read_text()
    assert [name for name in IDS if f"`{name}`" not in text] == []
