"""Connections that wait for an answer: what is asked, and what each answer would write.

All that waits for one host is one question. An answer is a rule, no more: whoever gets it adds it
to the policy and lets `settle` decide again. So a connection goes on because of the rule that was
shown, and one from elsewhere (the command line, a neighbour's `*.x`) lets it go on just as well.

Pure: no clock and no I/O; times are seconds on any one clock, the same for all calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from vm.egress.kinds import Request, Verdict
from vm.egress.names import widened
from vm.egress.rules import MAX_PORTS, Effect, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    Decide = Callable[[Request], Verdict]

Answer = Literal["once", "session", "project", "always", "deny", "deny-project", "deny-always"]
Scope = Literal["once", "session", "project", "always"]
"""How long a rule holds: 60 s, this session, this workspace's sessions, every session."""

TIMEOUT_S: Final = 60.0
"""How long a connection waits at most, unless the user's configuration says otherwise."""

MAX_TIMEOUT_S: Final = 600.0
"""The longest that a configuration may say."""

ONCE_S: Final = 60.0
"""How long `once` holds: long enough for a client that tries again."""

MAX_QUESTIONS: Final = 50
"""Most questions at once. A guest that asks for more hosts is not looking for one."""

MAX_HELD: Final = 500
"""Most connections that wait at once."""

SCOPES: Final[dict[Answer, tuple[Effect, Scope]]] = {
    "once": ("allow", "once"),
    "session": ("allow", "session"),
    "project": ("allow", "project"),
    "always": ("allow", "always"),
    "deny": ("deny", "session"),
    "deny-project": ("deny", "project"),
    "deny-always": ("deny", "always"),
}
"""What each answer means."""

WORDS: Final[dict[Scope, str]] = {
    "once": f"for {ONCE_S:.0f} s",
    "session": "in this session",
    "project": "in every session on this workspace",
    "always": "in every session",
}


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked: whether the agent may reach this host."""

    host: str
    ports: tuple[int, ...]
    """Those that were tried, in the order in which they first were."""
    first_seen: float
    ends: float
    """When the question goes away unless the host is tried again."""
    waiting: int
    """How many connections are held now; 0 when every client gave up: an answer still helps."""
    reason: str = ""
    """Why it is asked, as the verdict said."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be given, with exactly what it would write."""

    answer: Answer
    wide: bool
    """It is about all names beside the host, not about the host alone."""
    rule: Rule
    scope: Scope

    @property
    def text(self) -> str:
        """The rule in one line, as `allow pkgs.example:443 in this session`."""
        return f"{self.rule.effect} {self.rule.text} {WORDS[self.scope]}"


@dataclass(frozen=True, slots=True)
class Released:
    """A connection that waits no longer."""

    flow: int
    host: str
    port: int
    verdict: Verdict
    held_s: float


@dataclass(slots=True)
class _Held:
    host: str
    port: int
    since: float


class Questions:
    """All open questions of one session."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout = timeout_s
        self._held: dict[int, _Held] = {}
        self._open: dict[str, Question] = {}

    def retime(self, timeout_s: float) -> None:
        """Have everything wait so long, what waits already included."""
        more, self._timeout = timeout_s - self._timeout, timeout_s
        self._open = {host: replace(one, ends=one.ends + more) for host, one in self._open.items()}

    def hold(self, flow: int, request: Request, reason: str, now: float) -> bool:
        """Let a connection wait for an answer; False when there are too many, then it is refused.

        `flow` must not wait already, and the request must name a port.
        """
        host, port = request.host, request.port or 0
        found = self._open.get(host)
        full = len(self._held) >= MAX_HELD or (found is None and len(self._open) >= MAX_QUESTIONS)
        ports = () if found is None else found.ports
        if full or (port not in ports and len(ports) >= MAX_PORTS):
            return False
        self._held[flow] = _Held(host, port, now)
        first = now if found is None else found.first_seen
        ports = ports if port in ports else (*ports, port)
        self._open[host] = Question(host, ports, first, now + self._timeout, 0, reason)
        return True

    def gave_up(self, flow: int) -> None:
        """Forget a connection whose client did not wait; the question stays until it ends."""
        self._held.pop(flow, None)

    def open(self) -> tuple[Question, ...]:
        """Return the questions, the one that was asked first in front."""
        counts = dict.fromkeys(self._open, 0)
        for held in self._held.values():
            counts[held.host] += 1
        return tuple(replace(one, waiting=counts[one.host]) for one in self._open.values())

    def settle(self, decide: Decide, now: float) -> list[Released]:
        """Decide again about everything that waits, after the policy changed.

        A question of which some ports are decided goes on about the others.
        """
        verdicts: dict[tuple[str, int], Verdict] = {}
        for question in list(self._open.values()):
            asked = [(question.host, port) for port in question.ports]
            verdicts |= {(host, port): decide(Request(host, port)) for host, port in asked}
            left = tuple(port for host, port in asked if verdicts[host, port].action == "ask")
            if left:
                self._open[question.host] = replace(question, ports=left)
            else:
                del self._open[question.host]
        return self._release(
            {
                flow: verdict
                for flow, held in self._held.items()
                if (verdict := verdicts[held.host, held.port]).action != "ask"
            },
            now,
        )

    def expire(self, now: float) -> list[Released]:
        """Refuse what waited too long, and drop questions that nobody waits for any more."""
        reason = f"Nobody answered within {self._timeout:.0f} s."
        verdict = Verdict("deny", "default", "", "ask", "no-answer", reason)
        late = {f: verdict for f, held in self._held.items() if now - held.since >= self._timeout}
        released = self._release(late, now)
        waiting = {held.host for held in self._held.values()}
        for question in list(self._open.values()):
            if now >= question.ends and question.host not in waiting:
                del self._open[question.host]
        return released

    def next_deadline(self) -> float | None:
        """Return when `expire` has something to do, None when nothing waits."""
        return min(
            [held.since + self._timeout for held in self._held.values()]
            + [question.ends for question in self._open.values()],
            default=None,
        )

    def _release(self, verdicts: dict[int, Verdict], now: float) -> list[Released]:
        released: list[Released] = []
        for flow, verdict in verdicts.items():
            held = self._held.pop(flow)
            released.append(Released(flow, held.host, held.port, verdict, now - held.since))
        return released


def choices(question: Question) -> tuple[Choice, ...]:
    """Return every answer to a question as it was shown, narrow ones first.

    Those about `*.x` are left out where that would be a whole public top-level domain.
    """
    narrow = [choice(question, answer, wide=False) for answer in SCOPES]
    if widened(question.host) is None:
        return tuple(narrow)
    kept: list[Answer] = [answer for answer in SCOPES if answer != "once"]
    return (*narrow, *(choice(question, answer, wide=True) for answer in kept))


def choice(question: Question, answer: Answer, *, wide: bool) -> Choice:
    """Return one answer. Raises ValueError where it cannot be widened.

    An allow is about the ports that the question names, a deny about every port.
    """
    effect, scope = SCOPES[answer]
    host = widened(question.host) if wide else question.host
    if host is None or (wide and scope == "once"):
        raise ValueError(f"no wider answer '{answer}' for {question.host}")
    ports = () if effect == "deny" else tuple(sorted(question.ports))
    rule = Rule(effect, host, ports, origin=f"answered: {answer}")
    return Choice(answer, wide, rule, scope)


def rule_of(given: Choice, now: float) -> Rule:
    """Return the rule that an answer adds to the policy, with its end where it has one."""
    return replace(given.rule, until=now + ONCE_S) if given.scope == "once" else given.rule
