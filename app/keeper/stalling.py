"""Whether a silent agent hangs: what the guest says of it from time to time, put together. Pure.

An agent is stalled when a program that it started has its terminal (so it is not at its own prompt,
and the program is none that waits for single keys, such as an editor), and when for so many seconds
nothing was printed or typed and next to no processor time was used. A program that waits in vain
for the network, for a lock or for a line of input looks like this; so does a server that nobody
asks anything. All times are of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vm.machine.bulk import Activity

CALM: Final = 0.01
"""Share of one processor up to which a program counts as doing nothing: timers tick in some."""

LOOKS: Final = 10
"""How often the guest is asked in the time after which an agent is stalled."""


@dataclass(slots=True)
class Stalling:
    """What is known of one silent agent."""

    bound_s: float
    """Seconds of standing still after which it is stalled; 0: never."""
    _looked: float = float("-inf")
    _cpu_s: float = 0.0
    _since: float = float("inf")

    def due(self, now: float, quiet_since: float) -> bool:
        """Whether the guest is to be asked; nobody asks while there is output."""
        pause = self.bound_s / LOOKS
        return self.bound_s > 0 and now - max(self._looked, quiet_since) >= pause

    def take(self, now: float, seen: Activity) -> None:
        """Take in what the guest says."""
        calm = seen.cpu_s - self._cpu_s <= CALM * (now - self._looked)
        if not seen.waits:
            self._since = float("inf")
        elif not calm or self._since > now:
            self._since = now
        self._looked, self._cpu_s = now, seen.cpu_s

    def stalled(self, quiet_since: float) -> bool:
        """Whether it had stood still for long enough when the guest was asked last."""
        begun = max(self._since, quiet_since)
        return self.bound_s > 0 and self._looked - begun >= self.bound_s
