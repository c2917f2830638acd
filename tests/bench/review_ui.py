"""What a step in the review costs the event loop, in CPU milliseconds: nothing may block it long.

`python -m tests.bench.review_ui --json [--runs N]`. One file of 50,000 lines with scattered edits
at 200×60, and a review of 2,000 files. For each step: `step` is all CPU time that it takes, drawing
and the bytes for the terminal included, `own` what of it runs in our screens and widgets, `block`
the longest single turn of the event loop in it. The limit is 16 ms a turn, which is one frame.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

import msgspec
from textual import events

from app.protocol import Changes
from app.ui.app import ClocheApp
from tests.bench.loop_time import LoopTime
from tests.bench.report import publish, runs_wanted
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import CALM_ROUNDS, is_busy, running, settle, until
from tests.doubles.reviews import compared_once, open_review
from tests.doubles.scenes import sessions, workstation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.pilot import Pilot

SIZE = (200, 60)
LINES = 50_000
FILES = 2_000
LOOK_AGAIN = 0.002


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of all lie."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def figures(values: Sequence[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum in milliseconds."""
    return {
        "p50": round(statistics.median(values) * 1000, 2),
        "p95": round(percentile(values, 0.95) * 1000, 2),
        "max": round(max(values) * 1000, 2),
    }


async def measured(
    pilot: Pilot[None], steps: int, work: Callable[[], object]
) -> dict[str, dict[str, float]]:
    """Do something some times, each until it is on the screen."""
    clock = LoopTime()
    found: list[tuple[float, float, float]] = []
    for _ in range(steps):
        with clock.watched():
            work()
            await shown(pilot)
        found.append((clock.whole, clock.own, clock.longest))
    whole, own, longest = zip(*found, strict=True)
    return {"step": figures(whole), "own": figures(own), "block": figures(longest)}


async def shown(pilot: Pilot[None]) -> None:
    """Wait until everything is on the screen, without giving the application anything to do."""
    calm = 0
    while calm < CALM_ROUNDS:
        await asyncio.sleep(LOOK_AGAIN)
        app = pilot.app
        assert isinstance(app, ClocheApp)
        await app.turns.settled()
        calm = 0 if running(pilot) or is_busy(app) else calm + 1


def long_file() -> FakeFile:
    """A Python module of many lines, one in fifty edited."""
    dice = random.Random(3)
    lines = [f"    value_{n} = compute(items[{n}], flag={n % 7})\n" for n in range(LINES)]
    after = [line.replace("compute", "derive") if dice.random() < 0.02 else line for line in lines]
    return compared_once(FakeFile("src/long.py", "".join(lines).encode(), "".join(after).encode()))


async def long_review(steps: int, only: Sequence[str] = ()) -> dict[str, object]:
    """Move in a long file; `only` names the steps that are wanted, else all of them are done."""
    keepers = sessions()
    keepers[0].files = [long_file()]
    app, _, _ = workstation(keepers)
    found: dict[str, object] = {}
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_review(app, pilot)
        pane = screen.pane
        await until(pilot, lambda: pane.document is not None and "old" in pane.document.spans)

        def key(name: str, character: str | None = None) -> Callable[[], object]:
            return lambda: app.post_message(events.Key(name, character))

        def wheel() -> None:
            pane.scroll_to(y=pane.scroll_offset.y + 3, animate=False, force=True)

        async def note(name: str, work: Callable[[], object], count: int = steps) -> None:
            if not only or name in only:
                found[name] = await measured(pilot, count, work)

        await note("next_hunk", key("right_square_bracket", "]"))
        await note("row", key("j", "j"))
        await note("three_rows", wheel)
        await note("page", key("pagedown"))
        await note("decide", key("space", " "))
        app.post_message(events.Key("g", "g"))
        await settle(pilot)
        await note("expand", key("enter"), 1)
        await note("split", key("s", "s"), 6)
        await note("unfold_all", key("Z", "Z"), 1)
        await note("row_unfolded", key("j", "j"))
        await note("page_unfolded", key("pagedown"))
        await note("next_hunk_unfolded", key("right_square_bracket", "]"))
        await note("wrap", key("w", "w"), 1)
        found["hunks"] = pane.unit_count
    return found


async def first_frame() -> float:
    """CPU milliseconds from opening the review of a long file to its first lines on the screen."""
    keepers = sessions()
    keepers[0].files = [long_file()]
    app, _, _ = workstation(keepers)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await keepers[0].changes()  # the keeper compares in its own process
        gc.collect()
        began = time.process_time()
        await open_review(app, pilot)
        return round((time.process_time() - began) * 1000, 1)


async def short_wrapped(steps: int) -> dict[str, object]:
    """Wrap a file that is short enough for it, and move in it."""
    keepers = sessions()
    file = long_file()
    assert file.base is not None
    assert file.agent is not None
    cut = [b"".join(side.splitlines(keepends=True)[:2_900]) for side in (file.base, file.agent)]
    keepers[0].files = [compared_once(FakeFile(file.path, cut[0], cut[1]))]
    app, _, _ = workstation(keepers)
    async with app.run_test(size=SIZE) as pilot:
        await open_review(app, pilot)
        app.post_message(events.Key("Z", "Z"))
        await settle(pilot)
        wrap = await measured(pilot, 2, lambda: app.post_message(events.Key("w", "w")))
        app.post_message(events.Key("w", "w"))
        await settle(pilot)
        page = await measured(pilot, steps, lambda: app.post_message(events.Key("pagedown", None)))
    return {"wrap_2900_lines": wrap, "page_wrapped": page}


async def many_files() -> dict[str, Any]:
    """Open a review of many files, and walk through them."""
    keepers = sessions()
    keepers[0].files = [
        FakeFile(f"src/d{n % 40}/f{n}.py", b"a\nb\nc\n", f"a\n{n}\nc\n".encode())
        for n in range(FILES)
    ]
    app, _, _ = workstation(keepers)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        clock = LoopTime()
        changes = await keepers[0].changes()

        told = msgspec.json.encode(changes)

        async def known(*, refresh: bool = False) -> object:
            # values of its own each time, as in life
            return msgspec.json.decode(told, type=Changes)

        keepers[0].changes = known  # type: ignore[method-assign,assignment]  # answers of the same type
        gc.collect()
        with clock.watched():
            began = time.process_time()
            await open_review(app, pilot)
            spent = time.process_time() - began
        block = clock.longest
        walk = await measured(
            pilot, 20, lambda: app.post_message(events.Key("right_curly_bracket", "}"))
        )
        again = await measured(pilot, 5, lambda: keepers[0].publish("decisions"))
    return {
        "open_2000_files_ms": round(spent * 1000, 1),
        "open_2000_files_block_ms": round(block * 1000, 1),
        "next_file": walk,
        "decisions_arrive": again,
    }


def main() -> None:
    """Measure and print."""
    steps = runs_wanted(40)
    gc.collect()
    publish(
        {
            "lines": LINES,
            "long": asyncio.run(long_review(steps)),
            "wrapped": asyncio.run(short_wrapped(steps)),
            "files": asyncio.run(many_files()),
        }
    )


if __name__ == "__main__":
    main()
