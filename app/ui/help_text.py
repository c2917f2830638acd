"""The texts of the help: what the signs of a screen mean, and keys lined up in any width. Pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

if TYPE_CHECKING:
    from app.ui.keys import KeyGroup
    from themes.glyphs import Glyphs

KEY_COLUMN: Final = 15
"""Cells for the keys; more keys push the first line of what they do to the right."""

LEAST: Final = 20
"""Cells that a description gets at least, however narrow the page is."""


class Sign(NamedTuple):
    """A sign, the token of its colour, and what it means."""

    sign: str
    token: str
    meaning: str


def legend(screen: str, glyphs: Glyphs) -> tuple[Sign, ...]:
    """Return the signs of a screen by the name of its class; of the fleet where it has none."""
    own = {"ReviewScreen": _review, "EgressScreen": _egress, "CommitScreen": _commits}
    return own.get(screen, _fleet)(glyphs)


def _fleet(glyphs: Glyphs) -> tuple[Sign, ...]:
    states = ("starting", "working", "waiting", "idle", "done", "failed", "paused", "stalled")
    said = {"waiting": "waits for you"}
    return (
        *(Sign(getattr(glyphs, one), f"state-{one}", said.get(one, one)) for one in states),
        Sign(glyphs.stopped, "muted", "stopped"),
        Sign(glyphs.asks, "warning", "wants something of the network"),
        Sign(glyphs.bell, "warning", "did something that you have not seen"),
        Sign(glyphs.mirror, "warning", "attached elsewhere"),
    )


def _review(glyphs: Glyphs) -> tuple[Sign, ...]:
    return (
        Sign(glyphs.open, "muted", "open"),
        Sign(glyphs.accepted, "success", "accepted"),
        Sign(glyphs.rejected, "error", "rejected"),
        Sign(glyphs.mixed, "warning", "accepted in part"),
        Sign(glyphs.merged, "success", "merged into your workspace"),
        Sign(glyphs.drift, "warning", "you changed it too (red: in conflict)"),
        Sign(glyphs.risky, "warning", "can run by side effect"),
        Sign(glyphs.note, "muted", "listed only, never written"),
        Sign(glyphs.viewed, "muted", "viewed"),
        Sign(glyphs.comment, "accent", "comments"),
    )


def _egress(glyphs: Glyphs) -> tuple[Sign, ...]:
    return (
        Sign(glyphs.done, "success", "allowed"),
        Sign(glyphs.failed, "error", "denied"),
        Sign(glyphs.waiting, "warning", "held: asks you"),
        Sign(glyphs.dot, "muted", "dropped: no connection"),
        Sign(glyphs.back, "accent", "pinned to the top, and new rows above"),
    )


def _commits(glyphs: Glyphs) -> tuple[Sign, ...]:
    return (
        Sign(glyphs.risky, "warning", "to look at before it is taken"),
        Sign(glyphs.note, "muted", "left out"),
    )


def legend_text(signs: tuple[Sign, ...], width: int) -> Content:
    """Return signs with their meanings in lines of `width` cells; none is torn in two."""
    parts: list[tuple[str, str]] = []
    used = 0
    for sign, token, meaning in signs:
        cells = len(sign) + len(meaning) + 3
        if used and used + cells > width:
            parts.append(("\n", ""))
            used = 0
        parts += [(sign, f"bold ${token}"), (f" {meaning}  ", "$muted")]
        used += cells
    return Content.assemble(*parts)


def group_text(group: KeyGroup, width: int) -> Content:
    """Return a group's keys lined up in `width` cells: what goes on stands below its beginning."""
    parts: list[tuple[str, str]] = [(f"\n{group.title}", "bold $foreground")]
    indent = " " * (KEY_COLUMN + 3)
    for row in group.rows:
        keys = f"  {' '.join(row.keys):<{KEY_COLUMN}} "
        lines = textwrap.wrap(
            row.what,
            max(LEAST + len(indent), width),
            initial_indent=" " * len(keys),
            subsequent_indent=indent,
        )
        parts += [(f"\n{keys}", "bold $accent")]
        parts += [("\n".join(lines)[len(keys) :], "$muted")]
    return Content.assemble(*parts)
