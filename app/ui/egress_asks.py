"""What the strip of held connections says, and the queue of questions: pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.ui.cap_asks import CapAsked, cap_question
from snapshot.safe_text import safe_name
from vm.egress.questions import Choice, Question, choices
from vm.egress.rules import is_literal
from widgets.question_strip import Answer, HeldQuestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.protocol import SessionInfo

KEYS = (
    ("o", "o", "once", ("once", False)),
    ("s", "s", "session", ("session", False)),
    ("p", "p", "project", ("project", False)),
    ("a", "a", "always", ("always", False)),
    ("w", "w", "widen", ("session", True)),
    ("d", "d", "deny", ("deny", False)),
    ("exclamation_mark", "!", "deny always", ("deny-always", False)),
)
"""Key, how it is written, what it is called, and which answer it gives."""

LATE_S: Final = 5.0
"""Seconds after its end for which a question is still shown: its keeper may be slow to say so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the session whose agent waits for its answer."""

    session: str
    question: Question


About = Asked | CapAsked
"""What a question of the strip is about."""


def given_by(question: Question, key: str) -> Choice | None:
    """Return the answer that a key gives to a question."""
    return _given(question).get(key)


def _given(question: Question) -> dict[str, Choice]:
    """Return the answers that keys give; an address has no names beside it."""
    literal = is_literal(question.host)
    found = {
        (one.answer, one.wide): one for one in choices(question) if not literal or not one.wide
    }
    return {key: found[wanted] for key, _, _, wanted in KEYS if wanted in found}


def is_wide(choice: Choice) -> bool:
    """Tell whether an answer holds for more than its host, or for longer than the session."""
    return choice.wide or choice.scope in ("project", "always")


def target_of(question: Question) -> str:
    """Return the host, whole, and its ports; safe to print."""
    ports = ",".join(map(str, question.ports))
    host = f"[{question.host}]" if ":" in question.host else question.host
    return safe_name(f"{host}:{ports}").text


def held_question(info: SessionInfo, question: Question) -> HeldQuestion:
    """Return a session's question as the strip shows it."""
    return _held(info.id, f"{info.agent} ({info.name or info.id})", question)


@lru_cache(maxsize=1024)
def _held(session_id: str, who: str, question: Question) -> HeldQuestion:
    """Make it once: the countdown shows it every second."""
    given = _given(question)
    answers = [
        Answer(key, shown, label, safe_name(given[key].text).text, is_wide(given[key]))
        for key, shown, label, _ in KEYS
        if key in given
    ]
    return HeldQuestion(
        key=key_of(session_id, question.host),
        who=safe_name(who).text,
        target=target_of(question),
        reason=safe_name(question.reason).text,
        since=question.first_seen,
        ends=question.ends,
        waiting=question.waiting,
        answers=tuple(answers),
        about=Asked(session_id, question),
    )


def key_of(session_id: str, host: str) -> str:
    """Return what names a question as long as it is open."""
    return f"{session_id} {host}"


def queued(sessions: Sequence[SessionInfo], now: float) -> list[HeldQuestion]:
    """Return all open questions, the oldest in front; one about a cap counts as a first one.

    The second one of a session comes after the first ones of all, and so on: an agent that asks
    for fifty hosts lets the others have their turn.
    """
    found: list[tuple[int, float, HeldQuestion]] = []
    for info in sessions:
        open_ones = (one for one in info.asks if now < one.ends + LATE_S)
        ordered = sorted(open_ones, key=lambda one: one.first_seen)
        for turn, one in enumerate(ordered):
            found.append((turn, one.first_seen, held_question(info, one)))
        cap = cap_question(info)
        if cap is not None and now < cap.ends + LATE_S:
            found.append((0, cap.since, cap))
    found.sort(key=lambda row: row[:2])
    return [held for _, _, held in found]


class AskQueue:
    """The open questions of all sessions without those that were answered here.

    An answer takes a moment until the session's record says so; a question that is asked anew
    meanwhile (another port, a later try) is another one.
    """

    def __init__(self) -> None:
        self._sessions: Sequence[SessionInfo] = ()
        self._given: dict[str, HeldQuestion] = {}

    def take(self, sessions: Sequence[SessionInfo]) -> None:
        """Take the sessions as they are now."""
        self._sessions = sessions
        if not self._given:
            return
        open_ones = {one.key: one for one in queued(sessions, 0.0)}
        self._given = {
            key: one
            for key, one in self._given.items()
            if key in open_ones and _is_same(open_ones[key].about, one.about)
        }

    def give(self, held: HeldQuestion) -> None:
        """Leave out a question: its answer is on the way."""
        self._given[held.key] = held

    def take_back(self, key: str) -> None:
        """Show a question again: its answer did not arrive."""
        self._given.pop(key, None)

    def shown(self, now: float) -> list[HeldQuestion]:
        """Return what can be answered."""
        return [one for one in queued(self._sessions, now) if one.key not in self._given]


def _is_same(now: object, then: object) -> bool:
    """Tell whether a question is the one that was answered: no port more, not asked anew."""
    if isinstance(now, Asked) and isinstance(then, Asked):
        ports = set(now.question.ports) <= set(then.question.ports)
        return ports and now.question.first_seen == then.question.first_seen
    return now == then


def asks_of(info: SessionInfo) -> int:
    """Return how many questions a session has."""
    return len(info.asks) + info.meter.asks


def denied(sessions: Iterable[SessionInfo]) -> int:
    """Return how many connections and names were refused in sessions whose machines run."""
    return sum(info.egress.denied for info in sessions if info.state in ("running", "paused"))
