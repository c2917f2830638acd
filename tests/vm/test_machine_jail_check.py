"""Proving that a jail can be made here, and what follows when it cannot."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.vm.machine_fakes import spec_for
from vm.errors import BootFailed
from vm.machine import jail_check
from vm.machine.jail import Jail
from vm.machine.jail_check import OPEN, NoJail
from vm.machine.machine import Machine
from vm.machine.spec import BadSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Bwrap = Callable[[str], Path]


@pytest.fixture
def bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bwrap:
    """Put a program called bwrap in front that runs a shell script; it counts its calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv(jail_check.VARIABLE, raising=False)

    def put(script: str) -> Path:
        calls = tmp_path / "calls"
        program = programs / "bwrap"
        program.write_text(f"#!/bin/sh\necho >>{calls}\n{script}\n")
        program.chmod(0o700)
        return calls

    return put


WORKS = "echo QEMU emulator version 7.2.0"
FAILS = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"


async def test_a_proof_holds_until_something_is_another(tmp_path: Path, bwrap: Bwrap) -> None:
    calls = bwrap(WORKS)
    for _ in range(3):
        choice = await jail_check.choose("auto", tmp_path / "cache")
        assert choice.jail is not None
        assert choice.notice == ""
    assert calls.read_text() == "\n"
    bwrap(WORKS + " ")
    assert (await jail_check.choose("on", tmp_path / "cache")).jail is not None
    assert calls.read_text() == "\n\n"


async def test_a_failure_is_asked_again_each_time(tmp_path: Path, bwrap: Bwrap) -> None:
    bwrap(FAILS)
    choice = await jail_check.choose("auto", tmp_path / "cache")
    assert choice.jail is None
    assert choice.notice.startswith(OPEN)
    assert "No permissions" in choice.notice
    bwrap(WORKS)
    assert (await jail_check.choose("auto", tmp_path / "cache")).jail is not None


async def test_a_jail_that_is_demanded_is_had_or_nothing_starts(
    tmp_path: Path, bwrap: Bwrap
) -> None:
    bwrap(FAILS)
    with pytest.raises(NoJail, match="`jail: on` demands it") as caught:
        await jail_check.choose("on", tmp_path)
    assert caught.value.hint


async def test_without_bubblewrap_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(jail_check.VARIABLE, raising=False)
    with pytest.raises(NoJail, match="bubblewrap is not installed") as caught:
        await jail_check.choose("on", tmp_path)
    assert caught.value.hint == "sudo apt-get install bubblewrap"


async def test_the_variable_wins_and_off_asks_nothing(
    tmp_path: Path, bwrap: Bwrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = bwrap(WORKS)
    monkeypatch.setenv(jail_check.VARIABLE, "off")
    assert await jail_check.choose("on", tmp_path) == jail_check.Choice(None)
    assert not calls.exists()
    monkeypatch.setenv(jail_check.VARIABLE, "maybe")
    with pytest.raises(BadSpec, match="maybe"):
        await jail_check.choose("auto", tmp_path)


def test_apparmor_is_named_with_the_profile_that_mends_it(
    tmp_path: Path, bwrap: Bwrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    bwrap(FAILS)
    switch = tmp_path / "restrict"
    switch.write_text("1\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    _, forbidding, why, fix = jail_check.SWITCHES[0]
    monkeypatch.setattr(jail_check, "SWITCHES", ((str(switch), forbidding, why, fix),))
    verdict = jail_check.check()
    assert verdict == jail_check.Verdict(None, why, fix)
    assert "apparmor_parser -r /etc/apparmor.d/bwrap" in fix
    switch.write_text("0\n")
    assert "No permissions" in jail_check.check().why


def test_this_host_makes_a_real_jail() -> None:
    assert jail_check.check() == jail_check.Verdict(jail_check.check().jail)
    assert jail_check.check().jail is not None


def test_a_jail_never_holds_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    for name in ("bin", "lib"):
        (home / name).mkdir(parents=True)
    program = home / "bin" / "qemu"
    program.write_bytes(b"")
    monkeypatch.setenv("HOME", str(home))
    held, _ = jail_check.surroundings(str(program))
    assert [file.source for file in held if home in file.source.parents] == [program]
    monkeypatch.setenv("HOME", "/nowhere")
    held, _ = jail_check.surroundings(str(program))
    assert home / "lib" in [file.source for file in held]


@pytest.mark.parametrize("script", [FAILS, "exit 0", "echo '{}' >&3"])
async def test_a_jail_that_cannot_be_closed_is_said(
    tmp_path: Path, bwrap: Bwrap, script: str
) -> None:
    program = bwrap(script).parent / "bin" / "bwrap"
    spec = spec_for(tmp_path, "qemu-system-x86_64")
    setpriv = "/usr/bin/setpriv" if os.geteuid() == 0 else ""
    with pytest.raises(BootFailed, match="QEMU ended at once") as caught:
        await Machine.start(replace(spec, jail=Jail(str(program), setpriv)))
    assert caught.value.hint
    if script == FAILS:
        assert "No permissions" in caught.value.message
