"""Which session stands in which place: nothing moves that need not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.ui.grid import (
    COUNTS,
    Tiling,
)
from tests.sampling import sampled

if TYPE_CHECKING:
    from app.ui.grid import Places

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
TestWorkday.settings = settings(max_examples=sampled(100, 40))
