"""What a terminal was switched to, read from its output; checked against the engine itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.keeper.terminal_modes import MAX_STACK, MODES, STEP, ModeTracker, Place
from tests.doubles.engines import engine, lines

START = Place(0, b"")


def prelude(*pieces: bytes) -> bytes:
    tracker = ModeTracker(START)
    for piece in pieces:
        tracker.feed(piece)
    return tracker.switches.prelude()


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        (b"plain text \x1b[31mred\x1b[m \x1b[5;5H", b""),
        (b"\x1b[?1049h", b"\x1b[?1049h"),
        (b"\x1b[?1049h\x1b[?1049l", b""),
        (b"\x1b[?1000;1006h", b"\x1b[?1000h\x1b[?1006h"),
        (b"\x1b[?25l", b"\x1b[?25l"),
        (b"\x1b[?2026h\x1b[?12h\x1b[?99999h", b""),
        (b"\x1b[?2004h\x1bc", b""),
        (b"\x1b[?1h\x1b[?2004h\x1b=\x1b[!p", b"\x1b[?2004h"),
        (b"\x1b=", b"\x1b="),
        (b"\x1b=\x1b>", b""),
        (b"\x1b[3;20r", b"\x1b[3;20r\x1b[H"),
        (b"\x1b[3;20r\x1b[r", b""),
        (b"\x1b[>1u\x1b[>5u\x1b[<u", b"\x1b[>1u"),
        (b"\x1b[>1u\x1b[=3u", b"\x1b[>3u"),
        (b"\x1b[>1u\x1b[?1049h\x1b[>5u", b"\x1b[>1u\x1b[?1049h\x1b[>5u"),
        (b"\x1b[>4;2m", b"\x1b[>4;2m"),
        (b"\x1b]2;title\x07", b"\x1b]2;title\x1b\\"),
        (b"\x1b]0;a\x1b\\\x1b]2;b\x1b\\\x1b]7;c\x07", b"\x1b]2;b\x1b\\"),
        (b"\x1b]2;cut \x1b[?1049h", b"\x1b[?1049h"),
        (b"\x1bPq\x1b[?1049h\x1b\\", b"\x1b[?1049h"),
        (b"\x1b]52;c;?1049h\x07", b""),
        (b"\x1b[?" + b"1049;" * 40 + b"1000h", b""),
    ],
)
def test_what_was_switched_on(output: bytes, wanted: bytes) -> None:
    assert prelude(output) == wanted
    assert prelude(*(output[at : at + 1] for at in range(len(output)))) == wanted
    assert prelude(wanted) == wanted


def test_a_stack_of_keyboards_is_bounded() -> None:
    assert prelude(b"\x1b[>1u" * 1000) == b"\x1b[>1u" * MAX_STACK


SWITCHES = "\x1b[?1049h|\x1b[?1049l|\x1b[?2004h|\x1b[?1003h|\x1b[?25l|\x1b[?25h|\x1b[!p|\x1bc"
STRINGS = "\x1b]2;title\x07|\x1bP1;2q|\x1b\\|\x1b_G|\x18"
REST = "text\r\n|é漢\u0301|\x1b|\x1b[31m|\x1b[?1|049h"
pieces = st.sampled_from(
    [
        *SWITCHES.encode().split(b"|"),
        *STRINGS.encode().split(b"|"),
        *REST.encode().split(b"|"),
        b"\xff\xf0",
    ]
)


def parts_of(prelude: bytes) -> set[bytes]:
    return set(re.findall(rb"\x1b[^\x1b]*", prelude))


@given(st.lists(pieces, max_size=60), st.integers(1, 7), st.integers(1, 40))
def test_a_replay_from_any_place_has_the_modes_of_a_replay_of_everything(
    parts: list[bytes], size: int, step: int
) -> None:
    output = b"".join(parts)
    tracker = ModeTracker(START, step)
    for at in range(0, len(output), size):
        tracker.feed(output[at : at + size])
    end = tracker.now.prelude
    for place in tracker.places:
        again = ModeTracker(Place(place.offset, place.prelude))
        again.feed(output[place.offset :])
        assert parts_of(again.now.prelude) == parts_of(end)
    assert tracker.places == sorted(tracker.places)


def test_places_are_neither_within_characters_nor_within_sequences() -> None:
    output = ("\x1b[38;2;1;2;3m漢字\x1b[m" * 20_000 + "é" * 200_000).encode()
    tracker = ModeTracker(START)
    for at in range(0, len(output), 4099):
        tracker.feed(output[at : at + 4099])
    assert len(tracker.places) == len(output) // STEP + 1
    for place in tracker.places:
        output[place.offset :].decode()
        assert not re.match(rb"[0-9;]{0,20}m", output[place.offset :])


def test_an_agents_page_is_the_same_from_every_place() -> None:
    """A program that paints its whole page again and again, on the engine that draws it."""
    setup = b"\x1b[?1049h\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?25l"
    frame = b"".join(
        b"\x1b[%d;1H\x1b[3%dmrow %d of the page\x1b[K" % (y, y % 8, y) for y in range(1, 24)
    )
    output = setup + frame * 400
    tracker = ModeTracker(START)
    tracker.feed(output)
    whole = engine(80, 24)
    whole.feed(output)
    shown, modes = lines(whole), whole.frame(full=True).modes
    for place in tracker.places[:-1]:
        part = engine(80, 24)
        part.feed(place.prelude + output[place.offset :])
        assert lines(part) == shown
        assert part.frame(full=True).modes == modes


def test_forgetting_leaves_one_place() -> None:
    tracker = ModeTracker(START, 100)
    for _ in range(1000):
        tracker.feed(b"line\n")
    assert len(tracker.places) > 40
    tracker.forget(2500)
    assert tracker.places[0].offset >= 2500
    tracker.forget(1 << 40)
    assert len(tracker.places) == 1


MODE_PIECES = st.sampled_from(
    [
        *(b"\x1b[?%d%c" % (mode, on) for mode in sorted(MODES - {2027}) for on in b"hl"),
        b"\x1b[3;9r",
        b"\x1b=",
        b"\x1b[4h",
        b"\x1b[!p",
        b"\x1b[>5u",
        b"\x1b[>4;2m",
        b"\x1b[31;7m",
        b"\x1b(0",
        b"\x1b[4;7H",
        b"\x1b7",
        b"old\r\n",
    ]
)
CUTS = st.sampled_from([b"", b"\x1b", b"\x1b[?10", b"\x1b]2;half a title", b"\x1bPq", b"\xe6\xbc"])


@given(st.lists(MODE_PIECES, max_size=30), CUTS)
def test_the_next_run_begins_below_with_nothing_switched_on(parts: list[bytes], cut: bytes) -> None:
    output = b"first line\r\n" + b"".join(parts) + cut
    tracker = ModeTracker(START)
    tracker.feed(output)
    terminal, new = engine(40, 12), engine(40, 12)
    terminal.feed(output + tracker.switches.undo() + b"lqk next run")
    new.feed(b"lqk next run")
    frame = terminal.frame(full=True)
    assert frame.modes == new.frame(full=True).modes
    shown = [row for row in lines(terminal) if row]
    assert shown[-1] == "lqk next run"  # nothing of it is printed over what stood there
    assert lines(terminal)[0] != "lqk next run"


@given(st.lists(MODE_PIECES, max_size=30), st.integers(1, 40))
def test_who_joins_late_has_the_modes_of_the_engine_that_saw_everything(
    parts: list[bytes], step: int
) -> None:
    output = b"".join(parts)
    tracker = ModeTracker(START, step)
    tracker.feed(output)
    whole = engine(40, 12)
    whole.feed(output)
    for place in tracker.places:
        late = engine(40, 12)
        late.feed(place.prelude + output[place.offset :])
        assert late.frame(full=True).modes == whole.frame(full=True).modes


def test_two_runs_of_a_program_that_prints_lines_stand_one_below_the_other() -> None:
    output = b"\x1b[1mdemo\x1b[m at work\r\n\r\n  edit\r\n"
    tracker = ModeTracker(START)
    tracker.feed(output)
    terminal = engine(40, 12)
    terminal.feed(output + tracker.switches.undo() + output)
    run = ["demo at work", "", "  edit"]
    assert lines(terminal)[:8] == [*run, "", *run, ""]
