"""What a guest prints stays in its pane: read from the bytes that the user's terminal is sent."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doubles.framed_app import COLUMNS, ROWS, SIDE, side
from tests.doubles.hostile import HOSTILE
from tests.doubles.outer_bytes import RUNNING, STARTING, strange
from tests.doubles.outer_lab import Lab, lab_of
from tests.sampling import sampled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from vm.terminal.screen import Frame, Row

PRINTS_EVIL = {"link with an escape"}
"""Payloads whose word EVIL is plain text for any terminal."""

BYTEWISE = 300
"""Longer payloads are not sent byte by byte."""


def styles(row: Row) -> list[bytes]:
    """Return the style of each cell."""
    return [run.style for run in row.runs for _ in range(run.cells)]


def frame_around(frame: Frame) -> list[object]:
    """Return what stands around the pane: texts and styles."""
    inner = [frame.rows[y] for y in range(1, ROWS - 1)]
    sides = [(row.text[:SIDE], row.text[-SIDE:]) for row in inner]
    looks = [(styles(row)[:SIDE], styles(row)[-SIDE:]) for row in inner]
    return [frame.rows[0], frame.rows[ROWS - 1], sides, looks, frame.modes]


@contextlib.asynccontextmanager
async def framed(folder: Path) -> AsyncGenerator[Lab]:
    async with lab_of(folder, "framed_app.py", columns=COLUMNS, rows=ROWS) as lab:
        await lab.print(b"ready ")
        lefts, rights = side("L").split("\n"), side("R").split("\n")
        await lab.until(
            lambda shown: (
                shown[0] == "T" * COLUMNS
                and [line[:SIDE] for line in shown[1:-1]] == lefts
                and [line[-SIDE:] for line in shown[1:-1]] == rights
            )
        )
        assert strange(lab.new(), STARTING) == []
        lab.screen.take_happenings()
        yield lab


async def holds(lab: Lab, payload: bytes, around: list[object], *, evil: bool = False) -> bytes:
    """Print a payload in all ways; nothing of it may be seen or felt but text in the pane."""
    await lab.draw(b"\r\n" + payload)
    await lab.print(b"")
    if len(payload) <= BYTEWISE:
        for byte in payload:
            await lab.guest.put(bytes([byte]))
        await lab.draw(b"")
        await lab.print(b"")
    await lab.draw(payload[: len(payload) // 2])
    await lab.print(b"")
    written = lab.new()
    assert strange(written, RUNNING) == []
    assert evil or b"EVIL" not in written
    assert frame_around(lab.frame()) == around
    assert not lab.screen.take_happenings()
    assert lab.screen.size == (COLUMNS, ROWS)
    return written


async def test_no_payload_leaves_the_pane(tmp_path: Path) -> None:
    async with framed(tmp_path) as lab:
        around = frame_around(lab.frame())
        lab.screen.take_replies()
        for name, payload in HOSTILE.items():
            try:
                await holds(lab, payload, around, evil=name in PRINTS_EVIL)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
        assert lab.screen.take_replies() == b""


async def test_a_link_goes_out_whole_and_only_to_the_web(tmp_path: Path) -> None:
    async with framed(tmp_path) as lab:
        around = frame_around(lab.frame())
        uri = b"https://a.example/path;x?q=%5B1%5D&r=;#;"
        await lab.print(b"\x1b]8;id=EVIL;" + uri + b"\x07linked\x1b]8;;\x07 plain ", reset=False)
        written = lab.new()
        assert strange(written) == []
        assert b";" + uri + b"\x1b\\" in written
        assert b"EVIL" not in written
        assert written.count(b"\x1b]8;;\x1b\\") >= written.count(uri) >= 1
        assert frame_around(lab.frame()) == around


async def test_an_update_without_end_does_not_stop_the_pane(tmp_path: Path) -> None:
    async with framed(tmp_path) as lab:
        await lab.print(b"\x1b[?2026h", reset=False)
        await lab.print(b"\x1b[?2026h and again ", reset=False)
        assert strange(lab.new()) == []


BEGINS = rb"""1b5b 1b5d 1b50 1b5f 1b5e 1b58 1b 9b 9d 90 c29b c29d 1b2830 0e 1b63 edA080 ff"""
INSIDE = rb"""52;c;RVZJTA== 0;EVIL 8;;http://a.example/ 8;;javascript:EVIL 9;EVIL
?1049h ?2026h ?1003h 21t 6n 999;999H 3;4r 99b 38;5;1m 31;4:3m ?3h ?40h ?69h 5;9s"""
PIECES = st.one_of(
    st.sampled_from([bytes.fromhex(it.decode()) for it in BEGINS.split()]),
    st.sampled_from(INSIDE.split()),
    st.sampled_from([b"\x1b\\", b"\x07", b"\x18", b"\r\n", b"\t", b"\x08", b"\x7f"]),
    st.sampled_from(["\u202e", "\u200d", "\U0001f468", "\u6f22", "\u0301"]).map(str.encode),
    st.binary(max_size=12),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(sorted(HOSTILE.values(), key=len)[:60]).flatmap(
        lambda data: st.integers(0, len(data)).map(lambda end: data[:end])
    ),
)
PAYLOADS = st.lists(PIECES, min_size=1, max_size=12).map(b"".join)


def test_no_made_up_payload_leaves_the_pane(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        lab = runner.run(stack.enter_async_context(framed(tmp_path)))
        around = frame_around(lab.frame())

        @settings(
            max_examples=sampled(120, 40),
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(PAYLOADS)
        def all_hold(payload: bytes) -> None:
            runner.run(holds(lab, payload, around, evil=True))

        try:
            all_hold()
        finally:
            runner.run(stack.aclose())


# -- the test's own eyes -------------------------------------------------------------------------


STRANGE = [
    *(
        b"\x1b]52;c;RQ==\x07",
        b"\x1b]0;t\x07",
        b"\x1bc",
        b"\x1b[?1000h",
        b"\x1b[21t",
        b"\x07",
        b"\n",
    ),
    *(b"\x1bPq\x1b\\", b"\x1b]8;;javascript:x\x1b\\", "\u202e".encode(), "\x9b31m".encode()),
    *(b"\x1b]8;;http://a/\x1b[m\x1b\\", b"\x1b[>4;2m", b"\x1b[6n", b"\x1b]22;x\x07", b"\x0e"),
    *(b"\n", b"\r", "\u200b".encode()),
]


@pytest.mark.parametrize("data", STRANGE)
def test_what_is_strange_is_seen(data: bytes) -> None:
    assert strange(b"text \x1b[1;31mred\x1b[3;4H" + data + b" more")
    with pytest.raises(UnicodeDecodeError):
        strange(b"\xff")
