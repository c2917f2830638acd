"""Following logs: what is new, over rotations, whatever stands in the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from app.services.egress_feed import PIECE, EgressFeed
from tests.app.test_egress_view import entry
from vm.egress.ledger import NAME, Ledger

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "0123456789"


def read_all(feed: EgressFeed) -> list[tuple[str, str]]:
    """Return sessions and hosts until nothing more is there."""
    found: list[tuple[str, str]] = []
    more = True
    while more:
        pieces, more = feed.read()
        found += [(session, one.host) for session, entries in pieces for one in entries]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / SESSION).mkdir()
    return tmp_path


def test_only_what_is_new_is_read(folder: Path) -> None:
    feed = EgressFeed(folder)
    assert read_all(feed) == []
    ledger = Ledger(folder / SESSION / NAME)
    ledger(entry("a.example"))
    assert read_all(feed) == [(SESSION, "a.example")]
    assert read_all(feed) == []
    ledger(entry("b.example"))
    assert read_all(feed) == [(SESSION, "b.example")]
    feed.close()
    ledger.close()


def test_nothing_is_lost_when_the_log_is_rotated_between_two_looks(folder: Path) -> None:
    ledger = Ledger(folder / SESSION / NAME, cap=16 << 10)
    feed = EgressFeed(folder)
    hosts = [f"h{number}.example" for number in range(200)]
    seen: list[str] = []
    for number, host in enumerate(hosts):
        ledger(entry(host))
        if number % 20 == 0:
            seen += [host for _, host in read_all(feed)]
    seen += [host for _, host in read_all(feed)]
    assert (folder / SESSION / f"{NAME}.1").exists()
    assert seen == hosts
    feed.close()
    ledger.close()


def test_a_read_is_bounded_and_says_that_there_is_more(folder: Path) -> None:
    ledger = Ledger(folder / SESSION / NAME)
    for number in range(1900):
        ledger(entry(f"h{number}.example"))
    feed = EgressFeed(folder)
    pieces, more = feed.read()
    assert more
    assert 0 < sum(len(entries) for _, entries in pieces) < PIECE // 100
    assert len(read_all(feed)) + sum(len(entries) for _, entries in pieces) == 1900
    feed.close()
    ledger.close()


def test_damage_long_lines_and_links_are_passed_over(folder: Path) -> None:
    path = folder / SESSION / NAME
    ledger = Ledger(path)
    ledger(entry("a.example"))
    with path.open("ab") as file:
        file.write(b"{nonsense}\n" + b"x" * 200_000 + b"\n\xff\xfe\n")
    ledger(entry("b.example"))
    feed = EgressFeed(folder)
    assert [host for _, host in read_all(feed)] == ["a.example", "b.example"]
    feed.close()
    ledger.close()


def test_a_pipe_in_place_of_the_log_holds_nobody_up(folder: Path) -> None:
    os.mkfifo(folder / SESSION / NAME)
    feed = EgressFeed(folder)
    with pytest.raises(OSError, match="seek"):
        read_all(feed)
    feed.close()


def test_a_session_that_is_removed_is_let_go(folder: Path) -> None:
    ledger = Ledger(folder / SESSION / NAME)
    ledger(entry("a.example"))
    ledger.close()
    feed = EgressFeed(folder)
    assert len(read_all(feed)) == 1
    for path in (folder / SESSION).iterdir():
        path.unlink()
    (folder / SESSION).rmdir()
    assert read_all(feed) == []
    feed.close()
