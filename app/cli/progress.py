"""The progress of a long command on stderr."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S: Final = 1.0
"""Seconds after which a bar is drawn anew; some steps say nothing for many minutes."""


class Bar:
    """A bar with the time that it took so far on a terminal, one line a step elsewhere."""

    def __init__(
        self,
        *,
        shown: bool,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shown`: there is a terminal that a bar can be drawn on. `clock` tells seconds."""
        self._shown = shown
        self._every_s = every_s
        self._clock = clock
        self._began = clock()
        self._now = ("", 0.0)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticking: threading.Thread | None = None

    def show(self, what: str, share: float) -> None:
        """Draw the bar."""
        if self._shown:
            with self._lock:
                self._now = (what, share)
                self._draw()
            self._tick()
        elif what != self._now[0]:
            _say(f"{what}\n")
            self._now = (what, share)

    def end(self) -> None:
        """Leave the line, if there is one."""
        self._over.set()
        if self._ticking is not None:
            self._ticking.join()
        if self._shown and self._now[0]:
            _say("\n")

    def _tick(self) -> None:
        """Let the time move from now on: whoever works here blocks while it works."""
        if self._ticking is None:
            self._ticking = threading.Thread(target=self._keep_drawing, daemon=True)
            self._ticking.start()

    def _keep_drawing(self) -> None:
        while not self._over.wait(self._every_s):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        what, share = self._now
        cells = round(30 * min(1.0, max(0.0, share)))
        minutes, seconds = divmod(int(self._clock() - self._began), 60)
        line = f"{'━' * cells}{'─' * (30 - cells)} {share:4.0%} {minutes}:{seconds:02} {what}"
        # a line that wraps could not be drawn over
        _say(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody can hear it, and the work goes on
        sys.stderr.write(text)
        sys.stderr.flush()
