"""The signs that carry meaning beside colour, in two sets: Unicode and plain ASCII.

Every glyph is exactly one cell wide in every terminal, so columns line up; that is why drift is
not the two-cell lightning emoji. The ASCII set is for terminals and fonts that cannot show more.
"""

from __future__ import annotations

import locale
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One sign for each meaning."""

    starting: str = "◌"
    working: str = "●"
    waiting: str = "◆"
    idle: str = "○"
    done: str = "✓"
    failed: str = "✗"
    paused: str = "‖"
    stalled: str = "!"
    stopped: str = "■"

    blank: str = " "
    open: str = "○"
    accepted: str = "✓"
    rejected: str = "✗"
    mixed: str = "◐"
    risky: str = "!"
    drift: str = "↯"
    note: str = "∅"
    merged: str = "↓"
    viewed: str = "◉"
    comment: str = "¶"
    unfolded: str = "▾"
    folded: str = "▸"

    edge: str = "▌"
    bar: str = "▎"
    cursor: str = "▸"
    gap: str = "⋯"
    ellipsis: str = "…"
    hatch: str = "╱"
    minus: str = "−"
    dot: str = "·"
    rule: str = "─"
    divider: str = "│"
    wrap: str = "↪"
    more: str = "›"
    less: str = "‹"
    rename: str = "→"
    map: str = "▐"
    keys: str = "⌨"
    back: str = "↑"
    bell: str = "♪"
    asks: str = "⇡"
    mirror: str = "⇄"
    full: str = "━"
    empty: str = "─"


UNICODE = Glyphs()
"""The set for every terminal that shows UTF-8."""

ASCII = Glyphs(
    starting="^",
    working="*",
    waiting="?",
    idle="-",
    done="+",
    failed="x",
    paused="=",
    stalled="!",
    stopped="#",
    open="o",
    accepted="+",
    rejected="x",
    mixed="~",
    risky="!",
    drift="%",
    note="0",
    merged="v",
    viewed="=",
    comment='"',
    unfolded="v",
    folded=">",
    edge="|",
    bar="|",
    cursor=">",
    gap=".",
    ellipsis="~",
    hatch="/",
    minus="-",
    dot=",",
    rule="-",
    divider="|",
    wrap="\\",
    more=">",
    less="<",
    rename=">",
    map="|",
    keys="@",
    back="^",
    bell="&",
    asks="^",
    mirror="<",
    full="#",
    empty=".",
)
"""The set for terminals without UTF-8."""


def glyphs_of_environment() -> Glyphs:
    """Return plain signs where the locale is not UTF-8 or `CLOCHE_ASCII` asks for them."""
    if os.environ.get("CLOCHE_ASCII"):
        return ASCII
    return UNICODE if locale.getpreferredencoding(False).lower().startswith("utf") else ASCII
