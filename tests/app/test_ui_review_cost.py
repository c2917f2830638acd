"""What a step in the review costs does not grow with the file: counts, and ratios of CPU time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from textual import events

from app.ui import review_conflicts
from app.ui.review_work import ReviewWork
from tests.bench.loop_time import LoopTime
from tests.doubles.keeper import FakeFile, FakeSession
from tests.doubles.pilots import settle, until
from tests.doubles.reviews import compared_once, open_review
from tests.doubles.scenes import sessions, workstation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import pytest
    from textual.pilot import Pilot

    from app.ui.review_screen import ReviewScreen

SIZE = (200, 60)
TIMES = 5
"""Steps of which the cheapest counts: the others had the machine's other work in them."""


def file_of(lines: int, changed_every: int) -> FakeFile:
    """A file without colours, with single changed lines at equal distances."""
    base = [f"    value_{n} = compute(items[{n}], flag={n % 7})\n" for n in range(lines)]
    agent = [
        line.replace("compute", "derive") if n % changed_every == 1 else line
        for n, line in enumerate(base)
    ]
    return compared_once(
        FakeFile("src/long.plain", "".join(base).encode(), "".join(agent).encode())
    )


@asynccontextmanager
async def reviewed(keeper: FakeSession) -> AsyncGenerator[tuple[Pilot[None], ReviewScreen]]:
    """Open the review of a session."""
    app, _, _ = workstation([keeper, *sessions()[1:]])
    async with app.run_test(size=SIZE) as pilot:
        yield pilot, await open_review(app, pilot)


def keeper_of(*files: FakeFile) -> FakeSession:
    """A session with some files."""
    keeper = sessions()[0]
    keeper.files = list(files)
    return keeper


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Type keys, each when the one before it is on the screen."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settle(pilot)


async def cheapest(pilot: Pilot[None], key: str) -> float:
    """CPU seconds in our code of the cheapest step that a key does."""
    clock, found = LoopTime(), list[float]()
    for _ in range(TIMES):
        with clock.watched():
            await press(pilot, key)
        found.append(clock.own)
    return min(found)


async def cost(lines: int, changed_every: int, key: str) -> float:
    """CPU seconds of a key in a file whose folds are open."""
    async with reviewed(keeper_of(file_of(lines, changed_every))) as (pilot, _):
        await press(pilot, "Z", "g")
        return await cheapest(pilot, key)


async def test_a_page_of_a_long_file_costs_no_more_than_one_of_a_short_one() -> None:
    assert await cost(50_000, 50, "pagedown") < 2 * await cost(700, 50, "pagedown")


async def test_a_decision_among_many_hunks_costs_little_more_than_among_few() -> None:
    assert await cost(7_200, 8, "space") < 4 * await cost(80, 8, "space")


async def test_a_step_draws_what_changed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reviewed(keeper_of(file_of(2_000, 50))) as (pilot, screen):
        pane = screen.pane
        await press(pilot, "Z", "g")
        drawn: list[int] = []
        draw = type(pane)._draw  # pyright: ignore[reportPrivateUsage]

        def counted(self: object, at: int, *rest: object) -> object:
            drawn.append(at)
            return draw(self, at, *rest)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(type(pane), "_draw", counted)
        await press(pilot, "j", "j", "j", "j")
        drawn.clear()
        await press(pilot, "j")
        assert drawn == [pane.cursor]
        drawn.clear()
        await press(pilot, "k", "j", "k", "j")
        assert drawn == []
        await press(pilot, "pagedown")
        assert len(drawn) <= pane.size.height
        drawn.clear()
        pane.roll(3)
        await settle(pilot)
        assert len(drawn) <= 3 + 2
        drawn.clear()
        await press(pilot, "m")  # the list says so, and the first line
        assert drawn == []


async def test_a_worker_makes_no_text_of_what_it_is_given() -> None:
    keeper = keeper_of(file_of(100, 10))
    async with reviewed(keeper) as (pilot, screen):
        worker = screen.load(keeper, (await keeper.changes()).files[0])
        assert worker.description == ReviewWork.load.__name__
        await settle(pilot)


class Asked(FakeSession):
    """Counts how often conflicts are asked for."""

    conflict_reads = 0

    async def conflicts(self, path: str = "") -> Sequence[object]:  # type: ignore[override]  # its result is not looked at
        self.conflict_reads += 1
        return await super().conflicts(path)


async def deciding(calm: float, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Decide three hunks of a file that the user changed too; return the keeper."""
    monkeypatch.setattr(review_conflicts, "CALM_SECONDS", calm)
    file = file_of(100, 10)
    file.drift = True
    keeper = Asked(sessions()[0].info_value, [file])
    async with reviewed(keeper) as (pilot, screen):
        await press(pilot, "space", "space", "space")
        if not calm:
            await until(pilot, lambda: keeper.conflict_reads > 0)
        before = keeper.conflict_reads
        await press(pilot, "C")
        await until(pilot, lambda: keeper.conflict_reads > before)
        assert screen.changes is not None
    return keeper


async def test_conflicts_are_asked_for_once_a_run_of_decisions_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await deciding(3600, monkeypatch)).conflict_reads == 1
    assert (await deciding(0, monkeypatch)).conflict_reads >= 2
