"""What the strip of held connections says: pure functions from a session's questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot.safe_text import safe_name
from vm.egress.questions import Choice, choices
from vm.egress.rules import is_literal
from widgets.question_strip import Answer, HeldQuestion

if TYPE_CHECKING:
    from app.protocol import SessionInfo
    from vm.egress.questions import Question

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


def given_by(question: Question, key: str) -> Choice | None:
    """Return the answer that a key gives to a question."""
    wanted = next((answer for name, _, _, answer in KEYS if name == key), None)
    if wanted is None or (wanted[1] and is_literal(question.host)):
        return None
    return next((one for one in choices(question) if (one.answer, one.wide) == wanted), None)


def held_question(info: SessionInfo, question: Question) -> HeldQuestion:
    """Return a session's question as the strip shows it."""
    ports = ",".join(map(str, question.ports))
    host = f"[{question.host}]" if ":" in question.host else question.host
    answers: list[Answer] = []
    for key, shown, label, _ in KEYS:
        choice = given_by(question, key)
        if choice is not None:
            wide = choice.wide or choice.scope in ("project", "always")
            answers.append(Answer(key, shown, label, safe_name(choice.text).text, wide))
    return HeldQuestion(
        key=f"{info.id} {question.host}",
        who=safe_name(f"{info.agent} ({info.name or info.id})").text,
        target=safe_name(f"{host}:{ports}").text,
        reason=safe_name(question.reason).text,
        since=question.first_seen,
        ends=question.ends,
        waiting=question.waiting,
        answers=tuple(answers),
    )
