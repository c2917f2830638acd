"""The strip of held connections: no key by itself, nothing wide without a second one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from textual.app import App

from app.ui.egress_asks import given_by, held_question
from tests.doubles.keeper import session_info
from tests.doubles.pilots import press_early, press_later, screen_text, settle
from themes.glyphs import ASCII, UNICODE
from vm.egress.questions import Question
from widgets.line_list import LineList
from widgets.question_strip import QuestionStrip

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from themes.glyphs import Glyphs

INFO = session_info("s2", "add-tests", "codex")
ASKED = Question("pkgs.dev.example", (443,), 100.0, 160.0, 2, "No rule allows it.")
PKGS = held_question(INFO, ASKED)
OTHER = held_question(INFO, replace(ASKED, host="other.dev.example"))


class StripApp(App[None]):
    """A strip, and something else that may have the keys."""

    def __init__(self, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.given: list[tuple[str, str]] = []
        self.left = 0

    def compose(self) -> ComposeResult:
        """Yield both."""
        yield QuestionStrip(glyphs=self.glyphs, opener="ctrl+g e", id="asks")
        yield LineList[object](id="list")

    @property
    def strip(self) -> QuestionStrip:
        """The strip."""
        return self.query_one(QuestionStrip)

    def on_question_strip_answered(self, message: QuestionStrip.Answered) -> None:
        """Note it."""
        self.given.append((message.question.target, message.answer.rule))

    def on_question_strip_left(self) -> None:
        """Note it."""
        self.left += 1


async def test_it_takes_neither_focus_nor_keys_by_itself() -> None:
    app = StripApp()
    async with app.run_test(size=(120, 20)) as pilot:
        app.query_one("#list").focus()
        app.strip.show([PKGS], 107.0)
        await settle(pilot)
        for key in ("o", "s", "enter"):
            await press_later(pilot, key)
        assert app.given == []
        text = screen_text(pilot)
        assert "codex (add-tests) wants pkgs.dev.example:443" in text
        assert "2 held 0:07 of 1:00" in text
        assert "ctrl+g e answers" in text


async def test_narrow_answers_count_a_moment_later_wide_ones_want_enter() -> None:
    app = StripApp()
    async with app.run_test(size=(80, 20)) as pilot:
        app.strip.show([PKGS, OTHER], 107.0)
        app.strip.focus()
        await press_early(pilot, "s")
        assert app.given == []
        await press_later(pilot, "a")
        assert app.given == []
        assert "allow pkgs.dev.example:443 in every session" in screen_text(pilot)
        await press_later(pilot, "escape")
        await press_later(pilot, "w")
        await press_later(pilot, "enter")
        assert app.given == [("pkgs.dev.example:443", "allow *.dev.example:443 in this session")]
        await press_later(pilot, "d")
        assert app.given[1] == ("other.dev.example:443", "deny other.dev.example in this session")
        assert app.left == 1
        assert not app.strip.display


async def test_no_question_and_no_rule_slips_under_the_finger() -> None:
    app = StripApp()
    async with app.run_test(size=(120, 20)) as pilot:
        app.strip.show([PKGS], 107.0)
        app.strip.focus()
        await settle(pilot)
        app.strip.show([OTHER, PKGS], 108.0)
        assert app.strip.shown == PKGS
        await press_later(pilot, "p")
        assert app.strip.chosen is not None
        more = held_question(INFO, replace(ASKED, ports=(443, 22)))
        app.strip.show([OTHER, more], 109.0)
        assert app.strip.shown == more
        assert app.strip.chosen is None
        await press_early(pilot, "o")
        assert app.given == []
        await press_later(pilot, "tab")
        assert app.strip.shown == OTHER
        app.strip.show([], 110.0)
        await settle(pilot)
        assert app.left == 1


async def test_tab_comes_to_every_question_whatever_is_counted_down_meanwhile() -> None:
    app = StripApp()
    hosts = [replace(ASKED, host=f"{name}.dev.example") for name in ("a", "b", "c", "d")]
    queue = [held_question(INFO, one) for one in hosts]
    async with app.run_test(size=(120, 20)) as pilot:
        app.strip.show(queue[:3], 107.0)
        app.strip.focus()
        await settle(pilot)
        seen = [app.strip.shown]
        for second in range(5):
            await press_later(pilot, "tab")
            app.strip.show(queue if second else queue[:3], 108.0 + second)
            seen.append(app.strip.shown)
        assert seen == [queue[0], queue[1], queue[2], queue[0], queue[1], queue[3]]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
async def test_the_end_of_a_long_host_is_seen_and_all_answers_fit(glyphs: Glyphs) -> None:
    app = StripApp(glyphs)
    async with app.run_test(size=(80, 20)) as pilot:
        host = "a" * 60 + "." + "b" * 60 + ".evil.example"
        app.strip.show([held_question(INFO, replace(ASKED, host=host))], 107.0)
        app.strip.focus()
        await settle(pilot)
        text = screen_text(pilot)
        assert ".evil.example:443" in text
        assert "! deny always" in text


@pytest.mark.parametrize(
    ("name", "host", "wish", "said"),
    [
        ("mine-reader-ws", "3,200 of 2,000 tokens", "used up its cap:", "… used up its cap: 3,200"),
        ("n" * 90, "x.example", "wants", "… wants x.example"),
        ("n" * 90, "h" * 90 + ".example", "wants", "… wants …hhh"),
        ("mine", "x.example", "wants", "(mine) wants x.example"),
    ],
)
async def test_who_is_shortened_and_what_it_wants_never(
    name: str, host: str, wish: str, said: str
) -> None:
    app = StripApp()
    async with app.run_test(size=(80, 20)) as pilot:
        one = replace(PKGS, who=f"agent ({name})", target=host, wish=wish)
        app.strip.show([one], 107.0)
        await settle(pilot)
        assert said in screen_text(pilot).splitlines()[0]


def test_an_address_is_not_widened_and_each_key_gives_what_it_shows() -> None:
    literal = replace(ASKED, host="203.0.113.7")
    assert given_by(literal, "w") is None
    assert given_by(ASKED, "x") is None
    for answer in PKGS.answers:
        choice = given_by(ASKED, answer.key)
        assert choice is not None
        assert choice.text == answer.rule
    assert [one.key for one in PKGS.answers if one.wide] == ["p", "a", "w", "exclamation_mark"]
