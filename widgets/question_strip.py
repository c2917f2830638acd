"""What agents wait for: who wants what, for how long it still waits, what each answer would write.

The guest chooses the moment of a question, so the strip takes neither focus nor key by itself. Keys
count a moment after the user gave it the focus or another question came; an answer that holds for
longer than the session shows its exact rule and wants enter. While the strip has the focus the
question that is shown stays, so that no other one slips under the finger.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from textual.message import Message

from widgets.cells import Piece, cut, total, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs

COUNT_AFTER = 0.5
"""Seconds after which a key counts."""

WHO = 8
"""Cells that whoever waits has at least, however long the host is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; texts are safe to print."""

    key: str
    """The key as Textual names it."""
    shown: str
    """The key as people write it."""
    label: str
    rule: str
    """What it would write, and for how long."""
    wide: bool
    """It holds for longer than the session, or for more hosts: wants enter."""
    does: str = "write this rule"
    """What enter does then."""


@dataclass(frozen=True, slots=True)
class HeldQuestion:
    """What one session waits for, mostly a host; texts are safe to print."""

    key: str
    """Names the question as long as it is open."""
    who: str
    target: str
    """The host, whole, and its ports."""
    reason: str
    since: float
    """When it was first asked, on the clock of `now`."""
    ends: float
    waiting: int
    answers: tuple[Answer, ...]
    about: object = None
    """What it is about, for whoever acts on an answer."""
    wish: str = "wants"
    """Between who and target."""
    more: bool = True
    """There are more answers than keys: enter shows them all."""


class QuestionStrip(LineView, can_focus=True):
    """Three lines; not there while nothing is asked."""

    BINDING_GROUP_TITLE = "Held connections"
    FOCUS_ON_CLICK = False
    """A click asks for the focus, so that whoever gives it knows where to give it back."""
    DEFAULT_CSS = """
    QuestionStrip { height: 3; width: 1fr; display: none; background: $panel; }
    QuestionStrip.-shown { display: block; }
    """

    @dataclass
    class Answered(Message):
        """The user answered."""

        question: HeldQuestion
        answer: Answer

    @dataclass
    class Wanted(Message):
        """The user clicked: the strip is to get the focus."""

        strip: QuestionStrip

    @dataclass
    class More(Message):
        """The user wants to see all that can be answered."""

        question: HeldQuestion

    class KeysChanged(Message):
        """Other keys count now than before."""

    @dataclass
    class Left(Message):
        """The user gave the keys back, or there is nothing to answer any more."""

        strip: QuestionStrip
        gone: bool = False
        """It went away under the user's fingers: nobody waits any more, or it was answered
        elsewhere."""

    def __init__(self, *, glyphs: Glyphs, opener: str, id: str | None = None) -> None:
        """Show nothing yet; `opener` is how the keys that give the strip the focus are written."""
        super().__init__(glyphs=glyphs, id=id)
        self.questions: tuple[HeldQuestion, ...] = ()
        self.chosen: Answer | None = None
        """The wide answer whose rule is shown until enter."""
        self._opener = opener
        self._now = 0.0
        self._count_from = 0.0

    @property
    def shown(self) -> HeldQuestion | None:
        """The question that can be answered now."""
        return self.questions[0] if self.questions else None

    def show(self, questions: Sequence[HeldQuestion], now: float) -> None:
        """Show the open questions, oldest first; `now` on the clock of their times."""
        self._now = now
        found = list(questions)
        if self.has_focus:  # the order that tab made of them stays, what is new comes last
            places = {one.key: place for place, one in enumerate(self.questions)}
            found.sort(key=lambda one: places.get(one.key, len(places)))
        self._set(tuple(found), gone=True)

    def bring(self, key: str) -> None:
        """Put a question in front."""
        first = [one for one in self.questions if one.key == key]
        self._set((*first, *(one for one in self.questions if one.key != key)))

    def _set(self, questions: tuple[HeldQuestion, ...], *, gone: bool = False) -> None:
        before, keys = self.shown, self.other_keys()
        self.questions = questions
        after = self.shown
        # other answers under the same key are another question: one more port changes every rule
        if before is None or after is None or _asked(before) != _asked(after):
            self.chosen = None
            self._count_from = time.monotonic() + COUNT_AFTER
        if keys != self.other_keys():
            self.post_message(self.KeysChanged())
        self.set_class(bool(questions), "-shown")
        self.set_row_count(3)
        self.redraw()
        if before is not None and not questions:
            self.post_message(self.Left(self, gone))

    def on_click(self) -> None:
        """Ask for the keys."""
        if not self.has_focus:
            self.post_message(self.Wanted(self))

    def on_focus(self) -> None:
        """Show the answers; they count a moment later."""
        self._count_from = time.monotonic() + COUNT_AFTER
        self.redraw()

    def blur(self) -> Self:
        """Keep the keys while hidden, so that no neighbour gets them: `Left` gives them back."""
        return super().blur() if self.questions else self

    def on_blur(self) -> None:
        """Forget a half-given answer."""
        self.choose(None)

    def on_key(self, event: events.Key) -> None:
        """Take an answer; no key goes anywhere else from here."""
        event.stop()
        event.prevent_default()
        question = self.shown
        if question is None or event.time < self._count_from:
            return
        answer = next((one for one in question.answers if one.key == event.key), None)
        if event.key == "enter" and self.chosen is not None:
            self._give(question, self.chosen)
        elif event.key == "enter" and question.more:
            self.post_message(self.More(question))
        elif event.key == "tab":
            self._set((*self.questions[1:], question))
        elif event.key == "escape":
            self._step_back()
        elif answer is not None and answer.wide:
            self.choose(answer)
        elif answer is not None:
            self._give(question, answer)

    def choose(self, answer: Answer | None) -> None:
        """Show the rule of a wide answer until enter, or that of none."""
        self.chosen = answer
        self.redraw()
        self.post_message(self.KeysChanged())

    def _give(self, question: HeldQuestion, answer: Answer) -> None:
        self._set(self.questions[1:])
        self.post_message(self.Answered(question, answer))

    def _step_back(self) -> None:
        if self.chosen is None:
            self.post_message(self.Left(self))
        self.choose(None)

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw who wants where, why it is asked, or how to answer."""
        paint, question = self.paint, self.shown
        blank = paint(on="raised")
        if question is None:
            return two_sided([], [], width, blank)
        edge: Piece = (f"{self.glyphs.edge} ", paint("warning", "raised", "b"))
        rows = (self._first, self._second, self._third)
        left, right = rows[row](question, width - 2)
        return two_sided([edge, *left], right, width, blank, self.glyphs.ellipsis)

    def _first(self, question: HeldQuestion, width: int) -> tuple[list[Piece], list[Piece]]:
        """Show the end of the host in any case: it says whose it is."""
        paint, mark = self.paint, self.glyphs.ellipsis
        right = [(self._times(question), paint("muted", "raised"))]
        room = width - total(right) - 1
        sign, wish, target = f"{self.glyphs.waiting} ", f" {question.wish} ", question.target
        who = room - len(sign) - len(wish) - len(target)
        lead = sign + cut(question.who, max(WHO, who), mark) + wish
        if len(lead) + len(target) > room:
            target = mark + target[-max(1, room - len(lead) - 1) :]
        bold = paint("foreground", "raised", "b")
        return [(lead, paint("foreground", "raised")), (target, bold)], right

    def _times(self, question: HeldQuestion) -> str:
        held, most = self._now - question.since, question.ends - question.since
        others = len(self.questions) - 1
        more = f" +{others}" if others else ""
        return f" {question.waiting} held {clock(held)} of {clock(most)}{more} "

    def _second(self, question: HeldQuestion, width: int) -> tuple[list[Piece], list[Piece]]:
        if self.chosen is None:
            return [(question.reason, self.paint("muted", "raised"))], []
        rule = self.chosen.rule  # its end says for how long, and whose the host is
        if len(rule) > width:
            rule = self.glyphs.ellipsis + rule[-(width - 1) :]
        return [(rule, self.paint("foreground", "raised", "b"))], []

    def _third(self, question: HeldQuestion, width: int) -> tuple[list[Piece], list[Piece]]:
        if not self.has_focus:
            key = self.paint("warning", "raised", "b")
            return [(self._opener, key), (" answers", self.paint("muted", "raised"))], []
        if self.chosen is not None:
            return self._keys(self.other_keys(), width), []
        keys = [(one.shown, one.label) for one in question.answers]
        keys += [("enter", "all")] if question.more else []
        others = [one for one in self.other_keys() if one[0] != "enter"]
        for one in reversed(others):  # in the last line of the screen, too
            if _room([*keys, one]) < width:
                keys.append(one)
        return self._keys(keys, width), []

    def other_keys(self) -> tuple[tuple[str, str], ...]:
        """Return the keys that work now beside the answers' own, and what they do."""
        if self.chosen is not None:
            return ("enter", self.chosen.does), ("esc", "back")
        more = [("tab", "next")] if len(self.questions) > 1 else []
        more += [("enter", "all answers")] if self.shown is not None and self.shown.more else []
        return (*more, ("esc", "later"))

    def _keys(self, keys: Sequence[tuple[str, str]], width: int) -> list[Piece]:
        """Return all keys, with less air where they would not fit."""
        room = _room(keys) - len(keys)
        gap = " " * max(1, min(3, (width - room) // max(1, len(keys))))
        pieces: list[Piece] = []
        for key, label in keys:
            pieces.append((key, self.paint("accent", "raised", "b")))
            pieces.append((f" {label}{gap}", self.paint("muted", "raised")))
        return pieces

    def blank_style_token(self) -> str:
        """Use the strip's own background."""
        return "raised"


def _room(keys: Sequence[tuple[str, str]]) -> int:
    """Return the cells of keys and labels with one between them."""
    return sum(len(key) + len(label) + 2 for key, label in keys)


def _asked(question: HeldQuestion) -> tuple[object, ...]:
    return question.key, question.target, question.answers


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds."""
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02}"
