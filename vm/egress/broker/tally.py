"""What one metered request used: as its answer says, or estimated where that does not say it. Pure.

Nothing may come out as free: a program that hangs up before the last event, or that asks for a
stream without numbers, would get around every cap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vm.egress.broker.usage import Reader, Usage

BYTES_PER_TOKEN: Final = 4
"""Of English text and of code, about: the rule of thumb that the providers themselves give."""


class Tally:
    """Goes along with one request: `sent`, `begins`, `received`, `ends`, then `result`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._sent = 0
        self._reader = Reader(kind, events=False)
        self._whole = False

    def sent(self, piece: bytes) -> None:
        """Count a piece of the request's body."""
        self._sent += len(piece)

    def begins(self, events: bool) -> None:
        """Get ready for an answer: a stream of events, or one body."""
        self._reader = Reader(self._kind, events)

    def received(self, piece: bytes) -> None:
        """Read a piece of the answer's body."""
        self._reader.feed(piece)

    def ends(self) -> None:
        """Note that the answer came to its end."""
        self._whole = True

    def result(self) -> Usage:
        """Return what was used, `said` False where nothing of it was told."""
        told = self._reader.result()
        if told is None:
            return Usage(self._reader.model, self._input(), output=self._output(), said=False)
        if self._whole:
            return told
        fresh = told.fresh if told.tokens > told.output else self._input()
        return replace(told, fresh=fresh, output=max(told.output, self._output()))

    def _input(self) -> int:
        return -(-self._sent // BYTES_PER_TOKEN)

    def _output(self) -> int:
        """Return how many tokens came at least: an event brings one or more."""
        if self._reader.events:
            return self._reader.seen
        return -(-self._reader.seen // BYTES_PER_TOKEN)
