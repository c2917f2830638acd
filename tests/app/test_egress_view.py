"""The pure part of the egress log: filters, hosts and the reader's place."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.egress_view import EgressView, Filter, Place, Row
from app.ui.egress_facts import details
from vm.egress.kinds import Action, Entry

if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["query", "open", "close", "drop"]

HOSTS = ("a.example", "b.example", "10.0.0.1")
ENTRIES = st.builds(
    Entry,
    at=st.just(1.0),
    kind=st.sampled_from(("query", "open", "close", "drop")),
    host=st.sampled_from(HOSTS),
    port=st.just(443),
    verdict=st.sampled_from(("allow", "deny")),
    flow=st.integers(1, 4),
    up=st.integers(0, 9),
    down=st.integers(0, 9),
)
FILTERS = st.builds(
    Filter,
    session=st.sampled_from(("", "s1", "s2")),
    verdict=st.sampled_from(("all", "allow", "deny", "drop")),
    text=st.sampled_from(("", "A.EX", "10.")),
)
STEPS = st.lists(
    st.one_of(st.tuples(st.sampled_from(("s1", "s2")), ENTRIES), FILTERS, st.integers(1, 9)),
    max_size=60,
)


def entry(host: str = "a.example", kind: str = "open", **more: object) -> Entry:
    """Return an entry."""
    verdict = cast("Action", more.pop("verdict", "allow"))
    return Entry(1.0, cast("Kind", kind), host, 443, verdict, **more)  # type: ignore[arg-type]  # fields of any type


def shown(view: EgressView) -> list[Row]:
    return [view.row(index) for index in range(view.shown)]


@given(STEPS, st.integers(1, 20))
def test_what_is_shown_is_what_a_fresh_look_at_all_rows_would_show(
    steps: list[tuple[str, Entry] | Filter | int], most: int
) -> None:
    view = EgressView(most)
    for step in steps:
        if isinstance(step, Filter):
            view.set_filter(step)
        elif isinstance(step, int):
            view.look(step)
        else:
            view.add(*step)
    while not view.look(3):
        pass
    rows = shown(view)
    numbers = [row.number for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert view.total <= most
    view.set_filter(view.filter)
    view.look(most)
    assert rows == shown(view)
    for group in view.groups():
        own = [row for row in rows if row.host == group.host]
        assert group.rows == len(own)
        assert (group.up, group.down) == (sum(r.up for r in own), sum(r.down for r in own))
        assert group.connections == sum(row.entry.kind == "open" for row in own)
        assert group.denied == sum(row.verdict in ("deny", "drop") for row in own)
    assert sum(group.rows for group in view.groups()) == len(rows)


@given(STEPS, FILTERS)
def test_hosts_add_up_while_rows_come_and_go(
    steps: list[tuple[str, Entry] | Filter | int], wanted: Filter
) -> None:
    view = EgressView(7)
    view.set_filter(wanted)
    for step in steps:
        if isinstance(step, tuple):
            view.add(*step)
        assert sum(group.rows for group in view.groups()) == view.shown
        for group in view.groups():
            assert group.up == sum(row.up for row in shown(view) if row.host == group.host)


def test_the_end_of_a_connection_goes_into_its_row() -> None:
    view = EgressView()
    assert view.add("s1", entry(flow=5))
    assert not view.add("s1", entry(kind="close", flow=5, up=3, down=4, duration_ms=20))
    (row,) = shown(view)
    assert (row.up, row.down, row.duration_ms) == (3, 4, 20)
    assert view.add("s2", entry(kind="close", flow=5, up=1))
    assert [row.session for row in shown(view)] == ["s2", "s1"]


def test_the_host_with_the_newest_row_is_first() -> None:
    view = EgressView()
    for host in ("a.example", "b.example", "a.example"):
        view.add("s1", entry(host))
    assert [group.host for group in view.groups()] == ["a.example", "b.example"]
    view.set_filter(Filter(text="example"))
    while not view.look(1):
        pass
    assert [group.host for group in view.groups()] == ["a.example", "b.example"]


MOVES = st.one_of(
    st.tuples(st.just("came"), st.integers(0, 5)),
    st.tuples(st.just("go"), st.integers(-3, 50)),
    st.tuples(st.just("scroll"), st.integers(-9, 9)),
)


@given(st.lists(MOVES, max_size=40), st.integers(1, 12))
def test_the_reader_keeps_the_same_rows_in_sight(moves: list[tuple[str, int]], height: int) -> None:
    place, count = Place(), 20
    for what, number in moves:
        if what == "came":
            before = (count - place.top, count - place.cursor)
            followed = not (place.top or place.cursor)
            count += number
            place.came(number)
            after = (count - place.top, count - place.cursor)
            assert followed or before == after
        elif what == "go":
            place.go(number, count, height)
        else:
            place.scroll(number, count, height)
        assert 0 <= place.cursor < count
        assert 0 <= place.unseen <= place.top + (place.top < place.cursor) * count
        if what != "came":
            assert place.top <= place.cursor < place.top + height


def test_filtering_many_rows_is_done_in_steps_of_equal_work() -> None:
    view = EgressView()
    for number in range(20_000):
        view.add("s1", entry(f"h{number % 50}.example"))
    view.set_filter(Filter(text="h7."))
    steps = 1
    started = time.perf_counter()
    while not view.look(1600):
        steps += 1
    assert steps == 13
    assert view.shown == 400
    assert time.perf_counter() - started < 30


@pytest.mark.parametrize(
    ("verdict", "code", "shown"),
    [("allow", "allowed", "allow"), ("deny", "denied", "deny"), ("deny", "no-address", "allow")],
)
def test_a_rule_is_shown_with_its_own_effect(verdict: Action, code: str, shown: str) -> None:
    rule = "a.example:80"
    entry = Entry(1.0, "open", "a.example", 80, verdict, rule=rule, origin="me", code=code)
    facts = dict(details(Row(1, "s1", entry, ""), {}))
    assert facts["rule"] == f"{shown} a.example:80  from me"


def look_up(qtype: str, at: float = 1.0, verdict: Action = "ask", host: str = "a.example") -> Entry:
    return Entry(at, "query", host, None, verdict, qtype=qtype)


def test_a_program_that_looks_a_name_up_makes_one_row() -> None:
    view = EgressView()
    assert view.add("s1", look_up("A"))
    assert not view.add("s1", look_up("AAAA", 1.2))
    assert not view.add("s1", look_up("HTTPS", 1.3))
    (row,) = shown(view)
    assert row.entry.qtype == "A AAAA HTTPS"
    others = [
        ("s1", look_up("A", 1.4)),  # asked again
        ("s2", look_up("AAAA")),  # another session
        ("s1", look_up("AAAA", 1.5, host="b.example")),
        ("s1", look_up("AAAA", 1.6, "deny")),  # decided otherwise meanwhile
        ("s1", look_up("A", 90.0)),
    ]
    assert all(view.add(session, one) for session, one in others)
    assert view.shown == 6
    (group,) = [one for one in view.groups() if one.host == "b.example"]
    assert group.queries == 1


def test_a_look_up_whose_row_is_gone_makes_a_new_one() -> None:
    view = EgressView(most=1)
    view.add("s1", look_up("A"))
    view.add("s1", entry("c.example"))
    assert view.add("s1", look_up("AAAA", 1.1))
    assert [row.host for row in shown(view)] == ["a.example"]
