"""The three lines of facts of a review: whose changes, which file, which hunk."""

from __future__ import annotations

import os
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from app.wording import plural
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.protocol import FileChange, HunkInfo, SessionInfo
    from app.ui.review_facts import Progress
    from themes.glyphs import Glyphs
    from widgets.info_line import Fact

RED = "error*"
TONES = {"accepted": "success", "rejected": "error", "mixed": "warning", "open": "muted"}
"""Colours of decisions, in the order in which they are counted out."""


def head_facts(
    info: SessionInfo | None,
    progress: Progress | None,
    conflicts: Sequence[str],
    glyphs: Glyphs,
    *,
    pending: int,
    words: bool = True,
) -> tuple[list[Fact], list[Fact]]:
    """Return whose changes these are, and how far the review is; `words` beside the signs."""
    left = _whose(info, glyphs, pending, words=words)
    if progress is None:
        return left, []
    counts = (
        (glyphs.merged, progress.merged, "merged", "success"),
        (glyphs.risky, progress.risky, "risky", "warning*"),
        (glyphs.drift, progress.drift, "yours too", "warning*"),
        (glyphs.rejected, len(conflicts), plural(len(conflicts), "conflict"), RED),
    )
    right: list[Fact] = [
        (f"  {progress.files_done}/{progress.files}", "foreground*"),
        (" files", "muted"),
        (f"   {progress.units_done}/{progress.units}", "foreground*"),
        (" hunks", "muted"),
        *(
            (f"   {sign} {count} {word}" if words else f"  {sign}{count}", tone)
            for sign, count, word, tone in counts
            if count
        ),
        (" ", "muted"),
    ]
    return left, right


def _whose(info: SessionInfo | None, glyphs: Glyphs, pending: int, *, words: bool) -> list[Fact]:
    """Return whose changes these are, and whether there are newer ones; those get the room."""
    left: list[Fact] = [(" review  ", "muted")]
    if info is not None:
        left.append((safe_name(info.name or info.id).text, "foreground*"))
        if words or not pending:
            left.append((f"  {safe_name(info.agent).text}", "muted"))
        if info.state == "running" and info.agent_state == "working":
            word = " still working" if words else ""
            left.append((f"  {glyphs.working}{word}", "state-working"))
    if pending:
        noun = plural(pending, "file")
        rest = " changed since: r shows it" if words else " since: r"
        left.append((f"  {glyphs.stalled} {pending} {noun}{rest}", "warning*", "refresh"))
    return left


def file_facts(
    change: FileChange | None,
    units: Sequence[HunkInfo],
    glyphs: Glyphs,
    *,
    conflict: bool = False,
    no_space: bool = False,
    words: bool = True,
) -> tuple[list[Fact], list[Fact]]:
    """Return the name of the file and what is decided in it; `words`: there is room for all."""
    if change is None:
        return [], []
    state = _state_facts(change, glyphs, conflict=conflict, words=words)
    left = [*_name_facts(change, glyphs), *state]
    if no_space:
        left.append(("  white space ignored", "warning", "white_space"))
    counts: Counter[str] = Counter(unit.decision for unit in units)
    right: list[Fact] = [
        (f"  {getattr(glyphs, decision)} {counts[decision]} {decision}", tone)
        for decision, tone in TONES.items()
        if counts[decision]
    ]
    return left, [*right, (" ", "muted")]


def _name_facts(change: FileChange, glyphs: Glyphs) -> list[Fact]:
    """Return what a file is called, was called, and is said to be."""
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
    return left


def _state_facts(change: FileChange, glyphs: Glyphs, *, conflict: bool, words: bool) -> list[Fact]:
    """Return what the user said about a file and did with it."""
    left: list[Fact] = []
    if change.comments:
        noun = plural(change.comments, "comment")
        left.append((f"  {glyphs.comment} {change.comments} {noun}", "accent"))
    if conflict:
        text = f"  {glyphs.drift} conflict{': C solves it' if words else ': C'}"
        left.append((text, "error*", "conflicts"))
    elif change.merged:
        where = " into your workspace" if words else ""
        left.append((f"  {glyphs.merged} merged{where}", "success"))
    elif change.drift and not change.risk:
        yours = "you changed it too" if words else "yours too"
        left.append((f"  {glyphs.drift} {yours}", "warning"))
    if change.viewed:
        left.append((f"  {glyphs.viewed} viewed", "muted", "viewed"))
    return left


def unit_facts(
    units: Sequence[HunkInfo],
    index: int | None,
    at: int | None,
    glyphs: Glyphs,
    chosen: int = 0,
) -> tuple[list[Fact], list[Fact]]:
    """Return which hunk the cursor is on, or how many lines are chosen, and the keys for it."""
    if index is None or at is None:
        return [("  nothing to decide here", "muted")], []
    unit = units[index]
    aspects = sum(1 for _ in takewhile(lambda other: other.aspect, units))
    sign = str(getattr(glyphs, unit.decision))
    what = unit.aspect if unit.aspect else f"hunk {index - aspects + 1} of {len(units) - aspects}"
    left: list[Fact] = [
        (f" {sign} ", f"{TONES[unit.decision]}*"),
        (what, "foreground"),
        (f"  {unit.decision}{_parts(unit)}", TONES[unit.decision]),
    ]
    if unit.edited:
        left.append(("  edited by you", "accent"))
    if unit.rejected_before:
        left.append((f"  {glyphs.stalled} rejected before", "warning*"))
    if unit.reason:
        left.append((f"  {safe_name(unit.reason).text}", "muted"))
    if chosen:
        noun = plural(chosen, "line")
        left = [(f" {glyphs.cursor} ", "accent*"), (f"{chosen} {noun} chosen", "accent*")]
    return left, _deciding("" if chosen else unit.decision, cancel=bool(chosen))


def _parts(unit: HunkInfo) -> str:
    """Return how the lines of a mixed hunk are decided."""
    if unit.decision != "mixed":
        return ""
    words = {"a": "in", "r": "out", "o": "open"}
    counts = [f"{unit.marks.count(letter)} {word}" for letter, word in words.items()]
    return ": " + ", ".join(text for text in counts if not text.startswith("0 "))


def _deciding(decision: str, *, cancel: bool) -> list[Fact]:
    """Return the keys that decide; a click on them does the same."""
    accept = "open again" if decision == "accepted" else "accept"
    reject = "open again" if decision == "rejected" else "reject"
    facts: list[Fact] = [
        ("space ", "accent*", "accept"),
        (f"{accept}   ", "muted", "accept"),
        ("x ", "accent*", "reject"),
        (f"{reject} ", "muted", "reject"),
    ]
    if cancel:
        facts += [("  esc ", "accent*", "dismiss_notice"), ("all ", "muted", "dismiss_notice")]
    return facts
