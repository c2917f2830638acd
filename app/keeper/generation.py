"""The generation under review: its changed files, what is kept of each, their lines on demand.

Diffs are made once for each pair of contents and kept as short summaries; the lines themselves are
held for a few files at a time, so a change set of thousands of files stays small in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from app.errors import AppError
from app.keeper.pruning import Pruner
from app.keeper.summaries import summary_of
from app.protocol import Counts
from app.wire_text import to_text
from snapshot.errors import StoreDamaged
from snapshot.mirror import Limits
from snapshot.review import ChangedFile, FileReview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.keeper.mirroring import Mirror
    from app.keeper.summaries import Summary
    from snapshot.base_reader import BaseReader
    from snapshot.blobs import BlobStore
    from snapshot.changes import Change
    from snapshot.decisions import Decisions
    from snapshot.manifest import Entry

MAX_HELD: Final = 16
"""Reviews with their lines kept in memory."""

MAX_OLD: Final = Limits().file_bytes
"""Bytes of an old content that is read; the agent's side has the same limit."""

LARGE: Final = f"what was there is larger than {MAX_OLD} bytes"
NO_ROOM: Final = "what was there does not fit into the session's store"
"""Notes of changes whose old content is not read."""

MAX_HELD_BYTES: Final = 128 << 20
"""Bytes of the contents of those reviews; the last one is kept whatever it has."""


class Generation:
    """What the mirror found last; empty until `take_over`. Not safe between threads."""

    def __init__(self, session: str, base: BaseReader, blobs: BlobStore) -> None:
        self._session = session
        self._base = base
        self._blobs = blobs
        self._pruner = Pruner(blobs)
        self._held: OrderedDict[ChangedFile, FileReview] = OrderedDict()
        self._held_bytes = 0
        self._summaries: dict[ChangedFile, Summary] = {}
        self.files: dict[str, ChangedFile] = {}
        """The changed files by their names."""
        self.rows: dict[str, Change] = {}
        """What the mirror says of each of them."""
        self.gone_dirs: frozenset[bytes] = frozenset()
        """Directories of the snapshot that the agent removed."""
        self.ignored = 0
        """How many changes the ignore rules hide."""
        self.number = 0

    def take_over(self, mirror: Mirror) -> Counts:
        """Make the mirror's present generation this one; how large it is."""
        changes = mirror.changes
        rows = [_without_large(change) for change in changes.changes]
        rows = self._read_base(rows)
        self.rows = {to_text(change.path): change for change in rows}
        self.files = {name: self._file(change) for name, change in self.rows.items()}
        self.gone_dirs = frozenset(
            path for path in mirror.tree.gone if _is_dir(mirror.tree.base.get(path))
        )
        self.ignored, self.number = changes.ignored, mirror.generation
        self._summaries = {file: self.summary(file) for file in self.files.values()}
        needed = {digest for file in self._summaries for digest in (file.base, file.agent)}
        self._pruner.settle(needed, mirror.fetched)
        return self._counts()

    def _counts(self) -> Counts:
        summaries = self._summaries.values()
        added = sum(summary.added for summary in summaries)
        return Counts(len(summaries), added, sum(summary.removed for summary in summaries))

    def _read_base(self, changes: Sequence[Change]) -> list[Change]:
        """Bring old contents into the store, small ones first; a note says what does not fit."""
        old = [change for change in changes if _is_old_file(change)]
        wanted = sorted((c for c in old if _old_size(c) <= MAX_OLD), key=_old_size)
        room = self._blobs.quota - self._blobs.used
        left: set[bytes] = set()
        for change in wanted:
            if not self._has_base(change):
                room -= _old_size(change)
                left |= {change.path} if room < 0 else set()
        paths = [change.old_path or change.path for change in wanted if change.path not in left]
        if paths:
            self._base.ensure(paths)
        return [replace(c, note=c.note or NO_ROOM) if c.path in left else c for c in changes]

    def _is_read(self, change: Change) -> bool:
        """Whether the old content is at hand; of what cannot be merged it may not be."""
        return not (change.note and _is_old_file(change)) or self._has_base(change)

    def _has_base(self, change: Change) -> bool:
        return change.base is not None and self._blobs.has(change.base.digest)

    def _file(self, change: Change) -> ChangedFile:
        return ChangedFile(
            path=change.path,
            kind=change.kind,
            old_path=change.old_path or None,
            mode=_git_mode(change.agent),
            old_mode=_git_mode(change.base),
            base=self._digest(change.base) if self._is_read(change) else "",
            agent=self._digest(change.agent),
            note=change.note,
        )

    def _digest(self, entry: Entry | None) -> str:
        if entry is None or entry.kind in ("dir", "special"):
            return ""
        return self._blobs.put(entry.target) if entry.kind == "link" else entry.digest

    def named(self, path: str) -> ChangedFile:
        """Return a changed file. Raises AppError `not-found`."""
        file = self.files.get(path)
        if file is None:
            raise AppError(
                "not-found", f"Nothing changed at '{path}'.", f"See: cloche changes {self._session}"
            )
        return file

    def summary(self, file: ChangedFile) -> Summary:
        """Return what is kept of a file; made anew for one that is not known yet."""
        return self._summaries.get(file) or summary_of(self.review(file))

    def review(self, file: ChangedFile) -> FileReview:
        """Return a file with its lines. Raises StoreDamaged."""
        held = self._held.get(file)
        if held is None:
            held = FileReview(file, *self.contents(file))
            self._held[file] = held
            self._held_bytes += _size_of(held)
        self._held.move_to_end(file)
        while len(self._held) > 1 and self._is_too_much():
            self._held_bytes -= _size_of(self._held.popitem(last=False)[1])
        return held

    def contents(self, file: ChangedFile) -> tuple[bytes | None, bytes | None]:
        """Return both sides of a file. Raises StoreDamaged."""
        return self._content(file.base), self._content(file.agent)

    def _is_too_much(self) -> bool:
        return len(self._held) > MAX_HELD or self._held_bytes > MAX_HELD_BYTES

    def size(self, name: str) -> int:
        """Return how many bytes both sides of a changed file have, as they were listed."""
        sides = (self.rows[name].base, self.rows[name].agent)
        return sum(side.size for side in sides if side is not None)

    def _content(self, digest: str) -> bytes | None:
        if not digest:
            return None
        data = self._base.content(digest)
        if data is None:
            raise StoreDamaged(
                f"The content {digest} is not in the session's store.",
                f"Mirror it again: cloche resume {self._session} --no-agent",
            )
        return data

    def open_units(self, decisions: Decisions) -> int:
        """Count the hunks and aspects that wait for a decision."""
        return sum(
            summary.open_units(file.path, decisions) for file, summary in self._summaries.items()
        )


def _is_old_file(change: Change) -> bool:
    return change.base is not None and change.base.kind == "file"


def _old_size(change: Change) -> int:
    return 0 if change.base is None else change.base.size


def _without_large(change: Change) -> Change:
    """Return a change that is not to be merged where its old content is too large to be read."""
    if change.note or _old_size(change) <= MAX_OLD:
        return change
    return replace(change, note=LARGE)


def _size_of(review: FileReview) -> int:
    return len(review.base or b"") + len(review.agent or b"")


def _is_dir(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "dir"


def _git_mode(entry: Entry | None) -> str:
    if entry is None or entry.kind == "special":
        return ""
    if entry.kind == "dir":
        return "040000"
    if entry.kind == "link":
        return "120000"
    return "100755" if entry.mode & 0o100 else "100644"
