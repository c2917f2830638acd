"""Who holds a terminal, without any terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.keeper.pane_holder import Holding
from app.pane_frames import TAKE, WATCH, WILLING


def test_the_last_one_that_took_it_holds_it() -> None:
    holding: Holding[str] = Holding()
    for client in "abc":
        holding.join(client)
    assert holding.holder is None
    for client in "abca":
        holding.ask(client, TAKE)
        assert holding.holder == client
    assert holding.clients == 3


def test_it_goes_to_the_one_that_has_been_there_longest_of_those_that_want_it() -> None:
    holding: Holding[str] = Holding()
    for client in ["watcher", "first", "second", "holder"]:
        holding.join(client)
    holding.ask("second", TAKE)
    holding.ask("first", WILLING)
    holding.ask("holder", TAKE)
    holding.leave("holder")
    assert holding.holder == "first"
    holding.leave("first")
    assert holding.holder == "second"
    holding.leave("second")
    assert holding.holder is None
    assert holding.clients == 1


def test_a_willing_client_takes_nothing_from_anybody() -> None:
    holding: Holding[str] = Holding()
    for client in "ab":
        holding.join(client)
        holding.ask(client, WILLING)
    assert holding.holder == "a"
    holding.ask("a", WATCH)
    assert holding.holder == "b"
    holding.ask("b", WATCH)
    assert holding.holder is None
    assert not holding.ask("a", 3)
    assert holding.holder is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["join", "leave", "watch", "take", "willing"]), st.integers(0, 4))
    )
)
def test_somebody_holds_it_exactly_when_somebody_wants_it(plan: list[tuple[str, int]]) -> None:
    holding: Holding[int] = Holding()
    wants: dict[int, bool] = {}
    for what, client in plan:
        if what == "join":
            holding.join(client)
            wants.setdefault(client, False)
        elif what == "leave":
            holding.leave(client)
            wants.pop(client, None)
        elif client in wants:
            holding.ask(client, {"watch": WATCH, "take": TAKE, "willing": WILLING}[what])
            wants[client] = what != "watch"
            if what == "take":
                assert holding.holder == client
        assert (holding.holder is not None) == any(wants.values())
        assert holding.holder is None or wants[holding.holder]
        assert holding.clients == len(wants)
