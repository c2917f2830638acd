from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.ui.grid import (
    COUNTS,
    EDGE,
    HEADER,
    MIN_COLUMNS,
    MIN_ROWS,
    Shape,
    Tiling,
    beside,
    boxes,
    enough,
    fitting,
    shape_of,
)

if TYPE_CHECKING:
    from app.ui.grid import Places

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
    cells = [
        (x, y)
        for box in found.values()
        for x in range(box.x, box.x + box.width)
        for y in range(box.y, box.y + box.height)
    ]
    assert len(cells) == len(set(cells)) == (width * height if found else 0)


def test_counts_step_and_stop_at_their_ends() -> None:
    assert [beside(count, 1) for count in COUNTS] == [2, 4, 6, 9, 9]
    assert [beside(count, -1) for count in COUNTS] == [1, 1, 2, 4, 6]
    assert [enough(n) for n in range(1, 11)] == [1, 2, 4, 4, 6, 6, 9, 9, 9, 9]


# Who stands where

ALL = tuple(f"s{n}" for n in range(1, 13))


def tiled(count: int, current: str = "s1", known: Places = ALL, live: Places = ALL) -> Tiling:
    tiling = Tiling()
    tiling.arrange(count, current, known, set(live))
    return tiling


def test_free_places_are_filled_by_sessions_with_a_machine() -> None:
    assert tiled(4).shown == ("s1", "s2", "s3", "s4")
    assert tiled(4, "s9").shown == ("s1", "s2", "s3", "s9")
    assert tiled(4, live=("s3", "s4")).shown == ("s1", "s3", "s4", "")


def test_a_choice_takes_the_place_of_the_one_used_least_recently() -> None:
    tiling = tiled(4)
    for session in ("s1", "s2", "s3", "s4", "s2"):
        tiling.use(session)
    assert tiling.arrange(4, "s7", ALL, set(ALL)) == ("s7", "s2", "s3", "s4")
    tiling.use("s7")
    assert tiling.arrange(4, "s8", ALL, set(ALL)) == ("s7", "s2", "s8", "s4")


def test_looking_through_the_list_changes_one_pane_only() -> None:
    tiling = tiled(4)
    for session in ("s5", "s6", "s7", "s8"):
        found = tiling.arrange(4, session, ALL, set(ALL))
        assert found == ("s1", session, "s3", "s4")
    tiling.use("s8")
    assert tiling.arrange(4, "s9", ALL, set(ALL)) == ("s1", "s8", "s9", "s4")


def test_sessions_without_a_machine_give_way_first() -> None:
    tiling = tiled(4)
    for session in ("s1", "s2", "s4", "s3"):
        tiling.use(session)
    assert tiling.arrange(4, "s9", ALL, set(ALL) - {"s3"}) == ("s1", "s2", "s9", "s4")


def test_fewer_panes_and_more_again_bring_the_places_back() -> None:
    tiling = tiled(9)
    tiling.use("s7")
    assert tiling.arrange(2, "s3", ALL, set(ALL)) == ("s3", "s7")
    assert tiling.arrange(9, "s3", ALL, set(ALL)) == ALL[:9]


def test_fewer_panes_keep_the_first_places_of_sessions_that_nobody_used() -> None:
    tiling = tiled(4)
    assert tiling.arrange(2, "s1", ALL, set(ALL)) == ("s1", "s2")


def test_a_place_of_a_session_that_is_gone_stays_free_until_somebody_needs_it() -> None:
    known = ("s1", "s2", "s3", "s4")
    tiling = tiled(4, known=known)
    left = ("s1", "s3", "s4")
    assert tiling.arrange(4, "s1", left, set(left)) == ("s1", "", "s3", "s4")
    assert tiling.arrange(4, "s1", (*left, "s9"), {*left, "s9"}) == ("s1", "s9", "s3", "s4")


def test_remembered_places_come_back_each_session_once() -> None:
    tiling = Tiling(("s3", "s3", "gone", "s1"))
    assert tiling.arrange(4, "s1", ALL, set(ALL)) == ("s3", "s2", "s4", "s1")


def test_places_remembered_for_another_count_say_who_comes_first() -> None:
    tiling = Tiling(("s8", "s7", "s6", "s5"))
    assert tiling.arrange(2, "s6", ALL, set(ALL)) == ("s6", "s8")
    assert tiling.arrange(4, "s6", ALL, set(ALL)) == ("s8", "s7", "s6", "s5")


@given(st.lists(st.text(max_size=3), max_size=12))
def test_nothing_that_was_remembered_does_harm(remembered: list[str]) -> None:
    tiling = Tiling(tuple(remembered))
    for count in COUNTS:
        found = tiling.arrange(count, "s1", ALL, set(ALL))
        assert len(found) == count
        assert set(found) <= set(ALL)
        assert len(set(found)) == count


class Workday(RuleBasedStateMachine):
    """Sessions come, end and go, the user looks around, the window changes its size."""

    def __init__(self) -> None:
        super().__init__()
        self.tiling = Tiling()
        self.known: list[str] = ["s0"]
        self.live: set[str] = {"s0"}
        self.made = 1
        self.current = "s0"
        self.count = 4
        self.before: Places = ()
        self.arrange()

    def arrange(self) -> Places:
        if self.current not in self.known:
            self.current = self.known[0] if self.known else ""
        before = self.tiling.shown
        found = self.tiling.arrange(self.count, self.current, self.known, self.live)
        stayed = [s for s in before if s in found and s]
        if len(before) == len(found):
            assert all(before.index(s) == found.index(s) for s in stayed), (before, found)
        return found

    @precondition(lambda self: len(self.known) < 14)
    @rule()
    def start(self) -> None:
        self.known.append(f"s{self.made}")
        self.live.add(f"s{self.made}")
        self.made += 1
        self.arrange()

    @precondition(lambda self: bool(self.known))
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        before = [s for s in self.tiling.shown if s]
        self.live.discard(data.draw(st.sampled_from(self.known)))
        self.arrange()
        assert set(before) <= set(self.tiling.shown)

    @precondition(lambda self: bool(self.known))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.known))
        before = {s for s in self.tiling.shown if s} - {gone}
        self.known.remove(gone)
        self.live.discard(gone)
        self.arrange()
        assert gone not in self.tiling.shown
        assert before <= set(self.tiling.shown) or self.current not in before

    @precondition(lambda self: bool(self.known))
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        before = self.tiling.shown
        self.current = data.draw(st.sampled_from(self.known))
        found = self.arrange()
        changed = [
            at for at, pair in enumerate(zip(before, found, strict=True)) if len({*pair}) > 1
        ]
        assert all(found[at] == self.current or not before[at] for at in changed)
        assert sum(found[at] == self.current for at in changed) <= 1

    @precondition(lambda self: bool(self.known))
    @rule()
    def work(self) -> None:
        self.tiling.use(self.current)
        self.arrange()

    @rule(count=st.sampled_from(COUNTS))
    def resize(self, count: int) -> None:
        before = {s for s in self.tiling.shown if s}
        self.count = count
        found = self.arrange()
        if count >= len(before):
            assert before <= set(found)

    @invariant()
    def is_sound(self) -> None:
        shown = [s for s in self.tiling.shown if s]
        assert len(self.tiling.shown) == self.count
        assert len(shown) == len(set(shown))
        assert set(shown) <= set(self.known)
        assert not self.known or self.current in shown
        waiting = self.live - set(shown)
        assert not waiting or len(shown) == self.count


TestWorkday = Workday.TestCase
