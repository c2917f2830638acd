"""How panes share the stage: how many fit, where each stands, which session it shows.

Pure: sizes and session ids in, places and rectangles out. All sizes are in terminal cells. A place
is a position in the grid, counted row by row from 0; it is free where its session is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

COUNTS = (1, 2, 4, 6, 9)
"""How many panes the user can wish for."""

MIN_COLUMNS, MIN_ROWS = 20, 5
"""Least size of a terminal; the engine takes no smaller one."""

EDGE, HEADER = 1, 1
"""Cells that a pane takes besides its terminal: the left edge, the header line."""

USUAL_COLUMNS, USUAL_ROWS = 80, 24
"""What programs are made for; shapes are chosen that come close to it."""

SIDE_BY_SIDE = 2 * (USUAL_COLUMNS + EDGE)
"""From this width of the stage on two panes stand beside each other."""

Places = tuple[str, ...]
"""The session in each place, empty where the place is free."""


class Shape(NamedTuple):
    """A grid of so many rows and columns."""

    rows: int
    columns: int


class Box(NamedTuple):
    """A pane's rectangle on the stage, its edge and header included."""

    x: int
    y: int
    width: int
    height: int


def fits(shape: Shape, width: int, height: int) -> bool:
    """Tell whether every pane gets a terminal of at least 20x5."""
    wide = width // shape.columns >= MIN_COLUMNS + EDGE
    return wide and height // shape.rows >= MIN_ROWS + HEADER


def shape_of(count: int, width: int, height: int) -> Shape | None:
    """Return the best shape of `count` panes on a stage, or None when they do not fit."""
    fitting = [shape for shape in _shapes(count, width) if fits(shape, width, height)]
    return max(fitting, key=lambda shape: _comfort(shape, width, height), default=None)


def _shapes(count: int, width: int) -> tuple[Shape, ...]:
    if count == 2:
        beside, stacked = Shape(1, 2), Shape(2, 1)
        return (beside,) if width >= SIDE_BY_SIDE else (stacked, beside)
    if count == 6:
        return (Shape(2, 3), Shape(3, 2))
    side = {1: 1, 4: 2, 9: 3}[count]
    return (Shape(side, side),)


def _comfort(shape: Shape, width: int, height: int) -> float:
    """Return which part of a usual terminal the panes can show in the direction that lacks."""
    columns = width // shape.columns - EDGE
    rows = height // shape.rows - HEADER
    return min(columns / USUAL_COLUMNS, rows / USUAL_ROWS)


def fitting(wished: int, width: int, height: int) -> int:
    """Return the largest count up to `wished` that fits; one pane is always shown."""
    found = [n for n in COUNTS if n <= wished and shape_of(n, width, height) is not None]
    return max(found, default=1)


def enough(sessions: int) -> int:
    """Return the least count that has a place for each of so many sessions, 9 at most."""
    return next((count for count in COUNTS if count >= sessions), COUNTS[-1])


def beside(count: int, direction: int) -> int:
    """Return the next larger (1) or smaller (-1) count; the last one is its own neighbour."""
    position = COUNTS.index(count) + direction
    return COUNTS[max(0, min(position, len(COUNTS) - 1))]


def boxes(places: Places, shape: Shape, width: int, height: int) -> dict[str, Box]:
    """Return each session's rectangle; panes take over the room of free places in their row.

    A row without any pane leaves its room to the other rows.
    """
    rows = [_row(places, shape, row) for row in range(shape.rows)]
    rows = [sessions for sessions in rows if sessions]
    found: dict[str, Box] = {}
    for sessions, (y, tall) in zip(rows, _cuts(height, len(rows)), strict=True):
        for session, (x, wide) in zip(sessions, _cuts(width, len(sessions)), strict=True):
            found[session] = Box(x, y, wide, tall)
    return found


def _row(places: Places, shape: Shape, row: int) -> list[str]:
    begin = row * shape.columns
    return [session for session in places[begin : begin + shape.columns] if session]


