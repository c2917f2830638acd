"""Full collections wait until nobody types."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import pytest

from app.ui.housekeeping import MIDDLE, OVERDUE, REST_SECONDS, WORTH_IT, Housekeeping
from tests.doubles.pilots import settle
from tests.doubles.scenes import workstation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def keeper() -> Iterator[Housekeeping]:
    made = Housekeeping()
    made.begin()
    yield made
    made.end()


def counts(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(gc, "get_count", lambda: (0, small % MIDDLE, small // MIDDLE))


def test_nothing_is_collected_while_somebody_types(
    keeper: Housekeeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts(monkeypatch, WORTH_IT)
    keeper.touched()
    assert not keeper.tick()
    later = time.monotonic() + REST_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert keeper.tick()


def test_what_is_overdue_is_collected_at_last_and_what_is_not_worth_it_is_not(
    keeper: Housekeeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.touched()
    counts(monkeypatch, OVERDUE)
    assert keeper.tick()
    counts(monkeypatch, 0)
    later = time.monotonic() + REST_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not keeper.tick()


async def test_the_workstation_takes_collections_over_and_gives_them_back() -> None:
    before = gc.get_threshold()
    app, _, _ = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert gc.get_threshold() != before
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
