"""The layout between screen and worker: what goes in comes out, and nothing else gets through."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.engines import engine
from vm.terminal import wire, wire_frame
from vm.terminal.screen import (
    MAX_COLUMNS,
    MAX_ROWS,
    PLAIN,
    STYLE,
    Cursor,
    CursorShape,
    Frame,
    Mode,
    Row,
    Run,
    Scrollback,
)
from vm.terminal.wire import Hello, Message, MessageReader, WireError


def frame_of(rows: dict[int, Row], columns: int = 4, height: int = 3) -> Frame:
    return Frame(columns, height, rows, None, Mode(0), Scrollback(3, 0, True))


def row_of(text: str, *runs: tuple[bytes, int, int]) -> Row:
    return Row(text, tuple(Run(*run) for run in runs))


ABCD = row_of("abcd", (PLAIN, 4, 4))


def test_a_frame_comes_out_as_it_went_in() -> None:
    red = STYLE.pack(1, 2, 3, 4)
    frame = Frame(
        columns=6,
        height=3,
        rows={
            0: row_of("ab漢", (PLAIN, 2, 2), (red, 2, 1), (PLAIN, 2, 0)),
            2: row_of("      ", (red, 6, 6)),
        },
        cursor=Cursor(5, 2, CursorShape.BAR, True, True),
        modes=Mode.ALTERNATE | Mode.MOUSE_ANY,
        scrollback=Scrollback(1000, 20, False),
    )
    assert wire_frame.unpack_frame(wire_frame.pack_frame(77, frame)) == (77, frame)


def test_a_frame_of_the_real_engine_comes_out_as_it_went_in() -> None:
    terminal = engine()
    terminal.feed("\x1b[1;31mé漢\x1b[m 🇺🇸\r\n\x1b[44m\x1b[K\x1b[?1049h\x1b[38;5;9mx".encode())
    frame = terminal.frame(full=True)
    assert wire_frame.unpack_frame(wire_frame.pack_frame(1, frame))[1] == frame


def test_too_many_styles_cost_colours_and_nothing_else() -> None:
    runs = [
        tuple(Run(STYLE.pack(0, y * MAX_COLUMNS + x, 0, 0), 1, 1) for x in range(MAX_COLUMNS))
        for y in range(70)
    ]
    rows = {y: Row("x" * MAX_COLUMNS, runs[y]) for y in range(70)}
    _, frame = wire_frame.unpack_frame(wire_frame.pack_frame(1, frame_of(rows, MAX_COLUMNS, 70)))
    assert frame.rows[0] == rows[0]
    assert frame.rows[69].text == rows[69].text


@pytest.mark.parametrize(
    "text",
    ["a\x1b[b", "\x07bcd", "ab\x9bd", "a\u202ecd", "a\nbc", "\ud800abc", "ab\x7fd", "a\u2028bc"],
)
def test_text_is_made_printable_at_the_reading_end(text: str) -> None:
    row = Row(text, (Run(PLAIN, 4, len(text.encode("utf-8", "replace").decode())),))
    _, frame = wire_frame.unpack_frame(wire_frame.pack_frame(1, frame_of({0: row})))
    assert frame.rows[0].text.isprintable()
    assert len(frame.rows[0].text) == 4


HEAD = wire_frame.FRAME_HEAD


def damaged(**changes: int) -> bytes:
    """A frame with one good row and one number of its head changed."""
    names = ("number", "columns", "height", "x", "y", "flags", "shape", "modes", "total", "offset")
    payload = wire_frame.pack_frame(1, frame_of({0: ABCD}))
    values = dict(
        zip((*names, "styles", "addresses", "rows"), HEAD.unpack_from(payload), strict=True)
    )
    return HEAD.pack(*(values | changes).values()) + payload[HEAD.size :]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0" * (HEAD.size - 1),
        damaged(columns=0),
        damaged(columns=MAX_COLUMNS + 1),
        damaged(columns=3),
        damaged(columns=5),
        damaged(height=0),
        damaged(height=MAX_ROWS + 1),
        damaged(rows=4),
        damaged(rows=0),
        damaged(rows=2),
        damaged(styles=0),
        damaged(styles=0xFFFF),
        damaged(flags=wire_frame.CURSOR_SEEN, x=4),
        damaged(flags=wire_frame.CURSOR_SEEN, y=3),
        damaged(flags=wire_frame.CURSOR_SEEN, shape=4),
        wire_frame.pack_frame(1, frame_of({0: ABCD})) + b"x",
        wire_frame.pack_frame(1, frame_of({0: ABCD}))[:-1],
        wire_frame.pack_frame(1, frame_of({3: ABCD})),
        wire_frame.pack_frame(1, frame_of({0: row_of("abcd", (PLAIN, 3, 4))})),
        wire_frame.pack_frame(1, frame_of({0: row_of("abcd", (PLAIN, 4, 3))})),
        wire_frame.pack_frame(1, frame_of({0: row_of("abcd", *[(PLAIN, 0, 0)] * 5)})),
        wire_frame.pack_frame(1, frame_of({0: row_of("x" * 4 * 64 * 5, (PLAIN, 4, 4 * 64 * 5))})),
    ],
)
def test_frames_that_do_not_add_up_are_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        wire_frame.unpack_frame(payload)


@given(st.binary(max_size=600))
@settings(max_examples=400)
def test_any_bytes_are_a_frame_or_an_error(payload: bytes) -> None:
    with contextlib.suppress(WireError):
        wire_frame.unpack_frame(payload)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_frame_is_safe_to_draw_or_an_error(data: st.DataObject) -> None:
    good = wire_frame.pack_frame(
        9, frame_of({0: row_of("ab漢", (PLAIN, 2, 2), (STYLE.pack(1, 2, 3, 4), 2, 1)), 1: ABCD})
    )
    payload = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, frame = wire_frame.unpack_frame(bytes(payload))
    except WireError:
        return
    assert frame.columns <= MAX_COLUMNS
    assert frame.height <= MAX_ROWS
    for y, row in frame.rows.items():
        assert y < frame.height
        assert row.text.isprintable()
        assert sum(run.cells for run in row.runs) == frame.columns
        assert sum(run.characters for run in row.runs) == len(row.text)


# -- messages --------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 0xFFFF), st.binary(max_size=50))),
    st.integers(1, 20),
)
def test_messages_survive_any_cutting(parts: list[tuple[int, int, bytes]], step: int) -> None:
    data = b"".join(wire.message(kind, pane, payload) for kind, pane, payload in parts)
    reader = MessageReader()
    found = [m for at in range(0, len(data), step) for m in reader.feed(data[at : at + step])]
    assert found == [Message(pane, kind, payload) for kind, pane, payload in parts]


def test_a_length_is_checked_before_anything_is_kept() -> None:
    reader = MessageReader(limit=100)
    with pytest.raises(WireError, match="101"):
        list(reader.feed(struct.pack("<IHB", 101, 0, 0)))
    with pytest.raises(WireError):
        list(MessageReader().feed(b"\xff" * 7))
    with pytest.raises(ValueError, match="longer"):
        wire.message(1, 1, b"\0" * (wire.MAX_PAYLOAD + 1))


@given(st.lists(st.text(max_size=40), max_size=4))
def test_texts_come_out_as_they_went_in(texts: list[str]) -> None:
    found = wire.unpack_texts(wire.pack_texts(*texts), len(texts), 400)
    assert found == tuple(t.encode("utf-8", "replace").decode() for t in texts)


@given(st.binary(max_size=60), st.integers(0, 3))
def test_any_bytes_are_texts_or_an_error(payload: bytes, count: int) -> None:
    with contextlib.suppress(WireError):
        assert len(wire.unpack_texts(payload, count, 30)) == count


def test_hello() -> None:
    hello = Hello(wire.PROTOCOL, 7, True, "engine 1")
    assert wire.unpack_hello(wire.pack_hello(hello)) == hello
    with pytest.raises(WireError, match="protocol 9"):
        wire.unpack_hello(wire.pack_hello(hello._replace(protocol=9)))
    with pytest.raises(WireError):
        wire.unpack_hello(b"")


@given(st.text(max_size=300))
def test_one_line_is_one_printable_line(text: str) -> None:
    line = wire.one_line(text, 100)
    assert line.isprintable()
    assert len(line) <= 100


@given(st.text(max_size=100))
def test_plain_text_has_no_controls(text: str) -> None:
    clean = wire.plain_text(text)
    assert len(clean) == len(text)
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in clean)
