"""Where requests to models wait once a session's cap is reached."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from vm.egress.broker.meter import Caps, Totals, Waiting
from vm.egress.kinds import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S: Final = 1.0
"""How often is looked whether who asked is still there."""


class CapGate:
    """Lets requests pass below the caps; at one they wait for a word. Lives in an asyncio loop.

    `told` is called with all that wait whenever that changes. Each waits `wait_s` at most. While
    `ask` is off nobody can be asked, and a request at a cap is refused at once.
    """

    def __init__(
        self,
        caps: Caps,
        totals: Totals,
        wait_s: float,
        told: Callable[[Waiting], None],
        *,
        ask: bool,
    ) -> None:
        self.caps, self.totals, self.ask = caps, totals, ask
        self.stopped = False
        """The user's word: at a cap nothing waits, all is refused until the caps are others."""
        self._wait_s, self._told = wait_s, told
        self._waiting: dict[asyncio.Future[bool], float] = {}
        self._since = 0.0

    async def enter(self, gone: Callable[[], bool]) -> None:
        """Return when a request may go on; `gone` tells whether its client gave up.

        Raises Refused: `cap`, or `guest-gone`, for an answer that nobody reads is paid for, too.
        """
        if not self.totals.over(self.caps):
            return
        if not self.ask or self.stopped:
            raise Refused("cap")
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = now = time.time()
        self._since = self._since if len(self._waiting) > 1 else now
        self._tell()
        try:
            passed = await self._word(waiter, gone)
        finally:
            del self._waiting[waiter]
            self._tell()
        if not passed:
            raise Refused("cap")

    async def _word(self, waiter: asyncio.Future[bool], gone: Callable[[], bool]) -> bool:
        """Wait for the user's word; False where none came in time. Raises Refused."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait_s
        while not waiter.done() and (left := until - loop.time()) > 0:
            await asyncio.wait({waiter}, timeout=min(LOOK_S, left))
            if gone():
                raise Refused("guest-gone")
        return waiter.done() and waiter.result()

    def change(self, caps: Caps, *, stopped: bool = False, ask: bool = True) -> None:
        """Put other caps in force: what waits goes on, is refused, or waits for more."""
        self.caps, self.stopped, self.ask = caps, stopped, ask
        over = self.totals.over(caps)
        if over and ask and not stopped:
            if self._waiting:
                self._tell()  # whoever named these caps took it for an answer
            return
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(not over)

    def _tell(self) -> None:
        came = self._waiting.values()
        self._told(Waiting(len(came), self._since, max(came) + self._wait_s) if came else Waiting())
