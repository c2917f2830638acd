"""Gates on the engine's speed: ratios of CPU time, so that a loaded machine does not move them.

The absolute figures are those of `tests.bench.terminal_feed`; each bound here leaves twice the room
that was measured, or more.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyte
import pytest

from tests.bench.terminal_inputs import CLASSES, repaints, sample
from tests.doubles.engines import engine
from vm.terminal.wire_frame import pack_frame

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 120, 40
PIECE = 16_384
OURS, PYTES = 600_000, 24_000
TIMES_PYTE = 20
STEPS = 24


def cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def best(measure: Callable[[], float], runs: int = 3) -> float:
    """The least of a few: what disturbs a measurement only ever adds to it."""
    return min(measure() for _ in range(runs))


def our_cost(data: bytes) -> float:
    """CPU seconds a byte."""
    terminal = engine(*SIZE)

    def feed() -> None:
        for at in range(0, len(data), PIECE):
            terminal.feed(data[at : at + PIECE])
            terminal.take_replies()
            terminal.take_happenings()

    taken = cpu(feed)
    terminal.close()
    return taken / len(data)


def pyte_cost(data: bytes) -> float:
    """CPU seconds a byte of the screen that keeps scrollback, as ours does."""
    stream = pyte.ByteStream(pyte.HistoryScreen(*SIZE, history=10_000))
    return cpu(lambda: stream.feed(data)) / len(data)


@pytest.mark.parametrize("name", CLASSES)
def test_the_engine_is_twenty_times_as_fast_as_pyte(name: str) -> None:
    ours = best(lambda: our_cost(sample(name, OURS)))
    assert pyte_cost(sample(name, PYTES)) >= TIMES_PYTE * ours


def frame_cost(work: str) -> tuple[float, float]:
    """CPU seconds of feeding a page's repaints, and of drawing and packing each."""
    terminal = engine(*SIZE)
    terminal.frame()
    feeding = drawing = 0.0
    for number, step in enumerate(repaints(work, *SIZE, STEPS)):
        begin = time.process_time()
        terminal.feed(step)
        half = time.process_time()
        pack_frame(number, terminal.frame())
        feeding += half - begin
        drawing += time.process_time() - half
    terminal.close()
    return feeding, drawing


@pytest.mark.parametrize(
    ("work", "times"), [("full_screen", 20), ("plain_scroll", 40), ("truecolor", 50)]
)
def test_drawing_a_page_costs_no_more_than_parsing_some_pages(work: str, times: int) -> None:
    found = [frame_cost(work) for _ in range(3)]
    feeding, drawing = (min(values) for values in zip(*found, strict=True))
    assert drawing <= times * feeding


def page_and_row() -> tuple[float, float, float]:
    """CPU seconds of a frame after a whole page, after one row of it, and after nothing."""
    terminal = engine(*SIZE)
    pages = repaints("full_screen", *SIZE, STEPS)
    costs = [0.0, 0.0, 0.0]
    row = b"\x1b[20;5H\x1b[31mone row of %d\x1b[m"
    for number, page in enumerate(pages):
        for place, data in enumerate((page, row % number, b"")):
            terminal.feed(data)
            costs[place] += cpu(terminal.frame)
    terminal.close()
    return costs[0], costs[1], costs[2]


def test_a_frame_costs_what_changed() -> None:
    page, row, nothing = (
        min(values) for values in zip(*(page_and_row() for _ in range(3)), strict=True)
    )
    assert row * 5 <= page
    assert nothing * 10 <= page


def frame_after(page: str) -> float:
    """CPU seconds of the frame after a page was drawn."""
    terminal = engine(*SIZE)
    terminal.frame()
    terminal.feed(page.encode())
    taken = cpu(terminal.frame)
    terminal.close()
    return taken


def test_a_page_with_a_background_of_its_own_costs_as_much_as_one_without() -> None:
    rows = [f"\x1b[{y};1H\x1b[1;37;44m row {y} of it" for y in range(1, SIZE[1] + 1)]
    plain = best(lambda: frame_after("\x1b[m".join(rows)), 5)
    filled = best(lambda: frame_after("\x1b[K".join([*rows, ""])), 5)
    assert filled <= 2.5 * plain


def test_what_did_not_change_is_not_sent_again() -> None:
    terminal = engine(*SIZE)
    steps = repaints("agent", *SIZE, STEPS)
    terminal.feed(steps[0])
    terminal.frame()
    for step in steps[1:4]:
        terminal.feed(step)
        # the block is fourteen rows, its state is one of them
        assert 1 <= len(terminal.frame().rows) <= 3
    terminal.close()
