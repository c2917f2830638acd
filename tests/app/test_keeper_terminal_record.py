from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from app.keeper.terminal_record import TerminalRecord

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SMALL = 64


def whole(record: TerminalRecord) -> bytes:
    found, at = b"", record.start
    while at < record.end:
        part = record.read(at, 17)
        found, at = found + part, at + len(part)
    return found


@given(writes=st.lists(st.binary(max_size=90), max_size=12))
def test_the_ring_keeps_the_end_of_all_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    record = TerminalRecord(folder, 80, 24, SMALL)
    everything = b""
    for data in writes:
        record.append(data)
        everything += data[-SMALL:]
    assert whole(record) == everything[-SMALL:]
    record.close()
    again = TerminalRecord(folder, 80, 24, SMALL)
    assert whole(again) == everything[-SMALL:]
    again.close()


def test_sizes_belong_to_offsets(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    record.append(b"a" * 10)
    record.resize(100, 30)
    record.resize(100, 30)
    record.append(b"b" * 5)
    assert [record.size_at(at) for at in (0, 9, 10, 14)] == [(80, 24)] * 2 + [(100, 30)] * 2
    assert record.next_resize(0) == 10
    assert record.next_resize(10) == 15
    record.close()
    again = TerminalRecord(tmp_path, 80, 24)
    assert again.size == (100, 30)
    again.close()


def test_a_replay_starts_at_a_safe_place_once_the_beginning_is_gone(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24, SMALL)
    record.append(b"one\n")
    assert record.replay() == (0, b"")
    record.append(b"\x1b[?1049h\x1b[31mtwo" + b"x" * 20)
    record.append(b"\x1b[32m" + b"y" * 50)
    place = record.replay()
    assert record.start <= place.offset <= record.end
    assert place.prelude == b"\x1b[?1049h"
    record.close()


def test_a_keeper_that_starts_anew_knows_what_was_switched_on_long_ago(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    record.append(b"\x1b[?1049h\x1b[?1003h\x1b]2;a title\x07")
    for _ in range(150):
        record.append(b"\x1b[Hsome output that replaces itself\x1b[K" * 1600)
    wanted = record.replay()
    assert wanted.offset > 0
    record.close()
    again = TerminalRecord(tmp_path, 80, 24)
    assert again.start <= again.replay().offset < again.start + (2 << 20)
    assert again.replay().prelude == wanted.prelude
    assert wanted.prelude == b"\x1b[?1049h\x1b[?1003h\x1b]2;a title\x1b\\"
    assert again.replay().offset < again.end
    again.close()


def test_one_sequence_that_fills_the_ring_is_swallowed(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24, 1 << 20)
    record.append(b"\x1b[?2004h\x1b_G" + b"A" * 1000)
    for _ in range(40):
        record.append(b"A" * 40_000)
    place = record.replay()
    assert place == (record.end, b"\x1b[?2004h\x1b_")
    record.append(b"A" * 100 + b"\x1b\\after\r\n")
    record.append(b"x" * 100_000)
    record.append(b"y" * 1_000_000)
    assert record.start <= record.replay().offset < record.end
    assert record.replay().prelude == b"\x1b[?2004h"
    record.close()


def test_a_damaged_header_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "terminal.rec").write_bytes(b"nonsense" * 20)
    record = TerminalRecord(tmp_path, 80, 24)
    assert record.end == 0
    record.close()


def test_an_earlier_run_is_cleared_up_once_and_not_counted_as_output(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    record.clear_up()
    assert record.end == 0  # nothing to clear up after
    record.append(b"\x1b[?1049h\x1b[?1003h")
    count = record.count
    record.clear_up()
    assert record.count == count
    assert b"\x1b[?1049l" in whole(record)
    on_main_screen = record.end
    record.clear_up()
    assert b"\x1b[?1049l" not in record.read(on_main_screen, 1 << 10)
    record.close()
