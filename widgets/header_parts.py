"""What the line above a pane says and what of it is left when there is little room; pure.

A header is made of parts, and a part has forms from short to long. `chosen` takes a list of wishes
in the order of their rank and grants each that still fits, so that a pane of 20 cells shows number,
sign and name, and a wide one everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from widgets.cells import cells, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow

NAMES = (6, 10, 16)
"""Cells that a name takes when it is cut, the least first."""

BAR = 6
"""Cells of the bar that shows a guest's progress."""

TITLE_FROM = 10
"""Least cells for the guest's title; less of it says nothing."""

LEFT = (
    "number",
    "name",
    "agent",
    "keys",
    "mark",
    "mirror",
    "copy",
    "back",
    "trouble",
    "progress",
    "title",
)
RIGHT = ("sign", "status", "age", "changes", "files", "end")
"""Parts in the order in which they stand, from the left edge and up to the right one."""


class Bit(NamedTuple):
    """Some text, the token of its colour, and how it looks (letters as for `Paint`)."""

    text: str
    token: str = "muted"
    how: str = ""


class Wish(NamedTuple):
    """One form of a part; it takes the place of the part's former form."""

    part: str
    bits: tuple[Bit, ...]


@dataclass(frozen=True, slots=True)
class PaneFacts:
    """What is true of a pane besides what its session is; texts are safe to print."""

    active: bool = False
    """What is typed goes to its agent."""
    current: bool = False
    """Cloche's own keys are about its session."""
    trouble: str = ""
    """What ails its terminal, or empty."""
    back: int = 0
    """Lines of newer output below what is shown."""
    copying: bool = False
    """The page stands still for copy mode."""
    mirrored: bool = False
    """Another client holds the terminal; this one only watches."""
    progress: tuple[int, int] | None = None
    """State 1 runs, 2 failed, 3 unknown, 4 paused, and per cent or -1."""
    marked: bool = False
    """The guest rang or notified since the pane last had the keys."""
    title: str = ""
    """What the guest called its terminal."""


def length(bits: Iterable[Bit]) -> int:
    """Return the cells that bits take."""
    return sum(cells(bit.text) for bit in bits)


def chosen(wishes: Iterable[Wish], width: int) -> dict[str, tuple[Bit, ...]]:
    """Return the form of each part, granting wishes in their order while all fits `width`."""
    found: dict[str, tuple[Bit, ...]] = {}
    used = 0
    for part, bits in wishes:
        grown = used - length(found.get(part, ())) + length(bits)
        if grown <= width:
            found[part], used = bits, grown
    return found


def header_parts(
    row: SessionRow, facts: PaneFacts, glyphs: Glyphs, width: int, takes: str
) -> tuple[list[Bit], list[Bit]]:
    """Return what stands left and right in a header of `width` cells.

    `takes`: how the user takes over a terminal that is attached elsewhere, such as `ctrl+g enter`.
    """
    found = chosen(_wishes(row, facts, glyphs, takes), width)
    room = width - sum(length(bits) for bits in found.values()) - 3
    if facts.title and room >= TITLE_FROM:
        found["title"] = (Bit(f"  {cut(facts.title, room, glyphs.ellipsis)}", "muted"),)
    left = [bit for part in LEFT for bit in found.get(part, ())]
    return left, [bit for part in RIGHT for bit in found.get(part, ())]


def _wishes(row: SessionRow, facts: PaneFacts, glyphs: Glyphs, takes: str) -> Iterator[Wish]:
    """Yield all wishes, the most important first."""
    state = f"state-{row.state}"
    short, long = _forms(facts, glyphs, takes)
    yield Wish("sign", (Bit(f" {row.sign}", state, "b"),))
    yield Wish("end", (Bit(" "),))
    yield from _number(row, facts, glyphs)
    yield from _name(row, glyphs, NAMES[:1])
    yield from short[:2]
    yield from _name(row, glyphs, NAMES[1:2])
    yield from short[2:]
    yield from _name(row, glyphs, NAMES[2:])
    yield Wish("status", (Bit(f" {row.status.partition(' for ')[0]}", state),))
    yield Wish("status", (Bit(f" {row.status}", state),))
    yield from long
    if row.files:
        yield Wish("changes", _changes(row, glyphs))
    yield from _name(row, glyphs, (cells(row.name),))
    yield from _progress(facts, glyphs)
    yield Wish("age", (Bit(f"  {row.age}"),))
    if facts.mirrored:
        text = f"  {glyphs.mirror} attached elsewhere {glyphs.dot} {takes} takes it"
        yield Wish("mirror", (Bit(text, "warning", "b"),))
    yield Wish("agent", (Bit(f"  {row.agent}"),))
    if row.files:
        noun = "file" if row.files == 1 else "files"
        yield Wish("files", (Bit(f" {glyphs.dot} {row.files} {noun}"),))


