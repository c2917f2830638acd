"""A session at its cap: asked in the strip like a held connection, answered by its own keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.errors import AppError
from app.protocol import CapChange, Meter
from app.ui.cap_asks import cap_question, used_of
from tests.app.test_ui_questions import question, strip_of
from tests.doubles.pilots import fleet_of, press, press_later, screen_text, settle, until
from tests.doubles.scenes import sessions, workstation

if TYPE_CHECKING:
    from app.ui.app import ClocheApp
    from tests.doubles.keeper import FakeFleet

SIZE = (120, 36)


def at_cap(age: float = 7.0, waiting: int = 2) -> Meter:
    """Return the meter of a session that used a little more than its cap of five dollars."""
    first = time.time() - age
    return Meter(
        answers=40, tokens=900_000, usd=5.02, cap_usd=5.0, more_usd=10.0, asks=True,
        waiting=waiting, asked=first, ends=first + 600,
    )  # fmt: skip


def reached(meter: Meter) -> tuple[ClocheApp, FakeFleet]:
    """Return the workstation whose second session is at its cap."""
    made = sessions()
    made[1].info_value = msgspec.structs.replace(made[1].info_value, meter=meter)
    app, fleet, _ = workstation(made)
    return app, fleet


@pytest.mark.parametrize(
    ("keys", "change"),
    [
        (("r",), CapChange(usd=10.0)),
        (("k",), CapChange(answer="stop")),
        (("n", "enter"), CapChange(answer="lift")),
    ],
)
@pytest.mark.parametrize("size", [(80, 24), SIZE])
async def test_each_key_answers_what_was_shown(
    size: tuple[int, int], keys: tuple[str, ...], change: CapChange
) -> None:
    meter = at_cap()
    app, fleet = reached(meter)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert "codex (add-tests) used up its cap: $5.02 of $5.00" in text
        assert "2 held 0:0" in text
        assert "of 10:00" in text
        assert "egress 1 ask" in text.splitlines()[0]
        await press(pilot, "ctrl+g", "e")
        assert "r raise to $10.00" in screen_text(pilot)
        for key in keys:
            assert fleet.keepers["s2"].caps == []
            await press_later(pilot, key)
        assert fleet.keepers["s2"].caps == [msgspec.structs.replace(change, asked=meter.asked)]
        assert not strip_of(app).display


async def test_no_cap_says_what_it_means_before_it_holds() -> None:
    app, fleet = reached(at_cap())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await press_later(pilot, "n")
        text = screen_text(pilot)
        assert "no cap for this session: nothing asks again" in text
        assert text.count("enter lift the cap") == 2  # in the strip and in the last line
        assert "write this rule" not in text
        assert "all answers" not in text
        await press_later(pilot, "escape")
        await press_later(pilot, "enter")  # there is nothing more to show
        assert fleet.keepers["s2"].caps == []
        assert len(app.screen_stack) == 1


async def test_an_answer_from_elsewhere_is_told_and_use_that_goes_on_is_not_agreed_to() -> None:
    app, fleet = reached(at_cap())
    fleet.keepers["s2"].refuse = AppError("no-such", "Nobody asks about the session's cap.")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        changed = msgspec.structs.replace(at_cap(), usd=10.5, more_usd=15.0)
        fleet.update("s2", meter=changed)
        await settle(pilot)
        await press_later(pilot, "r")
        await until(pilot, lambda: fleet_of(app).notice is not None)
        assert "Nobody asks about the session's cap." in screen_text(pilot)
        assert "$10.50 of $5.00" in screen_text(pilot)


async def test_it_queues_with_held_connections_and_is_one_of_the_needs() -> None:
    app, fleet = reached(at_cap(age=3))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s2", asks=(question(age=9), question("b.example", age=8)))
        fleet.update("s1", asks=(question("c.example", age=1),))
        await settle(pilot)
        shown = [one.target for one in app.asks.questions]
        assert shown == [
            "pkgs.dev.example:443", "$5.02 of $5.00", "c.example:443", "b.example:443"
        ]  # fmt: skip
        text = screen_text(pilot)
        assert "egress 4 asks" in text.splitlines()[0]
        assert "add-tests is at its cap" in text


def test_words_name_each_cap_that_is_reached() -> None:
    both = Meter(tokens=2_000, usd=0.004, cap_tokens=2_000, cap_usd=0.003)
    assert used_of(both) == "$0.0040 of $0.0030, 2,000 of 2,000 tokens"
    assert used_of(msgspec.structs.replace(both, usd=0.001)) == "2,000 of 2,000 tokens"
    info = sessions()[1].info_value
    assert cap_question(info) is None
    hostile = msgspec.structs.replace(info, name="\x1b[2J\u202e[bold]", meter=at_cap())
    asked = cap_question(hostile)
    assert asked is not None
    assert not set(asked.who) & {"\x1b", "\u202e"}
