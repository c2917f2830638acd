"""What ends the workstation from outside: the user's terminal is given back before it does.

A program that a signal ends leaves its terminal in raw mode, on the other screen and reporting the
mouse: the shell that comes back is of no use. Sessions go on in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)

PATIENCE_S: Final = 3
"""Whole seconds until the alarm clock ends a program that cannot leave: a terminal that takes
nothing any more blocks whoever writes to it."""


@contextlib.contextmanager
def ended_by_signals(leave: Callable[[], None]) -> Generator[None]:
    """Call `leave` when a signal asks to end, and end by that signal once the body is done.

    The body runs an event loop in this thread. A second signal of the same kind ends at once.
    """
    got: list[int] = []

    def end(number: int, _frame: object) -> None:
        got.append(number)
        signal.signal(number, signal.SIG_DFL)
        signal.alarm(PATIENCE_S)
        asyncio.get_running_loop().call_soon_threadsafe(leave)

    before = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if got:
            signal.signal(got[0], signal.SIG_DFL)
            os.kill(os.getpid(), got[0])
