"""Which removed file an added one is: by where its folder came from, by content, by likeness.

First what the overlay itself tells (a folder that was renamed brings its files along), then equal
contents, then files that share at least half of their bytes in equal lines. Every step is bounded:
beyond the bounds a rename is shown as a removal and an addition, which is never wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snapshot.paths import folder_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from snapshot.manifest import Entry
    from snapshot.mirror import AgentEntry

MAX_GROUP: Final = 200
"""Most files with one content (on each side) that are paired by name; more are left alone."""

MAX_SIMILAR: Final = 300
"""Most files on each side that are compared by lines."""

MAX_SIMILAR_BYTES: Final = 1 << 20
"""Largest file that is compared by lines."""

COMMON_LINE: Final = 20
"""A line that more files than this share says nothing about two of them."""


@dataclass(slots=True)
class Renames:
    """Pairs that were found: new path -> old path."""

    removed: Mapping[bytes, Entry]
    added: Mapping[bytes, AgentEntry]
    pairs: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    _used: set[bytes] = field(default_factory=set[bytes])
    _folders: Counter[tuple[bytes, bytes]] = field(default_factory=Counter[tuple[bytes, bytes]])

    def pair(self, new: bytes, old: bytes) -> None:
        """Take a pair; both are spent."""
        self.pairs[new] = old
        self._used.add(old)
        self._folders[folder_of(old), folder_of(new)] += 1

    def left_removed(self) -> list[bytes]:
        """Give the removed paths without a partner."""
        return [path for path in self.removed if path not in self._used]

    def left_added(self) -> list[bytes]:
        """Give the added paths without a partner."""
        return [path for path in self.added if path not in self.pairs]

    def follow_folders(self) -> None:
        """Pair what a renamed folder brought along, edited or not."""
        for new, item in self.added.items():
            old = item.origin
            kind = self.removed[old].kind if old in self.removed else ""
            if kind == item.entry.kind != "dir" and old not in self._used:
                self.pair(new, old)

    def match_contents(self) -> None:
        """Pair equal contents: first where there is one choice, then by name and folder."""
        removed, added = defaultdict[str, list[bytes]](list), defaultdict[str, list[bytes]](list)
        for path in self.left_removed():
            if self.removed[path].kind == "file" and self.removed[path].digest:
                removed[self.removed[path].digest].append(path)
        for path in self.left_added():
            entry = self.added[path].entry
            if entry.kind == "file" and entry.digest:
                added[entry.digest].append(path)
        groups = [(removed[digest], added[digest]) for digest in removed if digest in added]
        for old, new in sorted(groups, key=_choices):
            self._match_group(old, new)

    def _match_group(self, old: list[bytes], new: list[bytes]) -> None:
        empty = self.removed[old[0]].size == 0
        if len(old) == 1 and len(new) == 1 and not empty:
            self.pair(new[0], old[0])
            return
        if len(old) > MAX_GROUP or len(new) > MAX_GROUP:
            return
        ranked = sorted(((self._likeness(o, n), n, o) for n in new for o in old), reverse=True)
        for (same_name, votes, _), n, o in ranked:
            free = n not in self.pairs and o not in self._used
            if free and (not empty or (same_name and votes)):  # empty files are alike by nature
                self.pair(n, o)

    def _likeness(self, old: bytes, new: bytes) -> tuple[bool, int, int]:
        """Rank a pair: same name, folders that other pairs join, common end of the paths."""
        votes = self._folders[folder_of(old), folder_of(new)]
        return name_of(old) == name_of(new), votes, _common_end(old, new)

    def match_lines(self, read: Callable[[str], bytes | None]) -> None:
        """Pair files that share at least half of the larger one's bytes in equal lines."""
        gone = _comparable((p, self.removed[p]) for p in self.left_removed())
        come = _comparable((p, self.added[p].entry) for p in self.left_added())
        old = _lines(read, _of_like_size(gone, come))
        new = _lines(read, _of_like_size(come, gone) if old else {})
        places = defaultdict[bytes, list[bytes]](list)
        for path, lines in old.items():
            for line in lines:
                places[line].append(path)
        ranked: list[tuple[float, bool, bytes, bytes]] = []
        for path, lines in new.items():
            for other, common in _overlap(lines, old, places).items():
                likeness = common / max(_size(lines), _size(old[other]))
                if likeness >= 0.5:
                    ranked.append((likeness, name_of(path) == name_of(other), path, other))
        for _, _, path, other in sorted(ranked, reverse=True):
            if path not in self.pairs and other not in self._used:
                self.pair(path, other)


def _comparable(items: Iterable[tuple[bytes, Entry]]) -> dict[bytes, Entry]:
    """Pick the files that can be compared by lines; none when there are too many."""
    wanted = {
        path: entry
        for path, entry in items
        if entry.kind == "file" and entry.digest and 0 < entry.size <= MAX_SIMILAR_BYTES
    }
    return wanted if len(wanted) <= MAX_SIMILAR else {}


def _of_like_size(ones: dict[bytes, Entry], others: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Pick those that are at most twice as long as another one, and at least half."""
    sizes = [entry.size for entry in others.values()]
    return {
        path: entry
        for path, entry in ones.items()
        if any(2 * min(entry.size, size) >= max(entry.size, size) for size in sizes)
    }


def _lines(
    read: Callable[[str], bytes | None], files: dict[bytes, Entry]
) -> dict[bytes, Counter[bytes]]:
    """Read files as bags of lines, where the content is at hand."""
    found: dict[bytes, Counter[bytes]] = {}
    for path, entry in files.items():
        data = read(entry.digest)
        if data:
            found[path] = Counter(data.splitlines(keepends=True))
    return found


def _overlap(
    lines: Counter[bytes], old: dict[bytes, Counter[bytes]], places: dict[bytes, list[bytes]]
) -> Counter[bytes]:
    """Count the bytes in equal lines between one added file and each removed one."""
    found: Counter[bytes] = Counter()
    for line, count in lines.items():
        owners = places.get(line, ())
        if len(owners) <= COMMON_LINE:
            for path in owners:
                found[path] += len(line) * min(count, old[path][line])
    return found


def _size(lines: Counter[bytes]) -> int:
    return sum(len(line) * count for line, count in lines.items())


def _choices(group: tuple[list[bytes], list[bytes]]) -> tuple[int, bytes]:
    return len(group[0]) * len(group[1]), group[0][0]


def _common_end(one: bytes, other: bytes) -> int:
    count = 0
    for a, b in zip(reversed(one.split(b"/")), reversed(other.split(b"/")), strict=False):
        if a != b:
            break
        count += 1
    return count
