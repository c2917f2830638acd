"""Comparing accepted changes with the real workspace, and ordering what is to be done.

Base, result and the real entry meet here: an entry that still is the base takes the result, one
that is the result already is left alone, text that the user changed is merged by lines, and
everything else is a conflict of which nothing is written. Nothing here writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .conflicts import SAME_LINES, WHOLE_CHOICES, Dispute, Unsolved, line_disputes
from .errors import MergeAborted
from .hunks import unit_id
from .lines import is_binary
from .merge3 import merge_bytes, merge_texts
from .names import NameRefused, alike, check_link, split_path
from .writeback_layout import Draft, Layout
from .writeback_ops import MergePlan, Post, Refusal, Side, Wish
from .writeback_tree import NOTHING, PERMISSIONS, Blocked, Entry, Tree, file_mask, split_last

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from .conflicts import Resolutions

MAX_MERGED: Final = 64 << 20
"""Bytes of a changed file that are merged by lines; larger ones are a conflict."""

_EXECUTE: Final = 0o111
_READ: Final = 0o444

ALREADY: Final = "already so in the workspace"

__all__ = ["MergePlan", "Refusal", "Side", "Wish", "make_plan"]


KEPT: Final = "kept as you have it"
"""Why a path was left out whose conflict was solved for the user's side."""

MAX_DISPUTED: Final = 1 << 20
"""Bytes of a whole entry that are read to be shown as a side of a conflict."""


class _Conflict(Exception):
    """The wish cannot be fulfilled; the message is a phrase."""


class _Kept(Exception):
    """The user chose the workspace's side."""


class _Already(Exception):
    """The workspace holds the result."""


@dataclass(frozen=True, slots=True)
class _Drafted:
    """What became of one wish so far."""

    drafts: tuple[Draft, ...] = ()
    notices: tuple[str, ...] = ()


def make_plan(
    wishes: Sequence[Wish],
    workspace: Path,
    *,
    gone_dirs: Collection[bytes] = (),
    allow_links: Collection[bytes] = (),
    resolutions: Resolutions | None = None,
) -> MergePlan:
    """Plan the wishes against the workspace as it is now; solved conflicts are none.

    Raises:
        WorkspaceRefused: the workspace cannot be opened.
        MergeAborted: a folder of it cannot be read.

    """
    with Tree(workspace) as tree:
        try:
            solver = resolutions or Unsolved()
            return _Planner(tree, wishes, gone_dirs, allow_links, solver).plan()
        except OSError as error:
            raise MergeAborted(
                f"{workspace} cannot be compared: {error.strerror}; nothing was written.",
                "Make all of its folders readable, then merge again.",
            ) from error