def _cuts(length: int, parts: int) -> list[tuple[int, int]]:
    """Cut a length into parts (start, size) that differ by one cell at most, the larger first."""
    cuts: list[tuple[int, int]] = []
    start = 0
    for part in range(parts):
        size = length // parts + (part < length % parts)
        cuts.append((start, size))
        start += size
    return cuts


class Tiling:
    """Which session stands where: sessions keep their places while they exist.

    A session that is chosen and has no place takes a free one, else that of the session that was
    only looked at last, else that of the one that was used least recently; sessions without a
    machine give way first. Fewer panes keep the sessions that were used last, and when there are
    more again, the former ones come back to their places.
    """

    def __init__(self, remembered: Places = ()) -> None:
        self._places: dict[int, Places] = {}
        self._remembered = _each_once(remembered)
        if len(remembered) in COUNTS:
            self._places[len(remembered)] = self._remembered
        self._shown: Places = ()
        self._used: dict[str, int] = {}
        self._clock = 0
        self._current = ""
        self._visitor = ""

    @property
    def shown(self) -> Places:
        """The places as they were arranged last."""
        return self._shown

    @property
    def sessions(self) -> list[str]:
        """The sessions that have a place, in the order of their places."""
        return [session for session in self._shown if session]

    def use(self, session: str) -> None:
        """Note that the user works in a session: it stays longer than others."""
        self._stamp(session)
        if session == self._visitor:
            self._visitor = ""

    def _stamp(self, session: str) -> None:
        self._clock += 1
        self._used[session] = self._clock

    def count(self, limit: int, known: Collection[str], live: Collection[str], current: str) -> int:
        """Return how many places are needed, `limit` at most."""
        wanted = {*live, *self.sessions, current}
        return min(limit, enough(len(wanted.intersection(known)) or 1))

    def arrange(
        self, count: int, current: str, known: Sequence[str], live: Collection[str]
    ) -> Places:
        """Return the sessions of `count` places and keep them.

        `current` always has a place; `known` are all sessions in the order in which they fill free
        places, `live` those of them that do so by themselves.
        """
        if current != self._current:
            self._current = current
            self._stamp(current)
        self._used = {s: at for s, at in self._used.items() if s in known}
        base = [session if session in known else "" for session in self._base(count)]
        staying = self._staying(count, current, known, live)
        order = known if not any((*self._shown, *base)) else staying
        places = _settled(base, staying, [session for session in order if session in staying])
        self._shown = self._places[count] = tuple(places)
        return self._shown

    def _base(self, count: int) -> list[str]:
        """Return the places that sessions go back to."""
        before = self._shown
        if count > len(before):
            before = self._places.get(count, before)
        return [*before, *("" for _ in range(count))][:count]

    def _staying(
        self, count: int, current: str, known: Sequence[str], live: Collection[str]
    ) -> list[str]:
        """Return which sessions have a place: those shown, the current one, then others."""
        staying = [session for session in self.sessions if session in known]
        if current in known and current not in staying:
            if len(staying) >= count:
                staying.remove(self._victim(staying, live))
                self._visitor = current
            staying.append(current)
        while len(staying) > count:
            others = [session for session in reversed(staying) if session != current]
            staying.remove(self._victim(others, live))  # of equals the one in the last place
        former = (*self._places.get(count, ()), *self._remembered)
        for session in (*former, *(s for s in known if s in live)):
            if len(staying) < count and session in known and session not in staying:
                staying.append(session)
        return staying

    def _victim(self, sessions: Iterable[str], live: Collection[str]) -> str:
        used: Mapping[str, int] = self._used
        return min(sessions, key=lambda s: (s != self._visitor, s in live, used.get(s, 0)))


def _each_once(places: Places) -> Places:
    """Free every place whose session has one before it."""
    return tuple("" if session in places[:at] else session for at, session in enumerate(places))


def _settled(base: list[str], staying: list[str], order: list[str]) -> list[str]:
    """Put each session back into its place, and those without one into the first free ones."""
    places = [session if session in staying else "" for session in base]
    for session in order:
        if session not in places:
            places[places.index("")] = session
    return places
