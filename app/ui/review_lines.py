"""The three lines of facts of a review: whose changes, which file, which hunk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.protocol import FileChange, HunkInfo, SessionInfo
    from app.ui.review_facts import Progress
    from themes.glyphs import Glyphs
    from widgets.info_line import Fact

RED = "error*"
TONES = {"open": "muted", "accepted": "success", "rejected": "error", "mixed": "warning"}


def head_facts(
    info: SessionInfo | None,
    progress: Progress | None,
    conflicts: Sequence[str],
    glyphs: Glyphs,
    *,
    pending: bool,
    words: bool = True,
) -> tuple[list[Fact], list[Fact]]:
    """Return whose changes these are, and how far the review is; `words` beside the signs."""
    left: list[Fact] = [(" review  ", "muted")]
    if info is not None:
        left.append((safe_name(info.name or info.id).text, "foreground*"))
        left.append((f"  {safe_name(info.agent).text}", "muted"))
        if info.state == "running" and info.agent_state == "working":
            left.append((f"  {glyphs.working} still working", "state-working"))
    if pending:
        left.append((f"  {glyphs.stalled} changed since: R shows it", "warning*"))
    if progress is None:
        return left, []
    right: list[Fact] = [
        (f"  {progress.files_done}/{progress.files}", "foreground*"),
        (" files", "muted"),
        (f"   {progress.units_done}/{progress.units}", "foreground*"),
        (" hunks", "muted"),
    ]
    for sign, count, word, tone in (
        (glyphs.merged, progress.merged, "merged", "success"),
        (glyphs.risky, progress.risky, "risky", "warning*"),
        (glyphs.drift, progress.drift, "yours too", "warning*"),
        (glyphs.rejected, len(conflicts), "conflict" if len(conflicts) == 1 else "conflicts", RED),
    ):
        if count:
            right.append((f"   {sign} {count} {word}" if words else f"  {sign}{count}", tone))
    return left, [*right, (" ", "muted")]


def file_facts(
    change: FileChange | None,
    units: Sequence[HunkInfo],
    glyphs: Glyphs,
    *,
    conflict: bool = False,
) -> tuple[list[Fact], list[Fact]]:
    """Return the name of the file and what is decided in it."""
    if change is None:
        return [], []
    folder, name = os.path.split(safe_name(change.path).text)
    left: list[Fact] = [(f" {folder}/" if folder else " ", "muted"), (name, "foreground*")]
    if change.old_path:
        left.append((f"  from {safe_name(change.old_path).text}", "muted"))
    kinds = {"added": ("new", "success"), "deleted": ("deleted", "error")}
    if change.kind in kinds:
        word, tone = kinds[change.kind]
        left.append((f"  {word}", f"{tone}*"))
    if change.risk:
        left.append((f"  {glyphs.risky} {safe_name(change.risk).text}", "warning"))
    if conflict:
        left.append((f"  {glyphs.drift} conflict: you changed the same lines", "error*"))
    elif change.merged:
        left.append((f"  {glyphs.merged} merged into your workspace", "success"))
    elif change.drift and not change.risk:
        left.append((f"  {glyphs.drift} you changed it too", "warning"))
    right: list[Fact] = []
    for decision in ("accepted", "rejected", "mixed", "open"):
        count = sum(unit.decision == decision for unit in units)
        if count:
            sign = str(getattr(glyphs, decision))
            right.append((f"  {sign} {count} {decision}", TONES[decision]))
    return left, [*right, (" ", "muted")]


def unit_facts(
    units: Sequence[HunkInfo], index: int | None, at: int | None, glyphs: Glyphs
) -> tuple[list[Fact], list[Fact]]:
    """Return which hunk the cursor is on and the keys that decide it."""
    if index is None or at is None:
        return [("  nothing to decide here", "muted")], []
    unit = units[index]
    aspects = sum(bool(other.aspect) for other in units)
    sign = str(getattr(glyphs, unit.decision))
    what = unit.aspect if unit.aspect else f"hunk {index - aspects + 1} of {len(units) - aspects}"
    left: list[Fact] = [
        (f" {sign} ", f"{TONES[unit.decision]}*"),
        (what, "foreground"),
        (f"  {unit.decision}", TONES[unit.decision]),
    ]
    accept = "open again" if unit.decision == "accepted" else "accept"
    reject = "open again" if unit.decision == "rejected" else "reject"
    right: list[Fact] = [
        ("space ", "accent*"),
        (f"{accept}   ", "muted"),
        ("x ", "accent*"),
        (f"{reject} ", "muted"),
    ]
    return left, right
