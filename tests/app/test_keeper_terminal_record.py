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


def test_a_replay_starts_with_a_whole_line_once_the_beginning_is_gone(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24, SMALL)
    record.append(b"one\n")
    assert record.replay_start() == 0
    record.append(b"\x1b[31" + b"x" * 40 + b"\n" + b"y" * 40)
    assert record.replay_start() == record.end - 40
    record.close()


def test_a_damaged_header_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "terminal.rec").write_bytes(b"nonsense" * 20)
    record = TerminalRecord(tmp_path, 80, 24)
    assert record.end == 0
    record.close()
