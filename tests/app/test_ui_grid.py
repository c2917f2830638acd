"""How many panes fit on a stage, and where each of them stands."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.grid import (
    COUNTS,
    EDGE,
    HEADER,
    MIN_COLUMNS,
    MIN_ROWS,
    Shape,
    beside,
    boxes,
    enough,
    fitting,
    shape_of,
)

WIDTHS = st.integers(1, 400)
HEIGHTS = st.integers(1, 150)


@pytest.mark.parametrize(
    ("count", "size", "shape"),
    [
        (1, (80, 21), (1, 1)),
        (2, (84, 34), (2, 1)),
        (2, (161, 60), (2, 1)),
        (2, (162, 60), (1, 2)),
        (2, (80, 9), (1, 2)),
        (4, (84, 34), (2, 2)),
        (6, (240, 50), (2, 3)),
        (6, (84, 60), (3, 2)),
        (9, (84, 36), (3, 3)),
        (9, (63, 18), (3, 3)),
        (9, (62, 18), None),
        (9, (63, 17), None),
        (1, (20, 6), None),
    ],
)
def test_the_shape_of_a_stage(
    count: int, size: tuple[int, int], shape: tuple[int, int] | None
) -> None:
    assert shape_of(count, *size) == (None if shape is None else Shape(*shape))


@given(st.sampled_from(COUNTS), WIDTHS, HEIGHTS)
def test_no_pane_is_smaller_than_a_terminal_can_be(wish: int, width: int, height: int) -> None:
    count = fitting(wish, width, height)
    assert count <= wish
    shape = shape_of(count, width, height)
    if shape is None:
        assert count == 1
        assert width < MIN_COLUMNS + EDGE or height < MIN_ROWS + HEADER
        return
    names = tuple(f"s{n}" for n in range(count))
    found = boxes(names, shape, width, height)
    assert len(found) == count
    assert all(box.width - EDGE >= MIN_COLUMNS for box in found.values())
    assert all(box.height - HEADER >= MIN_ROWS for box in found.values())


@given(st.sampled_from(COUNTS), WIDTHS, HEIGHTS)
def test_a_larger_count_up_to_the_wish_would_not_fit(wish: int, width: int, height: int) -> None:
    count = fitting(wish, width, height)
    larger = [n for n in COUNTS if count < n <= wish]
    assert all(shape_of(n, width, height) is None for n in larger)


@given(st.data(), st.sampled_from(COUNTS), st.integers(21, 300), st.integers(6, 120))
def test_panes_cover_the_stage_and_never_each_other(
    data: st.DataObject, count: int, width: int, height: int
) -> None:
    shape = shape_of(count, width, height)
    if shape is None:
        return
    taken = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    places = tuple(f"s{at}" if used else "" for at, used in enumerate(taken))
    found = boxes(places, shape, width, height)
    assert set(found) == {session for session in places if session}
    covered = sum(box.width * box.height for box in found.values())
    assert covered == (width * height if found else 0)
    for one, other in itertools.combinations(found.values(), 2):
        beside_it = one.x + one.width <= other.x or other.x + other.width <= one.x
        above_it = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert beside_it or above_it


def test_counts_step_and_stop_at_their_ends() -> None:
    assert [beside(count, 1) for count in COUNTS] == [2, 4, 6, 9, 9]
    assert [beside(count, -1) for count in COUNTS] == [1, 1, 2, 4, 6]
    assert [enough(n) for n in range(1, 11)] == [1, 2, 4, 4, 6, 6, 9, 9, 9, 9]
