"""The progress of a long command on stderr."""

from __future__ import annotations

import contextlib
import shutil
import sys


class Bar:
    """A bar on a terminal, one line a step elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        """`shown`: there is a terminal that a bar can be drawn on."""
        self._shown = shown
        self._last = ""

    def show(self, what: str, share: float) -> None:
        """Draw the bar."""
        if self._shown:
            cells = round(30 * min(1.0, max(0.0, share)))
            line = f"{'━' * cells}{'─' * (30 - cells)} {share:4.0%} {what}"
            # a line that wraps could not be drawn over
            _say(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        elif what != self._last:
            _say(f"{what}\n")
        self._last = what

    def end(self) -> None:
        """Leave the line, if there is one."""
        if self._shown and self._last:
            _say("\n")


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody can hear it, and the work goes on
        sys.stderr.write(text)
        sys.stderr.flush()