def _number(row: SessionRow, facts: PaneFacts, glyphs: Glyphs) -> Iterator[Wish]:
    edge = glyphs.cursor if facts.current else " "
    token = "accent" if facts.active or facts.current else "muted"
    number = f"{row.number} " if row.number else ""
    yield Wish("number", (Bit(edge, "accent", "b"), Bit(number, token, "b")))


def _name(row: SessionRow, glyphs: Glyphs, widths: Iterable[int]) -> Iterator[Wish]:
    token = "foreground" if row.live else "muted"
    for width in widths:
        yield Wish("name", (Bit(cut(row.name, width, glyphs.ellipsis), token, "b"),))


def _changes(row: SessionRow, glyphs: Glyphs) -> tuple[Bit, ...]:
    return (
        Bit(f"  +{row.added}", "diff-added"),
        Bit(f" {glyphs.minus}{row.removed}", "diff-removed"),
    )


def _forms(facts: PaneFacts, glyphs: Glyphs, takes: str) -> tuple[list[Wish], list[Wish]]:
    """Return what must not be overlooked, in short forms and in longer ones."""
    short: list[Wish] = []
    long: list[Wish] = []
    if facts.active and not facts.mirrored:
        short.append(Wish("keys", (Bit(f" {glyphs.keys}", "accent", "b"),)))
    if facts.mirrored:
        short.append(Wish("mirror", (Bit(f" {glyphs.mirror}", "warning", "b"),)))
        text = f"  {glyphs.mirror} attached elsewhere"
        long.append(Wish("mirror", (Bit(text, "warning", "b"),)))
    if facts.trouble:
        short.append(Wish("trouble", (Bit(f" {glyphs.stalled}", "warning", "b"),)))
        text = f"  {glyphs.stalled} {facts.trouble}"
        long.append(Wish("trouble", (Bit(text, "warning"),)))
    if facts.marked:
        short.append(Wish("mark", (Bit(f" {glyphs.bell}", "warning", "b"),)))
    if facts.copying:
        short.append(Wish("copy", (Bit(" copy", "accent", "b"),)))
        long.append(Wish("copy", (Bit("  copy mode", "accent", "b"),)))
    if facts.back:
        noun = "line" if facts.back == 1 else "lines"
        short.append(Wish("back", (Bit(f" {glyphs.back}{facts.back}", "warning", "b"),)))
        text = f"  {glyphs.back} {facts.back} {noun} back"
        long.append(Wish("back", (Bit(text, "warning", "b"),)))
    return short, long


def _progress(facts: PaneFacts, glyphs: Glyphs) -> Iterator[Wish]:
    """Yield the per cent, then the bar; a progress without per cent is a word."""
    if facts.progress is None:
        return
    state, percent = facts.progress
    token = {2: "error", 4: "warning"}.get(state, "accent")
    sign = {2: f"{glyphs.failed} ", 4: f"{glyphs.paused} "}.get(state, "")
    if not 0 <= percent <= 100 or state == 3:
        word = {2: "failed", 4: "paused"}.get(state, "busy")
        yield Wish("progress", (Bit(f"  {sign}{word}", token),))
        return
    yield Wish("progress", (Bit(f"  {sign}{percent}%", token),))
    full = percent * BAR // 100
    yield Wish(
        "progress",
        (
            Bit(f"  {sign}{glyphs.full * full}", token),
            Bit(glyphs.empty * (BAR - full), "faint"),
            Bit(f" {percent}%", token),
        ),
    )
