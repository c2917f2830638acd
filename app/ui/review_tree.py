"""The order and the tree in which a review lists files: pure functions from the keeper's values."""

from __future__ import annotations

from bisect import bisect_right as bisect
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from app.ui.review_facts import is_open
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from app.protocol import FileChange

FILE_ORDERS = ("risky first", "by path", "largest first")
"""How the list of files can be ordered; the last is no tree."""

ALL = "/"
"""Key of the row that stands for everything; no path is so."""

GENERATED = frozenset(
    (
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
        *("uv.lock", "poetry.lock", "pipfile.lock", "pdm.lock", "cargo.lock", "gemfile.lock"),
        *("composer.lock", "go.sum", "flake.lock", "mix.lock", "pubspec.lock", "podfile.lock"),
    )
)
"""Lower-case names of files that programs write; they come last."""

GENERATED_ENDS = (".min.js", ".min.css", ".map", ".pb.go", "_pb2.py", ".snap")


def is_generated(path: str) -> bool:
    """Tell whether a program writes a file of this name."""
    name = path.rpartition("/")[2].lower()
    return name in GENERATED or name.endswith(GENERATED_ENDS)


def rank_of(file: FileChange) -> int:
    """Return 0 for what is held back or warned of, 2 for what programs write, else 1."""
    if file.risk:
        return 0
    return 2 if is_generated(file.path) else 1


def in_order(files: Iterable[FileChange], order: str = FILE_ORDERS[0]) -> list[FileChange]:
    """Return files as the list shows them; those of one folder stand together."""
    if order == "largest first":
        return sorted(files, key=lambda file: -(file.added + file.removed))
    if order == "by path":
        return sorted(files, key=lambda file: _sort_key(file.path))
    ranks: dict[int, list[FileChange]] = defaultdict(list)
    for file in files:
        ranks[rank_of(file)].append(file)
    risky = sorted(ranks[0], key=lambda file: file.tier != "held")
    return [*risky, *_by_folder(ranks[1]), *ranks[2]]


def _sort_key(path: str) -> list[tuple[bool, str]]:
    """Put folders before the files beside them."""
    *folders, name = path.split("/")
    return [*((False, folder) for folder in folders), (True, name)]


def _by_folder(files: Iterable[FileChange]) -> list[FileChange]:
    """Put the files of a folder together, each where its folder came first."""
    places: dict[str, int] = {}
    chains: dict[str, tuple[int, ...]] = {"": ()}

    def chain(folder: str) -> tuple[int, ...]:
        """Return the places of a folder and of all above it, also of a very deep one."""
        unknown: list[str] = []
        while folder not in chains:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        found = chains[folder]
        for below in reversed(unknown):
            found = chains[below] = (*found, places.setdefault(below, len(places)))
        return found

    keyed: list[tuple[tuple[int, ...], FileChange]] = []
    for file in files:
        above = chain(file.path.rpartition("/")[0])
        keyed.append(((*above, places.setdefault(file.path, len(places))), file))
    return [file for _, file in sorted(keyed, key=lambda pair: pair[0])]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the list depends on besides the files."""

    order: str = FILE_ORDERS[0]
    closed: frozenset[str] = frozenset()
    """Folders whose files do not show."""
    conflicts: tuple[str, ...] = ()


class Entry(NamedTuple):
    """Where a row stands and which of the ordered files it is about; nothing of their state."""

    key: str
    label: str
    """What the row is called; safe to print."""
    depth: int
    start: int
    stop: int
    folder: bool
    closed: bool = False


def outline(files: Sequence[FileChange], shape: Shape) -> Iterator[Entry]:
    """Yield the rows' places: everything, risky files, folders with files, generated files."""
    count = len(files)
    tree = _Outline([file.path for file in files], shape.closed)
    yield Entry(ALL, "all files", 0, 0, count, folder=True)
    if shape.order == "largest first":
        yield from tree.flat(0, count)
    elif shape.order == "by path":
        yield from tree.level(0, count)
    else:
        first = bisect(files, 0, key=rank_of)
        last = bisect(files, 1, key=rank_of)
        yield from tree.flat(0, first)
        yield from tree.level(first, last)
        yield from tree.flat(last, count)


