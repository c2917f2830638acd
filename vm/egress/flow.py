"""One connection's life: decided, dialled, joined, read along, ended, and told to the log."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from vm.egress.host_end import HostEnd
from vm.egress.inspect import inspector_for
from vm.egress.kinds import FAILURES, DialRefused, Entry, Verdict
from vm.egress.local_end import ALERT, Farewell, RefusedHttp, http_refusal
from vm.egress.tcp import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.inspect import Inspector
    from vm.egress.kinds import Dialer, Dialled, Judge, Limits, Log, Request
    from vm.egress.stream import Stream

HTTP_PORT: Final = 80

REASONS: Final = {
    "closed": "Both sides have ended the connection.",
    "reset-by-guest": "The guest reset the connection.",
    "reset-by-host": "The host reset the connection.",
    "host-too-slow": "The host did not take the last bytes in time.",
    "gave-up": "The guest's program gave up before there was an answer.",
    "guest-silent": "The guest has not answered for too long.",
    "replaced": "The guest began anew on the same ports.",
    "idle": "Nothing was sent either way for too long.",
    "link-ended": "The machine's network link ended.",
    "unanswered": "Nobody answered the question in time.",
    "timeout": "The host did not answer.",
    "no-hello": "The guest said nothing that names the host.",
    "not-tls": "The guest does not speak TLS on a port for it.",
    "no-sni": "The TLS ClientHello names no host.",
    "sni-mismatch": "The TLS ClientHello names another host than the one looked up.",
    "hidden-sni": "The TLS ClientHello hides the host's name (ECH).",
    "not-http": "The guest does not speak HTTP/1 on a port for it.",
    "http-no-host": "An HTTP request names no host, or several.",
    "http-target": "An HTTP request has a target that no server answers.",
    "http-connect": "An HTTP request asks for a tunnel.",
    "http-two-lengths": "An HTTP request has two lengths.",
    "http-early-data": "The guest speaks another protocol before the server agreed.",
    "host-mismatch": "An HTTP request asks for another host than the one looked up.",
}


class Phase(enum.Enum):
    """Where a flow stands."""

    ASKED = enum.auto()
    DIALLED = enum.auto()
    JOINED = enum.auto()
    REFUSED = enum.auto()
    """Told so in words, or waiting for the request to tell it to."""
    ENDED = enum.auto()


@dataclass(slots=True)
class Doors:
    """What flows need from outside. `dials` bounds how many connections are made at once."""

    judge: Judge
    dialer: Dialer
    log: Log
    limits: Limits
    wall: Callable[[], float]
    """Unix seconds."""
    dials: asyncio.Semaphore


class Flow:
    """A connection of the guest to somebody. `ended` is called once, when nothing is left of it."""

    def __init__(
        self,
        number: int,
        stream: Stream,
        request: Request,
        doors: Doors,
        ended: Callable[[Flow], None],
    ) -> None:
        self.number = number
        self.stream = stream
        self.request = request
        self.phase = Phase.DIALLED
        self._doors = doors
        self._ended = ended
        self._verdict: Verdict | None = None
        self._end: HostEnd | None = None
        self._inspector: Inspector | None = None
        self._address = ""
        self._began = doors.wall()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def half_open(self) -> bool:
        """Whether the connection is still being made."""
        return self.phase is Phase.DIALLED or self.stream.tcp.state is State.ANSWERED

    def begin(self) -> None:
        """Decide, and do what follows."""
        verdict = self._verdict = self._doors.judge.decide(self.request)
        if verdict.action == "deny":
            self._refuse(verdict)
            return
        if verdict.action == "ask":
            self.phase = Phase.ASKED
        self._task = asyncio.get_running_loop().create_task(self._make(verdict))
        self._task.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        """End a flow whose task failed by a fault of ours, and say so in the log."""
        if not task.cancelled() and (error := task.exception()) is not None:
            reason = f"The gateway failed: {type(error).__name__}: {error}."
            self._note("open", "deny", "gateway-fault", reason)
            self._finish()
            self.stream.abort()

    async def _make(self, verdict: Verdict) -> None:
        if verdict.action == "ask":
            verdict = self._verdict = await self._ask(verdict)
        if verdict.action != "allow":
            self._refuse(verdict)
            return
        self.phase = Phase.DIALLED
        try:
            async with self._doors.dials, asyncio.timeout(self._doors.limits.dial_s):
                dialled = await self._doors.dialer.dial(self.request, verdict)
        except DialRefused as refused:
            self._refuse(replace(verdict, action="deny", code=refused.code, reason=refused.reason))
        except TimeoutError:
            reason = REASONS["timeout"]
            self._refuse(replace(verdict, action="deny", code="timeout", reason=reason))
        else:
            self._join(dialled, verdict)

    async def _ask(self, verdict: Verdict) -> Verdict:
        try:
            async with asyncio.timeout(self._doors.limits.ask_s):
                return await self._doors.judge.ask(self.number, self.request, verdict)
        except TimeoutError:
            reason = REASONS["unanswered"]
            return replace(verdict, action="deny", code="unanswered", reason=reason)

    def _join(self, dialled: Dialled, verdict: Verdict) -> None:
        self._address = dialled.address
        self._inspector = inspector_for(self.request, verdict)
        self._end = HostEnd(
            self.stream, dialled.socket, self._inspector, self._over, self._forbidden
        )
        self.phase = Phase.JOINED
        self.stream.end = self._end
        self._note("open", verdict.action, verdict.code, verdict.reason, dialled.note)
        self.stream.accept()
        if verdict.inspect == "tls":
            self._wait(self._no_hello)

    def _wait(self, then: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._doors.limits.hello_s, then)

    def _no_hello(self) -> None:
        if self._inspector is not None and self._inspector.waiting and self._end is not None:
            self._end.close(reset=True)
            self._forbidden("no-hello")

    def _refuse(self, verdict: Verdict) -> None:
        """Refuse by a reset; plain HTTP gets words, for its tools show them.

        What was allowed and could not be made ends the same way, and stands in the log as allowed.
        """
        action = "allow" if verdict.code in FAILURES else "deny"
        self._note("open", action, verdict.code, verdict.reason)
        if self.request.port != HTTP_PORT:
            self._finish()
            self.stream.abort()
            return
        self.phase = Phase.REFUSED
        answer = http_refusal(self.request, verdict.code, verdict.reason)
        self.stream.end = RefusedHttp(self.stream, answer)
        self.stream.accept()
        self._wait(self._give_up_refusing)

    def _give_up_refusing(self) -> None:
        self._finish()
        self.stream.abort()

    def _forbidden(self, code: str) -> None:
        """End a connection whose bytes may not go on, in words that its protocol has."""
        up = self._end.up if self._end is not None else 0
        self._note_close("deny", code)
        words = ALERT if code in ("no-sni", "sni-mismatch", "hidden-sni") else b""
        if self.request.port == HTTP_PORT and code != "not-http":
            words = http_refusal(self.request, code, REASONS[code])
        if up or not words:
            self._finish()
            self.stream.abort()
            return
        self.phase = Phase.REFUSED
        self.stream.end = Farewell(self.stream, words)
        self.stream.end.room()
        self.stream.flush()
        self._wait(self._give_up_refusing)

    def _over(self, code: str) -> None:
        self._note_close("allow", code)
        self._finish()

    def stop(self, code: str) -> None:
        """End it now, whatever it does: the guest is gone, or the link."""
        if self.phase is Phase.JOINED:
            self._note_close("allow", code)
        elif self.phase in (Phase.ASKED, Phase.DIALLED):
            action = "ask" if self.phase is Phase.ASKED else "allow"
            self._note("open", action, code, REASONS[code])
        self._finish()
        if self._end is not None:
            self._end.close(reset=True)
        self.stream.abort()

    def vanished(self) -> None:
        """Hear that nothing is left of the guest's side."""
        if self.phase in (Phase.ASKED, Phase.DIALLED):
            self.stop("gave-up")
        elif self.phase is Phase.REFUSED:
            self._finish()

    def _finish(self) -> None:
        if self.phase is Phase.ENDED:
            return
        self.phase = Phase.ENDED
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._ended(self)

    # The log.

    def _note_close(self, action: str, code: str) -> None:
        end = self._end
        note = self._inspector.note if self._inspector is not None else ""
        self._note("close", action, code, REASONS[code], note, end.up if end else 0)

    def _note(
        self, kind: str, action: str, code: str, reason: str, note: str = "", up: int = 0
    ) -> None:
        verdict = self._verdict
        now = self._doors.wall()
        entry = Entry(
            at=now,
            kind="close" if kind == "close" else "open",
            host=self.request.host,
            port=self.request.port,
            verdict="allow" if action == "allow" else "ask" if action == "ask" else "deny",
            level=verdict.level if verdict else "",
            rule=verdict.rule if verdict else "",
            origin=verdict.origin if verdict else "",
            code=code,
            reason=reason,
            address=self._address,
            flow=self.number,
            up=up,
            down=self._end.down if self._end else 0,
            duration_ms=max(int((now - self._began) * 1000), 0),
            note=note,
        )
        self._doors.log(entry)
