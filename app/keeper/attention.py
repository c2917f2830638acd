"""Whether an agent waits for its user: what it says by its terminal, and what followed. Pure.

An agent asks by the bell or by a notification (OSC 9, 99 or 777), which is what agents can be set
to do when they want an answer. It waits from the moment at which its terminal falls silent after
that, until something is typed into it or it works on by itself. What rings while somebody types is
no question: shells ring at every key that leads nowhere. Whether one hangs is `stalling`'s matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.protocol import AgentState

QUIET_S: Final = 10.0
"""Seconds without output after which a running agent counts as idle."""

SETTLE_S: Final = 1.0
"""Seconds without output after which one that asked waits: the question is drawn first."""

GOES_ON_S: Final = 5.0
"""One that still prints so many seconds after it asked has gone on without an answer."""

REDRAWS_S: Final = 10.0
"""Seconds in which one that was made to draw anew has done so, also in an emulated machine."""

TYPING_S: Final = 2.0
"""Seconds after a key in which a bell is an answer to that key."""

_REPORTS: Final = re.compile(
    rb"(?:\x1b\[(?:[IO]|[?>=][0-9;]*[cnu]|\?[0-9;]*\$y|[0-9;]*[nt])"
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\)+"
)
"""What a terminal says by itself: focus, and answers about its kind, modes, size and colours."""


def is_typed(data: bytes) -> bool:
    """Tell whether somebody typed input, and not a terminal that was just opened reports."""
    return _REPORTS.fullmatch(data) is None


@dataclass(slots=True)
class Attention:
    """What is known of one running agent; all times are of one monotonic clock."""

    asks: int
    """How often the terminal had rung or notified when this began."""
    asked: float = 0.0
    """When it asked last and nothing has answered yet, else 0."""
    typed: float = float("-inf")
    """When something was typed into it last."""
    redrawn: float = float("-inf")
    """When it was made to draw its screen anew last, as whoever looks at it does: that is no answer
    and no work of its own."""

    def look(
        self, now: float, asks: int, last_output: float, *, stalled: bool = False
    ) -> AgentState:
        """Return how the agent is, by the count of asks so far and the time of its last output.

        `stalled`: while it said nothing it stood still, though it is not at its prompt.
        """
        if asks != self.asks:
            self.asks = asks
            if now - self.typed > TYPING_S:
                self.asked = now
        goes_on = max(self.asked + GOES_ON_S, self.redrawn + REDRAWS_S)
        if self.typed >= self.asked or last_output > goes_on:
            self.asked = 0.0
        if self.asked and now - last_output >= SETTLE_S:
            return "waiting"
        if now - last_output <= QUIET_S:
            return "working"
        return "stalled" if stalled else "idle"
