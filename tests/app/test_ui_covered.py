"""A screen that covers the fleet is drawn for its own sake alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.doubles.pilots import fleet_of, settle
from tests.doubles.reviews import TOKENIZER, Review, opened_review

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from textual.geometry import Region
    from textual.strip import Strip


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review."""
    async for opened in opened_review():
        yield opened


async def test_what_moves_in_a_covered_fleet_does_not_draw_the_review_again(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    await review.open(TOKENIZER)
    drawn: list[object] = []
    pane = review.screen.pane
    draw = pane.render_lines

    def drawing(crop: Region) -> list[Strip]:
        drawn.append(crop)
        return draw(crop)

    monkeypatch.setattr(pane, "render_lines", drawing)
    fleet = fleet_of(review.app)
    fleet.rail.refresh()
    await settle(review.pilot)
    assert not drawn
    pane.refresh()
    await settle(review.pilot)
    assert drawn
    await review.keys("q")
    assert review.app.screen is fleet
    assert fleet.is_current
