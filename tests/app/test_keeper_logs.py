"""No log of a session grows without end, however long its keeper lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from app.keeper import journal
from app.keeper.journal import Journal, Line

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_journal_is_begun_anew_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LIMIT", 2000)
    written = Journal(tmp_path)
    for number in range(500):
        written.write(f"event {number}")
    written.close()
    parts = [tmp_path / "journal.jsonl.old", tmp_path / "journal.jsonl"]
    assert all(part.stat().st_size < 2200 for part in parts)
    lines = [line for part in parts for line in part.read_bytes().splitlines()]
    events = [msgspec.json.decode(line, type=Line).event for line in lines]
    assert events == [f"event {number}" for number in range(500 - len(events), 500)]


def test_a_journal_that_cannot_be_begun_anew_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LIMIT", 100)
    written = Journal(tmp_path)
    (tmp_path / "journal.jsonl.old").mkdir()
    for number in range(10):
        written.write(f"event {number}")
    written.close()
    assert len((tmp_path / "journal.jsonl").read_bytes().splitlines()) == 10
