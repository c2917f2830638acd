"""What the screen of commits says: pure functions from the keeper's values, all safe to print."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from app.ui.fleet_facts import age
from app.ui.review_facts import LETTERS
from app.wording import counted, plural
from snapshot.safe_text import safe_name
from widgets.commit_list import CommitRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.protocol import FileChange, SessionInfo
    from app.protocol_commits import CommitChange, CommitInfo, CommitList
    from themes.glyphs import Glyphs
    from widgets.info_line import Fact

SHORT: Final = 7
"""Letters of a commit's name that show in the list."""

MAX_TEXT: Final = 200
"""Characters of a name or a first line that are shown."""

LAST_MOMENT: Final = 253402300799
"""The last second that a calendar of four-digit years has; agents write what they like."""

YEAR_S: Final = 365 * 86400


def subject_of(commit: CommitInfo) -> str:
    """Return the first line of what a commit says."""
    first = commit.message.strip().split("\n", 1)[0]
    return safe_name(first).text[:MAX_TEXT] or "(it says nothing)"


def author_of(commit: CommitInfo, *, whole: bool = False) -> str:
    """Return who made a commit, without the address unless the `whole` is wanted."""
    name, mark, _ = commit.author.partition(" <")
    text = commit.author if whole or not (mark and name) else name
    return safe_name(text).text[:MAX_TEXT] or "(nobody)"


def moment_of(commit: CommitInfo) -> str:
    """Return when a commit was made, as its author wrote it."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(min(max(0, commit.at), LAST_MOMENT)))


def short_moment(commit: CommitInfo, now: float) -> str:
    """Return how long ago that was; the day where that would mislead."""
    ago = now - commit.at
    return age(ago) if 0 <= ago < YEAR_S else moment_of(commit).split(" ", 1)[0]


def flags_of(commit: CommitInfo) -> list[str]:
    """Return what wants a closer look, most important first."""
    flags: list[str] = []
    if commit.withheld:
        first, *others = commit.withheld
        more = f" and {len(others)} more" if others else ""
        name = safe_name(first).text[:MAX_TEXT]
        flags.append(f"touches {name}{more}: withheld, or looks like a secret")
    modules = [file for file in commit.files if file.submodule]
    if modules:
        name = safe_name(modules[0].path).text[:MAX_TEXT]
        flags.append(f"changes the submodule {name}, whose contents do not come")
    if commit.cut:
        flags.append(f"more than {len(commit.files)} files")
    return flags


def commit_rows(found: CommitList, text: str, now: float) -> list[CommitRow]:
    """Return branches, then commits from the oldest on; `text` filters by words."""
    rows = [_branch_row(found, branch.name, branch.commit) for branch in found.branches]
    rows += [_row(commit, now) for commit in reversed(found.commits) if _passes(commit, text)]
    return rows


def branch_key(name: str) -> str:
    """Return the key of a branch's row, which no commit has."""
    return f"branch {name}"


def _branch_row(found: CommitList, name: str, head: str) -> CommitRow:
    count = len(reachable(found, head))
    shown = safe_name(name).text
    about = f"all {count} commits together" if count != 1 else "its only commit"
    return CommitRow(branch_key(name), shown, about)


def reachable(found: CommitList, head: str) -> set[str]:
    """Return the listed commits that a commit builds on, itself included."""
    parents = {commit.id: commit.parents for commit in found.commits}
    waiting, seen = [head], set[str]()
    while waiting:
        name = waiting.pop()
        if name in parents and name not in seen:
            seen.add(name)
            waiting += parents[name]
    return seen


def _row(commit: CommitInfo, now: float) -> CommitRow:
    count = f"{len(commit.files)}{'+' if commit.cut else ''}"
    noun = "file" if count == "1" else "files"
    return CommitRow(
        key=commit.id,
        title=subject_of(commit),
        about=f"{author_of(commit)}  {short_moment(commit, now)}  {count} {noun}",
        short=commit.id[:SHORT],
        added=sum(file.added or 0 for file in commit.files),
        removed=sum(file.removed or 0 for file in commit.files),
        flagged=bool(flags_of(commit)),
        merge=len(commit.parents) > 1,
    )


