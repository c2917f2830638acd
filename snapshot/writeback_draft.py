"""What becomes of one accepted change beside the real entry: taken, merged by lines, or refused.

An entry that still is the base takes the result, one that is the result already is left alone, text
that the user changed is merged by lines, and everything else is a conflict. Nothing here writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .conflicts import SAME_LINES, WHOLE_CHOICES, Dispute, line_disputes
from .hunks import unit_id
from .lines import is_binary
from .merge3 import merge_bytes, merge_texts
from .names import alike, check_link, split_path
from .writeback_layout import Draft
from .writeback_ops import Post, Side, Wish
from .writeback_tree import NOTHING, PERMISSIONS, Entry, Tree, file_mask, split_last

if TYPE_CHECKING:
    from collections.abc import Collection

    from .conflicts import Resolutions

MAX_MERGED: Final = 64 << 20
"""Bytes of a changed file that are merged by lines; larger ones are a conflict."""

MAX_DISPUTED: Final = 1 << 20
"""Bytes of a whole entry that are read to be shown as a side of a conflict."""

_EXECUTE: Final = 0o111
_READ: Final = 0o444


class InConflict(Exception):
    """The wish cannot be fulfilled; the message is a phrase."""


class Kept(Exception):
    """The user chose the workspace's side."""


class Already(Exception):
    """The workspace holds the result."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """What became of one wish so far."""

    drafts: tuple[Draft, ...] = ()
    notices: tuple[str, ...] = ()


class Drafter:
    """Drafts wishes one by one; `disputes` are all conflicts met on the way, solved or not."""

    def __init__(
        self, tree: Tree, allow_links: Collection[bytes], resolutions: Resolutions
    ) -> None:
        self.tree = tree
        self.allow_links = frozenset(allow_links)
        self.resolutions = resolutions
        self.disputes: list[Dispute] = []
        self.mask = file_mask()

    def draft(self, wish: Wish) -> Drafted:
        """Return what is to be done for a wish; what it conflicts with is added to `disputes`.

        Raises:
            Already: the workspace holds the result.
            Kept: the user chose the workspace's side.
            InConflict: it cannot be fulfilled.
            NameRefused: a name or a link's target must not be written.
            Blocked, OSError: the real entry cannot be read.

        """
        for path in {wish.old_path, wish.new_path} - {None}:
            split_path(path or b"")
        if wish.result.kind == "link" and wish.exactly is None:
            self._check_link(wish)
        if wish.old_path is not None and wish.new_path not in (None, wish.old_path):
            return self._draft_rename(wish, wish.old_path, wish.new_path or b"")
        path = wish.new_path if wish.new_path is not None else wish.old_path
        if path is None:
            raise Already
        now = self.tree.look(path)
        post, merged = self._meet(wish, path, now)
        notices = (*self._told(now), *(("merged with your changes",) if merged else ()))
        implied = wish.base.kind == "none" and now.kind == "dir"
        return Drafted((Draft(path, now, post, _is_mergeable(wish), implied),), notices)

    def _check_link(self, wish: Wish) -> None:
        path = wish.new_path or b""
        if path not in self.allow_links:
            check_link(path, wish.result.content)

    def _draft_rename(self, wish: Wish, old_path: bytes, new_path: bytes) -> Drafted:
        """Draft a rename: one removal and one creation that carries the user's changes along."""
        old, new = self.tree.look(old_path), self.tree.look(new_path)
        if self._is_alias(old_path, new_path, old, new):
            new = NOTHING
        if old.kind == "none":
            if _matches(new, wish.result):
                raise Already
            raise InConflict("you removed or renamed the original")
        if new.kind != "none":
            raise InConflict("its new name is taken")
        try:
            post, merged = self._meet(wish, old_path, old)
        except Already:
            kept = Side(wish.result.kind, self.tree.read(old_path, MAX_MERGED))
            post, merged = self._post(wish, kept, old, old.executable), False
        notices = (*self._told(old), *(("merged with your changes",) if merged else ()))
        return Drafted((Draft(old_path, old, Post()), Draft(new_path, NOTHING, post)), notices)

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
            raise Already
        if result.kind == "none" and now.kind == "dir" != base.kind:
            # The file is gone; a folder of its name is another matter.
            raise Already
        if wish.follows and base.is_like(result):
            raise Already
        if now.kind == "special":
            raise InConflict("there is a special file in its place")
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
            Kept: the workspace's was chosen.
            InConflict: nothing was, or there is no choice.

        """
        if now.kind == "dir" or wish.exactly is not None:
            raise InConflict(reason)
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
            raise InConflict(reason)
        if chosen.choice != "agent":
            raise Kept

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
            raise Already
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
            raise InConflict(SAME_LINES)
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
