"""What ends a command from outside takes the way of ctrl+c, so that it cleans up after itself."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""A kill or the end of the machine, and a terminal that was closed."""


@contextmanager
def as_ctrl_c() -> Generator[None]:
    """End by SIGTERM and SIGHUP as by ctrl+c, with 128 + the signal's number as status.

    For what blocks and has no event loop, or runs one for a part of its work. A signal that whoever
    started us made us ignore, as nohup does, stays ignored. For the main thread.
    """
    reasons: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        reasons.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):  # Python's own, or that of an event loop, which ends its task first
            interrupt(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    except KeyboardInterrupt:
        if reasons:
            raise SystemExit(128 + reasons[0]) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