class _Outline:
    """Finds folders in ordered paths, in which those of one folder are neighbours."""

    def __init__(self, paths: Sequence[str], closed: frozenset[str]) -> None:
        self._paths = paths
        self._closed = closed

    def flat(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield files without their folders."""
        return (self._file(at, 0, 0) for at in range(start, stop))

    def _file(self, at: int, above: int, depth: int) -> Entry:
        path = self._paths[at]
        return Entry(path, safe_name(path[above:]).text, depth, at, at + 1, folder=False)

    def level(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield files with their folders, and no call within a call: they can be very deep."""
        around = [(stop, 0)]  # where each folder around the next file ends, its name's length
        at = start
        while at < stop:
            while at >= around[-1][0]:
                around.pop()
            last, above = around[-1]
            depth = len(around) - 1
            slash = self._paths[at].find("/", above)
            if slash < 0:
                yield self._file(at, above, depth)
                at += 1
                continue
            end = self._end(at, last, slash + 1)
            folder = self._joined(at, end, slash + 1)
            closed = folder in self._closed
            label = safe_name(folder[above:]).text
            yield Entry(folder, label, depth, at, end, folder=True, closed=closed)
            if closed:
                at = end
            else:
                around.append((end, len(folder)))

    def _end(self, at: int, stop: int, length: int) -> int:
        """Return where the neighbours in the folder of a path end."""
        folder = self._paths[at][:length]
        end = at + 1
        while end < stop and self._paths[end].startswith(folder):
            end += 1
        return end

    def _joined(self, at: int, end: int, length: int) -> str:
        """Go down as long as there is one folder and nothing else."""
        path = self._paths[at]
        while True:
            slash = path.find("/", length)
            if slash < 0 or self._end(at, end, slash + 1) < end:
                return path[:length]
            length = slash + 1


def files_under(files: Iterable[FileChange], key: str) -> list[FileChange]:
    """Return the files that a row stands for: everything, those of a folder, or one."""
    if key == ALL:
        return list(files)
    if key.endswith("/"):
        return [file for file in files if file.path.startswith(key)]
    return [file for file in files if file.path == key]


def passes(file: FileChange, state: str, text: str, conflicts: Collection[str]) -> bool:
    """Tell whether a file passes the filters: one of `FILTERS`, and words of its path."""
    path = file.path.lower()
    words = all(
        not _holds(path, word[1:]) if word[0] == "!" else _holds(path, word)
        for word in text.lower().split()
    )
    return words and FILTERS[state](file, conflicts)


def _holds(path: str, word: str) -> bool:
    """Tell whether a path holds a word, or is matched by one with `*` or `?` in it.

    A pattern is about the whole path, or about the end of it from a slash on.
    """
    if "*" not in word and "?" not in word:
        return word in path
    pattern = word.replace("[", "[[]")  # folders are called [slug] and the like
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")


def _is_open(file: FileChange, _: Collection[str]) -> bool:
    return not file.note and (any(map(is_open, file.hunks)) or not file.hunks)


def _is_conflict(file: FileChange, conflicts: Collection[str]) -> bool:
    return file.path in conflicts


FILTERS: dict[str, Callable[[FileChange, Collection[str]], bool]] = {
    "all": lambda _file, _: True,
    "open": _is_open,
    "risky": lambda file, _: bool(file.risk),
    "conflicts": _is_conflict,
    "yours too": lambda file, _: file.drift and not file.merged,
    "commented": lambda file, _: bool(file.comments),
    "not viewed": lambda file, _: not file.viewed,
}
"""Which files a filter shows, in the order in which its key goes through them."""
