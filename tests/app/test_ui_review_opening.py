"""Opening a review holds nobody up: it is many short turns of the event loop, whatever its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.css.stylesheet import Stylesheet
from textual.widgets import Input

from tests.bench.loop_time import LoopTime
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import press, settle
from tests.doubles.reviews import open_review
from tests.doubles.scenes import sessions, workstation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest
    from textual.pilot import Pilot

    from app.ui.app import ClocheApp

SIZE = (200, 60)
TIMES = 5
"""Openings of which the cheapest counts: the others had the machine's other work in them."""

SHARE = 1 / 8
"""What the longest turn may take of a whole opening: 16 of 130 ms on the machine that this was
written on, where it takes half of that."""


def many_files(count: int) -> list[FakeFile]:
    """Return files of one hunk each in forty folders."""
    return [
        FakeFile(f"src/d{n % 40}/f{n}.py", b"a\nb\nc\n", f"a\n{n}\nc\n".encode())
        for n in range(count)
    ]


def workstation_of(files: Sequence[FakeFile]) -> ClocheApp:
    """Return a workstation whose first session changed some files."""
    keepers = sessions()
    keepers[0].files = list(files)
    return workstation(keepers)[0]


async def opened(app: ClocheApp, pilot: Pilot[None]) -> LoopTime:
    """Open the review and leave it again; return what opening it took."""
    clock = LoopTime()
    with clock.watched():
        await open_review(app, pilot)
        await settle(pilot)
    app.pop_screen()
    await settle(pilot)
    return clock


async def test_no_turn_takes_much_of_opening_two_thousand_files() -> None:
    app = workstation_of(many_files(2_000))
    async with app.run_test(size=SIZE) as pilot:
        found = [await opened(app, pilot) for _ in range(TIMES)]
    assert min(one.longest for one in found) < SHARE * min(one.whole for one in found)


async def test_a_turn_of_opening_draws_once_at_most() -> None:
    app = workstation_of(many_files(3))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert (await opened(app, pilot)).frames == 1


async def test_its_parts_are_styled_for_the_width_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    styled: list[str | None] = []
    apply: Callable[..., None] = cast("Any", Stylesheet).apply

    def noted(self: Stylesheet, node: object, **rest: object) -> None:
        styled.append(getattr(node, "id", None))
        apply(self, node, **rest)

    monkeypatch.setattr(Stylesheet, "apply", noted)
    app = workstation_of(many_files(3))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_review(app, pilot)
        assert screen.has_class("-wide")
        assert styled.count("files") <= 2  # when it is mounted, and when the screen comes in front


async def test_an_input_is_made_when_it_is_wanted() -> None:
    app = workstation_of(many_files(3))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_review(app, pilot)
        assert not screen.query(Input)
        await press(pilot, "slash", "a", "b")
        assert screen.query_one(Input).value == "ab"
        await press(pilot, "escape", "slash", "c")
        assert screen.query_one(Input).value == "c"