def _passes(commit: CommitInfo, text: str) -> bool:
    """Tell whether a commit holds every word: in its text, author, name or paths."""
    words = text.lower().split()
    if not words:
        return True
    paths = " ".join(file.path for file in commit.files)
    whole = f"{commit.id} {commit.message} {commit.author} {paths}".lower()
    return all(word in whole for word in words)


def head_facts(
    info: SessionInfo | None, found: CommitList | None, glyphs: Glyphs, *, looking: bool
) -> tuple[list[Fact], list[Fact]]:
    """Return whose commits these are and how many."""
    left: list[Fact] = [(" commits  ", "muted")]
    if info is not None:
        left.append((safe_name(info.name or info.id).text, "foreground*"))
        left.append((f"  {safe_name(info.agent).text}", "muted"))
    if looking:
        left.append((f"  {glyphs.working} looking for new ones", "state-working"))
    if found is None:
        return left, []
    flagged = sum(bool(flags_of(commit)) for commit in found.commits)
    right: list[Fact] = []
    for count, noun in ((len(found.commits), "commit"), (len(found.branches), "branch")):
        many = "" if count == 1 else "es" if noun.endswith("h") else "s"
        right += [(f"  {count}", "foreground*"), (f" {noun}{many}", "muted")]
    if flagged:
        right.append((f"  {glyphs.risky} {flagged} to look at", "warning*"))
    if found.left_out:
        right.append((f"  {glyphs.note} {counted(len(found.left_out), 'ref')} left out", "muted"))
    return left, [*right, (" ", "muted")]


def commit_facts(
    commit: CommitInfo | None, branch: str, change: CommitChange | None, glyphs: Glyphs
) -> tuple[list[Fact], list[Fact]]:
    """Return the line about the commit, or the branch, whose change shows."""
    left: list[Fact] = []
    right: list[Fact] = []
    if commit is None and branch:
        left = [(f" {safe_name(branch).text}", "foreground*"), ("  all of the branch", "muted")]
    elif commit is not None:
        left = [(f" {commit.id[:SHORT]} ", "accent")]
        left += [(f"{glyphs.risky} {text}  ", "warning") for text in flags_of(commit)]
        left.append((subject_of(commit), "foreground*"))
        right = [(f"  {author_of(commit)}  {moment_of(commit)} ", "muted")]
        if len(commit.parents) > 1:
            text = f"  merge of {len(commit.parents)}, against the first"
            left.append((text, "muted"))
    if change is not None and change.left_out:
        left.append((f"  {counted(change.left_out, 'more path')} not shown", "warning"))
    if change is not None and change.uncounted:
        left.append((f"  lines of {counted(change.uncounted, 'file')} not counted", "warning"))
    return left, right


def file_line(change: FileChange | None, glyphs: Glyphs) -> tuple[list[Fact], list[Fact]]:
    """Return the line about the file that shows."""
    if change is None:
        return [], []
    folder, _, name = safe_name(change.path).text.rpartition("/")
    left: list[Fact] = [(f" {folder}/" if folder else " ", "muted"), (name, "foreground*")]
    if change.old_path:
        left.append((f"  from {safe_name(change.old_path).text}", "muted"))
    words = {"A": ("new", "success"), "D": ("deleted", "error"), "T": ("another kind", "warning")}
    word, tone = words.get(LETTERS[change.kind], ("", ""))
    if word:
        left.append((f"  {word}", f"{tone}*"))
    if change.risk:
        left.append((f"  {glyphs.risky} {safe_name(change.risk).text}", "warning"))
    return left, []


def unit_line(at: int | None, count: int, *, words: bool) -> tuple[list[Fact], list[Fact]]:
    """Return which hunk the cursor is on, and that nothing is decided here."""
    text = "  no hunk here" if at is None else f"  hunk {at + 1} of {count}"
    why = "to read: decisions are about the whole change" if words else "decisions: whole change"
    back: list[Fact] = [(f"{why}  ", "muted", "leave"), ("q ", "accent*", "leave")]
    return [(text, "foreground")], [*back, ("goes back ", "muted", "leave")]


def total_of(files: Sequence[FileChange], glyphs: Glyphs) -> str:
    """Return how many files a change has and how many lines it adds and removes."""
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    noun = plural(len(files), "file")
    return f"{len(files)} {noun} +{added} {glyphs.minus}{removed}"
