"""When an agent waits for its user, by what its terminal says and by what follows."""

from __future__ import annotations

import pytest

from app.keeper.attention import (
    GOES_ON_S,
    QUIET_S,
    REDRAWS_S,
    SETTLE_S,
    TYPING_S,
    Attention,
    is_typed,
)
from app.keeper.terminal_modes import ModeTracker, Place

T0 = 1000.0


def test_an_agent_that_asks_and_falls_silent_waits_until_it_is_answered() -> None:
    known = Attention(0)
    assert known.look(T0, 0, T0) == "working"
    assert known.look(T0 + 1, 1, T0 + 1) == "working"
    assert known.look(T0 + 1 + SETTLE_S, 1, T0 + 1) == "waiting"
    assert known.look(T0 + 900, 1, T0 + 1) == "waiting"
    known.typed = T0 + 901
    assert known.look(T0 + 901, 1, T0 + 1) == "idle"
    assert known.look(T0 + 902, 1, T0 + 902) == "working"


def test_one_that_goes_on_by_itself_does_not_wait() -> None:
    known = Attention(0)
    known.look(T0, 1, T0)
    last = T0 + GOES_ON_S + 1
    assert known.look(last, 1, last) == "working"
    assert known.look(last + QUIET_S + 1, 1, last) == "idle"


def test_one_that_is_looked_at_again_still_waits() -> None:
    """Whoever opens the workstation makes it draw anew, long after it asked."""
    known = Attention(0)
    known.look(T0, 1, T0)
    opened = T0 + 600
    known.redrawn = opened
    drawn = opened + REDRAWS_S / 2
    known.look(drawn, 1, drawn)
    assert known.look(drawn + SETTLE_S, 1, drawn) == "waiting"
    works = opened + REDRAWS_S + 1
    assert known.look(works, 1, works) == "working"
    assert known.look(works + QUIET_S + 1, 1, works) == "idle"


@pytest.mark.parametrize(
    ("data", "typed"),
    [
        (b"\x1b[I", False),
        (b"\x1b[O\x1b[I", False),
        (b"\x1b[?62;22c\x1b[>1;10;0c", False),
        (b"\x1b[?2027;1$y\x1b[?0u", False),
        (b"\x1b]11;rgb:1010/1212/1414\x1b\\\x1b]10;rgb:0/0/0\x07", False),
        (b"\x1bP>|terminal 1.0\x1b\\", False),
        (b"\x1b[0n\x1b[8;40;120t", False),
        (b"a", True),
        (b"\r", True),
        (b"\x1b", True),
        (b"\x1b[A", True),
        (b"\x1b[1;2R", True),  # F3 with shift
        (b"\x1b[97u", True),
        (b"\x1b[Ia", True),
        (b"\x1b[200~text\x1b[201~", True),
    ],
)
def test_what_a_terminal_reports_is_not_typed(data: bytes, typed: bool) -> None:
    assert is_typed(data) is typed


def test_a_bell_at_a_key_is_no_question() -> None:
    known = Attention(0, typed=T0)
    assert known.look(T0 + TYPING_S / 2, 1, T0) == "working"
    assert known.look(T0 + TYPING_S + 5, 1, T0) == "working"


def test_one_that_waited_under_an_earlier_keeper_still_waits() -> None:
    assert Attention(7, T0).look(T0 + 30, 7, T0) == "waiting"


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (b"done\x07", 1),
        (b"\x1b]9;May I?\x07", 1),
        (b"\x1b]9;4;1;50\x07", 0),
        (b"\x1b]777;notify;Agent;May I?\x1b\\", 1),
        (b"\x1b]99;;May I?\x1b\\", 1),
        (b"\x1b]2;a title\x07", 0),
        (b"\x1b]8;;http://x.example/\x07link\x1b]8;;\x07", 0),
        (b"\x1b[31mred\x07\x07\x1b[m", 2),
    ],
)
def test_asks_are_counted_in_pieces_as_in_one(said: bytes, asks: int) -> None:
    whole, pieces = ModeTracker(Place(0, b"")), ModeTracker(Place(0, b""))
    whole.feed(said)
    for byte in said:
        pieces.feed(bytes([byte]))
    assert (whole.asks, pieces.asks) == (asks, asks)
