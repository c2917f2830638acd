"""The order and the tree in which a review lists files: pure functions from the keeper's values."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.ui.review_facts import file_row, is_decided, is_open
from snapshot.safe_text import safe_name
from widgets.file_list import FileRow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

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
    keyed: list[tuple[list[int], FileChange]] = []
    for file in files:
        parts = file.path.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        keyed.append(([places.setdefault(part, len(places)) for part in above], file))
    return [file for _, file in sorted(keyed, key=lambda pair: pair[0])]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the list depends on besides the files."""

    order: str = FILE_ORDERS[0]
    closed: frozenset[str] = frozenset()
    """Folders whose files do not show."""
    conflicts: tuple[str, ...] = ()


def tree_rows(files: Sequence[FileChange], shape: Shape) -> list[FileRow]:
    """Return the rows of ordered files: everything, risky ones, folders with files, generated."""
    if not files:
        return []
    rows = [folder_row(ALL, "all files", files, 0)]
    if shape.order == "largest first":
        return [*rows, *(file_row(file, shape.conflicts) for file in files)]
    if shape.order == "by path":
        return [*rows, *_Tree(files, shape).rows()]
    ranked: dict[int, list[FileChange]] = {0: [], 1: [], 2: []}
    for file in files:
        ranked[rank_of(file)].append(file)
    rows += [file_row(file, shape.conflicts) for file in ranked[0]]
    rows += _Tree(ranked[1], shape).rows()
    return rows + [file_row(file, shape.conflicts) for file in ranked[2]]


class _Tree:
    """Makes rows of files that stand folder by folder."""

    def __init__(self, files: Sequence[FileChange], shape: Shape) -> None:
        self._files = files
        self._shape = shape

    def rows(self) -> list[FileRow]:
        """Return all rows."""
        return self._level(self._files, "", 0)

    def _level(self, files: Sequence[FileChange], above: str, depth: int) -> list[FileRow]:
        rows: list[FileRow] = []
        for name, inside in _runs(files, lambda file: file.path[len(above) :].partition("/")):
            if not name:
                shown = [file_row(file, self._shape.conflicts, above, depth) for file in inside]
                rows += shown
                continue
            folder = _joined(f"{above}{name}/", inside)
            is_closed = folder in self._shape.closed
            label = safe_name(folder[len(above) :]).text
            rows.append(folder_row(folder, label, inside, depth, closed=is_closed))
            if not is_closed:
                rows += self._level(inside, folder, depth + 1)
        return rows


def _runs(
    files: Sequence[FileChange], parts: Callable[[FileChange], tuple[str, str, str]]
) -> list[tuple[str, list[FileChange]]]:
    """Return neighbours of one folder together; files of the level itself under an empty name."""
    runs: list[tuple[str, list[FileChange]]] = []
    for file in files:
        name, slash, _ = parts(file)
        folder = name if slash else ""
        if runs and runs[-1][0] == folder:
            runs[-1][1].append(file)
        else:
            runs.append((folder, [file]))
    return runs


def _joined(folder: str, files: Sequence[FileChange]) -> str:
    """Go down as long as there is one folder and nothing else."""
    while True:
        name, slash, _ = files[0].path[len(folder) :].partition("/")
        deeper = f"{folder}{name}/"
        if not slash or not all(file.path.startswith(deeper) for file in files):
            return folder
        folder = deeper


def folder_row(
    key: str, label: str, files: Sequence[FileChange], depth: int, *, closed: bool = False
) -> FileRow:
    """Return the row of a folder with what its files add up to."""
    mergeable = [file for file in files if not file.note]
    decisions = {file.decision for file in mergeable}
    decision = decisions.pop() if len(decisions) == 1 else "mixed" if decisions else "open"
    return FileRow(
        key=key,
        path=label,
        decision=decision,
        added=sum(file.added for file in files),
        removed=sum(file.removed for file in files),
        risky=any(file.risk for file in files),
        depth=depth,
        folder=True,
        closed=closed,
        done=sum(is_decided(file) for file in mergeable),
        total=len(mergeable),
    )


def files_under(files: Iterable[FileChange], key: str) -> list[FileChange]:
    """Return the files that a row stands for: everything, those of a folder, or one."""
    if key == ALL:
        return list(files)
    if key.endswith("/"):
        return [file for file in files if file.path.startswith(key)]
    return [file for file in files if file.path == key]


def passes(file: FileChange, state: str, text: str, conflicts: Collection[str]) -> bool:
    """Tell whether a file passes the filters: one of `FILTERS`, and words of its path."""
    wanted = text.lower().split()
    path = file.path.lower()
    words = all(word[1:] not in path if word[0] == "!" else word in path for word in wanted)
    return words and FILTERS[state](file, conflicts)


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
