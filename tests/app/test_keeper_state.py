"""What a session tells about itself: since when it is as it is, and what still is to review."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from app.agents import shell
from app.keeper.ledger import Ledger
from app.keeper.service import KeeperService
from app.keeper.shift import Shift
from app.keeper.terminal_record import TerminalRecord
from app.keeper.tree import Tree
from app.records import SessionRecord, read_state, write_record
from snapshot.capture import CaptureOptions, take_snapshot
from tests.app.keeper_bench import FakeGuest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.keeper.engine import Engine
    from app.keeper.keeper import Keeper


class House:
    """Ledger, trees and service of a session whose guest is a dictionary."""

    def __init__(self, workspace: Path, folder: Path) -> None:
        take_snapshot(workspace, folder, CaptureOptions())
        record = SessionRecord("0123456789", "n", shell(), str(workspace), 0.0, "base", "")
        write_record(folder / "session.json", record)
        self.guest = FakeGuest()
        self.ledger = Ledger(folder)
        self.tree = Tree(record, folder)
        self.service = KeeperService(cast("Keeper", self), lambda: None)
        engine = cast("Engine", SimpleNamespace(links=self.guest.links, machine=None))
        self.terminal = TerminalRecord(folder, 80, 24)
        self.shift = Shift(self.ledger, self.tree, engine, self.terminal, None)

    async def call(self, method: str, **params: object) -> object:
        return await self.service.call(method, msgspec.Raw(msgspec.json.encode(params)))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    (tmp_path / "session").mkdir()
    made = House(tmp_path / "project", tmp_path / "session")
    await made.tree.open()
    yield made
    await made.tree.close()
    made.terminal.close()
    made.ledger.journal.close()


async def test_what_is_to_review_is_told_and_written_down(house: House) -> None:
    house.guest.put(b"a.txt", b"b\n")
    house.guest.put(b"tool", b"#!/bin/sh\n", 0o755)
    await house.shift.take()
    assert house.ledger.info().open_units == 3
    decide = {"path": "tool", "decision": "rejected"}
    await house.call("decide", decisions=[decide])
    assert house.ledger.info().open_units == 1
    assert read_state(house.ledger.folder).open_units == 1
    await house.call("undo_decision")
    assert house.ledger.info().open_units == 3
    await house.call("redo_decision")
    await house.call("decide", decisions=[{"path": "a.txt", "decision": "accepted"}])
    await house.call("merge")
    assert house.ledger.info().open_units == 0


def test_the_time_of_a_state_is_kept_until_the_next_one(house: House) -> None:
    before = time.time()
    house.ledger.change(state="running")
    since = house.ledger.info().since
    assert before <= since <= time.time()
    house.ledger.change(generation=7)
    assert house.ledger.info().since == since
    house.ledger.change(agent_state="working")
    assert house.ledger.info().since > since
    house.ledger.fail(OSError(28, "No space left on device"))
    failed = house.ledger.info()
    assert (failed.state, read_state(house.ledger.folder).since) == ("failed", failed.since)
