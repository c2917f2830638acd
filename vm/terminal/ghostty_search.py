"""The engine's search over a terminal that does not change, and the matches it found."""

from __future__ import annotations

import bisect
from time import monotonic
from typing import TYPE_CHECKING, Any

from vm.terminal.copy_text import Place, Span
from vm.terminal.ghostty_grid import Grid
from vm.terminal.screen import MAX_NEEDLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vm.terminal.copy_text import Text
    from vm.terminal.ghostty_terminal import Terminal

MAX_MATCHES = 10_000
"""Matches that are kept, the newest ones."""

BATCH = 256
"""Matches that are looked at between two looks at the clock."""


class Search:
    """One search: `work` until it is done, then go from match to match.

    The engine finds text whatever its case (of ASCII letters). When the text has upper case the
    matches of another case are thrown away here.
    """

    def __init__(self, terminal: Terminal, text: Text, needle: str) -> None:
        self._grid = Grid(terminal)
        self._text = text
        self.needle = needle[:MAX_NEEDLE]
        self._ffi, self._lib = terminal.ffi, terminal.lib
        out = self._ffi.new("GhosttySearch*")
        made = self._lib.ghostty_search_new(self._ffi.NULL, out, terminal.handle)
        terminal.ghostty.check(made, "a search")
        self._search = out[0]
        self._status = self._ffi.new("GhosttySearchStatus*")
        data = self.needle.encode("utf-8", "replace")
        self._bytes = self._ffi.new("uint8_t[]", data)
        it = self._ffi.new("GhosttyString*")
        it.ptr, it.len = self._bytes, len(data)
        started = self._lib.ghostty_search_set(
            self._search, self._lib.GHOSTTY_SEARCH_OPT_NEEDLE, it
        )
        terminal.ghostty.check(started, "to search")
        self._count = self._ffi.new("size_t*")
        self._exact = self.needle != self.needle.lower()
        self._found: Any = None
        self._spans: Any = None  # the memory that `_found` points into
        self._taken = 0
        self._kept: list[Span] = []
        self.done = False
        self.matches: list[Span] = []
        """From the oldest to the newest."""

    def close(self) -> None:
        """Free the engine's object; before its terminal."""
        self._lib.ghostty_search_free(self._search)

    def work(self, seconds: float) -> bool:
        """Go on for about so long; True while there is more to do."""
        end = monotonic() + seconds
        while not self.done and monotonic() < end:
            self._step()
        return not self.done

    def _step(self) -> None:
        if self._found is not None:
            self._take(self._found)
            return
        lib = self._lib
        lib.ghostty_search_tick(self._search, self._status)
        if self._status[0] == lib.GHOSTTY_SEARCH_STATUS_FEED_REQUIRED:
            lib.ghostty_search_feed(self._search)
        if self._status[0] == lib.GHOSTTY_SEARCH_STATUS_COMPLETE or self._total() >= MAX_MATCHES:
            self._found = self._all()

    def _total(self) -> int:
        self._lib.ghostty_search_get(
            self._search, self._lib.GHOSTTY_SEARCH_DATA_TOTAL_MATCHES, self._count
        )
        return int(self._count[0])

    def _all(self) -> Any:
        """Return the engine's matches, the newest first, in a buffer of its own kind."""
        lib, ffi = self._lib, self._ffi
        # the engine gives all of them or none, so there must be room for all: a page of its
        # memory more than MAX_MATCHES at most
        count = self._total()
        self._spans = ffi.new("GhosttySelection[]", max(1, count))
        for i in range(count):
            self._spans[i].size = ffi.sizeof("GhosttySelection")
        buffer = ffi.new("GhosttySelectionBuffer*")
        buffer.ptr, buffer.cap = self._spans, count
        if count:
            got = lib.ghostty_search_get(self._search, lib.GHOSTTY_SEARCH_DATA_MATCHES, buffer)
            self._grid.terminal.ghostty.check(got, "the matches")
        return buffer

    def _take(self, found: Any) -> None:
        """Keep the next matches that are of the right case."""
        total = min(int(found.len), MAX_MATCHES)
        end = min(self._taken + BATCH, total)
        for i in range(self._taken, end):
            span = self._grid.span(found.ptr[i])
            if span is not None and (not self._exact or self._same_case(span)):
                self._kept.append(span)
        self._taken = end
        if end == total:
            # some are told twice, where the searches of screen and scrollback meet
            self.matches = sorted(set(self._kept))
            self.done = True
            self._found = self._spans = None

    def _same_case(self, span: Span) -> bool:
        parts: list[str] = []
        for y in range(span.first.y, span.last.y + 1):
            found = span.columns(y, self._text.columns)
            if found is not None:
                parts += self._text.line(y).cells[found[0] : found[1]]
        shown = "".join(parts)
        # characters of several parts are not all in `line`: what cannot be told is kept
        return shown == self.needle or shown.lower() != self.needle.lower()

    # -- going from match to match -----------------------------------------------------------

    def following(self, place: Place) -> int | None:
        """Return the number of the first match after a place, the oldest when none is."""
        if not self.matches:
            return None
        found = bisect.bisect_right(self.matches, (place, Place(1 << 62, 0)))
        return found % len(self.matches)

    def preceding(self, place: Place) -> int | None:
        """Return the number of the last match before a place, the newest when none is."""
        if not self.matches:
            return None
        return (bisect.bisect_left(self.matches, (place,)) - 1) % len(self.matches)

    def at(self, place: Place) -> int | None:
        """Return the number of the match that begins at a place."""
        found = bisect.bisect_left(self.matches, (place,))
        here = found < len(self.matches) and self.matches[found].first == place
        return found if here else None

    def between(self, top: int, bottom: int) -> Iterator[tuple[int, Span]]:
        """Yield number and span of the matches that lie on rows `top` to `bottom`."""
        at = max(0, bisect.bisect_left(self.matches, (Place(top, 0),)) - 1)
        for number in range(at, len(self.matches)):
            span = self.matches[number]
            if span.first.y > bottom:
                return
            if span.last.y >= top:
                yield number, span
