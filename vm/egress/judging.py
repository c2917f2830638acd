"""The gateway's judge: the policy decides, and what it would ask about waits here for an answer.

An answer changes the policy and nothing else; then everything that waits is decided again. So what
a connection is let through by is always a rule that stands somewhere.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vm.egress import policy as deciding
from vm.egress.addresses import check_all
from vm.egress.own import read_own
from vm.egress.questions import TIMEOUT_S, Question, Questions, Released

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vm.egress.addresses import Own
    from vm.egress.kinds import Request, Verdict
    from vm.egress.policy import Policy

OWN_S: Final = 5.0
"""How long a reading of this machine's own addresses is believed."""


class PolicyJudge:
    """A `Judge` of one session; lives in an asyncio loop.

    `changed` is called when the open questions are no longer what they were. `own` reads this
    machine's addresses.
    """

    def __init__(
        self,
        policy: Policy,
        changed: Callable[[], None],
        timeout_s: float = TIMEOUT_S,
        own: Callable[[], Own] = read_own,
    ) -> None:
        self.policy = policy
        self._changed = changed
        self._questions = Questions(timeout_s)
        self._waiting: dict[int, asyncio.Future[Verdict]] = {}
        self._read_own = own
        self._own = own()
        self._own_at = time.monotonic()
        self._alarm: asyncio.TimerHandle | None = None

    def decide(self, request: Request) -> Verdict:
        """Decide by the policy as it is now."""
        return deciding.decide(request, self.policy, self._addresses(), time.time())

    async def ask(self, flow: int, request: Request, verdict: Verdict) -> Verdict:
        """Hold a connection until the policy decides about it, or nobody answered in time."""
        if not self._questions.hold(flow, request, verdict.reason, time.time()):
            reason = "As many questions as may wait already do."
            return replace(verdict, action="deny", code="too-many-questions", reason=reason)
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting[flow] = answer
        self._tell()
        try:
            return await answer
        finally:
            del self._waiting[flow]
            if answer.cancelled():
                self._questions.gave_up(flow)
                self._tell()

    def check(self, request: Request, verdict: Verdict) -> Verdict:
        """Decide again with the addresses; an answer for once counts even if it has just ended."""
        again = self.decide(request)
        if again.action != "ask":
            return again
        found = check_all(request.addresses, verdict.private, self._addresses())
        if found is None:
            return verdict
        reason = f"{request.host} leads to {found.reason}."
        return replace(verdict, action="deny", level="private", code=found.code, reason=reason)

    def questions(self) -> tuple[Question, ...]:
        """Return the open questions, the one that was asked first in front."""
        return self._questions.open()

    def change(self, policy: Policy, timeout_s: float | None = None) -> None:
        """Put another policy in force, and let go on what it decides about.

        With `timeout_s` questions wait so long from now on, open ones included.
        """
        self.policy = policy
        if timeout_s is not None:
            self._questions.retime(timeout_s)
        self._release(self._questions.settle(self.decide, time.time()))
        self._tell()

    def _release(self, released: Iterable[Released]) -> None:
        for one in released:
            answer = self._waiting.get(one.flow)
            if answer is not None and not answer.done():
                answer.set_result(one.verdict)

    def _tell(self) -> None:
        """Tell of the change, and be called again when the next question ends."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = self._questions.next_deadline()
        if deadline is not None:
            delay = max(deadline - time.time(), 0.0)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._expire)
        self._changed()

    def _expire(self) -> None:
        self._release(self._questions.expire(time.time()))
        self._tell()

    def close(self) -> None:
        """Let nothing be called any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _addresses(self) -> Own:
        now = time.monotonic()
        if now - self._own_at > OWN_S:
            self._own, self._own_at = self._read_own(), now
        return self._own