class _Planner:
    """Drafts every wish, then drops those that do not fit together until the rest does."""

    def __init__(
        self,
        tree: Tree,
        wishes: Sequence[Wish],
        gone_dirs: Collection[bytes],
        allow_links: Collection[bytes],
        resolutions: Resolutions,
    ) -> None:
        self.tree = tree
        self.wishes = wishes
        self.gone_dirs = gone_dirs
        self.allow_links = frozenset(allow_links)
        self.resolutions = resolutions
        self.disputes: list[Dispute] = []
        self.mask = file_mask()
        self.conflicts: dict[int, str] = {}
        self.skipped: dict[int, str] = {}

    def plan(self) -> MergePlan:
        """Return the plan."""
        drafted = {number: self._draft_safely(number) for number in range(len(self.wishes))}
        layout = self._settle(drafted)
        done = [number for number in drafted if self._is_active(number, drafted)]
        names = tuple(wish.name for wish in self.wishes)
        return MergePlan(
            self.tree.root,
            self.tree.identity,
            tuple(layout.ops()),
            names,
            tuple(names[number] for number in done),
            self._refusals(self.conflicts),
            self._refusals(self.skipped),
            tuple(self._notices(done, drafted)),
            tuple(self.disputes),
            tuple(self.wishes),
        )

    def _is_active(self, number: int, drafted: dict[int, _Drafted]) -> bool:
        refused = number in self.conflicts or number in self.skipped
        return not refused and bool(drafted[number].drafts)

    def _refusals(self, reasons: dict[int, str]) -> tuple[Refusal, ...]:
        return tuple(Refusal(self.wishes[n].name, why) for n, why in sorted(reasons.items()))

    def _settle(self, drafted: dict[int, _Drafted]) -> Layout:
        """Lay out what is left until no wish stands in another's way."""
        while True:
            self._drop_groups()
            active = {n: d.drafts for n, d in drafted.items() if self._is_active(n, drafted)}
            layout = Layout(self.tree, active, self.gone_dirs, self.mask)
            if not layout.refused:
                return layout
            self.conflicts.update(layout.refused)

    def _drop_groups(self) -> None:
        """Refuse the rest of a group of which one wish was refused."""
        broken = {self.wishes[number].group for number in self.conflicts} - {None}
        for number, wish in enumerate(self.wishes):
            if wish.group in broken and number not in self.conflicts:
                self.conflicts[number] = "belongs to a change that conflicts"

    def _draft_safely(self, number: int) -> _Drafted:
        """Draft one wish, or note why it is left out."""
        try:
            return self._draft(self.wishes[number])
        except NameRefused as refused:
            self.skipped[number] = str(refused)
        except _Already:
            self.skipped[number] = ALREADY
        except _Kept:
            self.skipped[number] = KEPT
        except _Conflict as conflict:
            self.conflicts[number] = str(conflict)
        except Blocked:
            self.conflicts[number] = "its folder became something else just now"
        except OSError as error:
            self.conflicts[number] = f"cannot be read: {error.strerror}"
        return _Drafted()

    def _draft(self, wish: Wish) -> _Drafted:
        for path in {wish.old_path, wish.new_path} - {None}:
            split_path(path or b"")
        if wish.result.kind == "link" and wish.exactly is None:
            self._check_link(wish)
        if wish.old_path is not None and wish.new_path not in (None, wish.old_path):
            return self._draft_rename(wish, wish.old_path, wish.new_path or b"")
        path = wish.new_path if wish.new_path is not None else wish.old_path
        if path is None:
            raise _Already
        now = self.tree.look(path)
        post, merged = self._meet(wish, path, now)
        notices = (*self._told(now), *(("merged with your changes",) if merged else ()))
        implied = wish.base.kind == "none" and now.kind == "dir"
        return _Drafted((Draft(path, now, post, _is_mergeable(wish), implied),), notices)

    def _check_link(self, wish: Wish) -> None:
        path = wish.new_path or b""
        if path not in self.allow_links:
            check_link(path, wish.result.content)

    def _draft_rename(self, wish: Wish, old_path: bytes, new_path: bytes) -> _Drafted:
        """Draft a rename: one removal and one creation that carries the user's changes along."""
        old, new = self.tree.look(old_path), self.tree.look(new_path)
        if self._is_alias(old_path, new_path, old, new):
            new = NOTHING
        if old.kind == "none":
            if _matches(new, wish.result):
                raise _Already
            raise _Conflict("you removed or renamed the original")
        if new.kind != "none":
            raise _Conflict("its new name is taken")
        try:
            post, merged = self._meet(wish, old_path, old)
        except _Already:
            kept = Side(wish.result.kind, self.tree.read(old_path, MAX_MERGED))
            post, merged = self._post(wish, kept, old, old.executable), False
        notices = (*self._told(old), *(("merged with your changes",) if merged else ()))
        return _Drafted((Draft(old_path, old, Post()), Draft(new_path, NOTHING, post)), notices)

    def _is_alias(self, old_path: bytes, new_path: bytes, old: Entry, new: Entry) -> bool:
        """Return whether the new name is the old one on a file system that ignores case."""
        if old.kind == "none" or old.identity != new.identity:
            return False
        folder, name = split_last(new_path)
        return alike(old_path) == alike(new_path) and name not in self.tree.names(folder)

    def _meet(self, wish: Wish, path: bytes, now: Entry) -> tuple[Post, bool]:
        """Return what becomes of the real entry, and whether lines were merged for it."""
        base, result = wish.base, wish.result
        if _matches(now, result) and (wish.exactly is None or now.mode == wish.exactly.mode):
            raise _Already
        if result.kind == "none" and now.kind == "dir" != base.kind:
            # The file is gone; a folder of its name is another matter.
            raise _Already
        if wish.follows and base.is_like(result):
            raise _Already
        if now.kind == "special":
            raise _Conflict("there is a special file in its place")
        if {base.kind, result.kind, now.kind} == {"file"}:
            return self._meet_files(wish, path, now)
        if base.kind == "none" and result.kind != "dir" and now.kind == "dir":
            # Its files may be about to go; the layout refuses it where they are not.
            return self._post(wish, result, now, result.executable), False
        if not _is_unchanged(now, base):
            self._settle_whole(wish, path, now, _what_happened(base, result, now))
        return self._post(wish, result, now, result.executable), False

    def _settle_whole(self, wish: Wish, path: bytes, now: Entry, reason: str) -> None:
        """Return if the agent's entry was chosen in place of the workspace's.

        Raises:
            _Kept: the workspace's was chosen.
            _Conflict: nothing was, or there is no choice.

        """
        if now.kind == "dir" or wish.exactly is not None:
            raise _Conflict(reason)
        sides = (wish.base, wish.result)
        digests = [f"{side.kind} {side.digest} {side.executable}".encode() for side in sides]
        entry = f"{now.kind} {now.digest} {now.executable}".encode()
        name = unit_id(b"whole", wish.name, path, *digests, entry)
        chosen = self.resolutions.resolution(wish.name, name)
        yours = self._shown(path, now)
        texts = (wish.base.content, yours, wish.result.content)
        made = Dispute(wish.name, name, "whole", reason, *texts, 0, WHOLE_CHOICES, chosen)
        self.disputes.append(made)
        if chosen is None:
            raise _Conflict(reason)
        if chosen.choice != "agent":
            raise _Kept

    def _shown(self, path: bytes, now: Entry) -> bytes:
        """Return the workspace's side of a conflict of whole entries; empty if it is too large."""
        if now.kind not in ("file", "link") or now.size > MAX_DISPUTED:
            return b""
        return self.tree.read(path, MAX_DISPUTED)

    def _meet_files(self, wish: Wish, path: bytes, now: Entry) -> tuple[Post, bool]:
        """Merge content and executable bit of three files."""
        base, result = wish.base, wish.result
        content, merged = self._meet_content(wish, path, now)
        executable = now.executable if result.executable == base.executable else result.executable
        post = self._post(wish, Side("file", content), now, executable)
        if post.entry.is_same(now):
            raise _Already
        return post, merged

    def _meet_content(self, wish: Wish, path: bytes, now: Entry) -> tuple[bytes, bool]:
        base, result = wish.base, wish.result
        if now.digest == base.digest:
            return result.content, False
        if now.size > MAX_MERGED:
            self._settle_whole(wish, path, now, "you changed it, and it is too large to merge")
            return result.content, False
        current = self.tree.read(path, MAX_MERGED)
        if result.digest == base.digest or current == result.content:
            return current, False
        texts = (base.content, result.content, current)
        if base.known_digest or any(is_binary(side) for side in texts):
            self._settle_whole(wish, path, now, "you changed it, and it is binary")
            return result.content, False
        return self._by_lines(wish, base.content, current, result.content), True

    def _by_lines(self, wish: Wish, base: bytes, current: bytes, result: bytes) -> bytes:
        """Merge three texts; conflicts take the lines that were chosen for them."""
        merged = merge_bytes(base, current, result)
        if merged is not None:
            return merged
        merge = merge_texts(base, current, result)
        disputes = line_disputes(wish.name, merge, self.resolutions)
        self.disputes += disputes.values()
        if any(dispute.resolution is None for dispute in disputes.values()):
            raise _Conflict(SAME_LINES)
        return merge.content({number: one.solved() for number, one in disputes.items()})

    def _post(self, wish: Wish, side: Side, now: Entry, executable: bool) -> Post:
        """Return the entry to leave behind, with the mode that it gets."""
        if side.kind == "none":
            return Post()
        if side.kind == "link":
            return Post(Entry("link", 0, side.digest), side.content, wish.exactly)
        untouched = _matches(now, wish.base) or now.kind == "none"
        exactly = wish.exactly if untouched else None
        if side.kind == "dir":
            mode = exactly.mode if exactly else PERMISSIONS & ~self.mask
            return Post(Entry("dir", mode), b"", exactly)
        mode = exactly.mode if exactly else self._file_mode(now, executable)
        entry = Entry("file", mode, side.digest, len(side.content))
        return Post(entry, side.content, exactly)

    def _file_mode(self, now: Entry, executable: bool) -> int:
        """Return permission bits: those that are there with x as wished; never set-id bits."""
        if now.kind != "file":
            return (PERMISSIONS if executable else 0o666) & ~self.mask
        mode = now.mode & PERMISSIONS
        if executable == now.executable:
            return mode
        return mode | ((mode & _READ) >> 2) if executable else mode & ~_EXECUTE

    def _told(self, now: Entry) -> tuple[str, ...]:
        if now.kind == "file" and now.links > 1:
            return (f"had {now.links} hard links; the others keep the old content",)
        return ()

    def _notices(self, done: Sequence[int], drafted: dict[int, _Drafted]) -> list[Refusal]:
        """Return what to tell about the wishes that are fulfilled."""
        notices: list[Refusal] = []
        names: dict[bytes, set[bytes]] = {}
        for number in done:
            wish = self.wishes[number]
            notices += [Refusal(wish.name, text) for text in drafted[number].notices]
            for draft in drafted[number].drafts:
                if draft.pre.kind == "none" and draft.post.entry.kind != "none":
                    notices += self._twins(wish, draft.path, names)
        return notices

    def _twins(self, wish: Wish, path: bytes, names: dict[bytes, set[bytes]]) -> list[Refusal]:
        """Tell about names beside a new one that some systems would take for the same."""
        folder, name = split_last(path)
        if folder not in names:
            try:
                names[folder] = self.tree.names(folder)
            except Blocked:
                names[folder] = set()
        twins = [other for other in names[folder] if other != name and alike(other) == alike(name)]
        text = "differs only in case or Unicode form from another name in its folder"
        return [Refusal(wish.name, text)] if twins else []


def _is_unchanged(now: Entry, base: Side) -> bool:
    """Return whether the real entry has the base's kind and content (its mode may differ)."""
    if now.kind != base.kind:
        return False
    return now.kind in ("none", "dir") or now.digest == base.digest


def _matches(now: Entry, side: Side) -> bool:
    """Return whether the real entry is what a side says, the executable bit included."""
    if not _is_unchanged(now, side):
        return False
    return now.kind != "file" or now.executable == side.executable


def _is_mergeable(wish: Wish) -> bool:
    files = wish.base.kind == wish.result.kind == "file"
    return files and not (is_binary(wish.base.content) or is_binary(wish.result.content))


def _what_happened(base: Side, result: Side, now: Entry) -> str:
    """Return one phrase for a conflict of whole entries."""
    if now.kind == "none":
        return "you removed it"
    if base.kind == "none":
        return "something of that name was created meanwhile"
    if now.kind != base.kind:
        return f"it is a {'folder' if now.kind == 'dir' else now.kind} now"
    return "you changed it" if result.kind != "none" else "you changed it; its removal was accepted"
