"""A machine whose guest says nothing is given up for a second one, and that one alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from app.agents import shell
from app.keeper import starting
from app.keeper.boot import Machinery
from app.keeper.ledger import Ledger
from app.keeper.starting import AGAIN, Starter
from app.records import SessionRecord, StateRecord, write_record
from tests.vm.machine_fakes import fake_binary, spec_for
from vm.errors import BootFailed, GuestSilent
from vm.machine.identity import Identity
from vm.machine.jail_check import OPEN, Choice

if TYPE_CHECKING:
    from pathlib import Path

    from app.records import Process

ID = "0123456789"


class Parts:
    """All that a start asks: workshop, governor, tree and network. QEMU is the fake one."""

    on = True

    def __init__(self, folder: Path, *modes: str) -> None:
        record = SessionRecord(ID, "n", shell(), str(folder), 0.0, "base", "")
        write_record(folder / "session.json", record)
        write_record(folder / "state.json", StateRecord(state="starting", prepared=True))
        self.ledger = Ledger(folder)
        self.machines: list[Process] = []
        self.network: list[str] = []
        self._folder, self._modes = folder, iter(modes)

    def starter(self) -> Starter:
        part = cast("Any", self)
        return Starter(self.ledger, part, part, part, part)

    async def jail(self) -> Choice:
        return Choice(None, f"{OPEN}: here is none")

    async def machinery(self, jail: None, *, network: bool) -> Machinery:
        binary = fake_binary(self._folder, next(self._modes))
        return Machinery(spec_for(self._folder, binary), Identity.new(), "")

    async def enter(self) -> None:
        return

    granted = open = enter

    def hold(self, process: Process) -> None:
        self.machines.append(process)

    async def prepare(self) -> None:
        self.network.append("prepared")

    def start(self, link: Path) -> None:
        self.network.append("started")

    async def stop(self) -> None:
        self.network.append("stopped")


async def test_a_silent_machine_is_ended_and_a_second_one_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(starting, "FIRST_S", 0.3)
    monkeypatch.setattr(starting, "BOOT_S", 0.4)
    parts = Parts(tmp_path, "mute", "mute")
    with caplog.at_level(logging.WARNING), pytest.raises(GuestSilent, match=r"within 0\.4 s"):
        await parts.starter().start(agent=True)
    first, second = parts.machines
    assert first.pid != second.pid
    assert not first.alive
    assert not second.alive
    assert parts.network == ["prepared", "started", "stopped", "prepared", "started"]
    notices = parts.ledger.state.notices
    assert [text for text in notices if text.startswith(AGAIN)] == [
        f"{AGAIN}. What it did: cloche logs {ID}"
    ]
    assert "running: CPU#0 RIP=ffffffff81c0de42 CPL=0 HLT=1 CPU#1" in caplog.text


async def test_a_machine_that_ends_is_not_started_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path, "broken")
    with pytest.raises(BootFailed) as caught:
        await parts.starter().start(agent=False)
    assert not isinstance(caught.value, GuestSilent)
    assert not parts.machines
    assert not parts.network


async def test_the_next_start_forgets_the_notice(tmp_path: Path) -> None:
    parts = Parts(tmp_path, "broken")
    parts.ledger.change(notices=("kept", f"{AGAIN}. more"))
    with pytest.raises(BootFailed):
        await parts.starter().start(agent=False)
    assert parts.ledger.state.notices == (f"{OPEN}: here is none", "kept")
