"""Random layers, merged by us and applied in the plainest way: the same files come out.

The oracle writes each layer into a folder with the operating system's own calls, entry by entry and
whiteouts first, as the specification has it; it knows nothing of our tree.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.vm.oci_help import Entry, Found, folder, hard, layer, link, merge
from vm.errors import ImageRefused

ROOT = os.geteuid() == 0
"""Only root gives files to others; without it owners are not compared."""

NAMES = st.sampled_from(["a", "b", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.one_of(PATHS, PATHS.map("/{}".format), PATHS.map("../{}".format), st.just(".."))
MODES = st.sampled_from([0o644, 0o755, 0o600, 0o4755, 0o1777])
OWNERS = st.sampled_from([0, 1000, 65534])


def a_file(path: str, data: bytes, mode: int, owner: int) -> Entry:
    return Entry(path, data, mode=mode, uid=owner, gid=owner, mtime=7)


def a_folder(path: str, mode: int) -> Entry:
    return folder(path, mode)


def a_fifo(path: str) -> Entry:
    return Entry(path, type=tarfile.FIFOTYPE)


def a_whiteout(path: str, opaque: bool) -> Entry:
    above, _, name = path.rpartition("/")
    name = ".wh..wh..opq" if opaque else f".wh.{name}"
    return Entry(f"{above}/{name}" if above else name)


FILES = st.builds(a_file, PATHS, st.binary(max_size=40), MODES, OWNERS)
HARD = st.builds(hard, PATHS, PATHS)
ENTRIES = st.one_of(
    *(FILES, FILES, HARD, HARD),
    st.builds(a_folder, PATHS, MODES),
    st.builds(link, PATHS, TARGETS),
    st.builds(a_fifo, PATHS),
    st.builds(a_whiteout, PATHS, st.booleans()),
)
LAYERS = st.lists(st.lists(ENTRIES, max_size=8), min_size=1, max_size=4)


class Unfit(Exception):
    """The layer has no meaning: a file within a file, a hard link to nothing."""


def is_whiteout(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".wh.")


def in_order(entries: list[Entry]) -> list[Entry]:
    """Whiteouts first, the rest as it comes: sorting is stable."""
    return sorted(entries, key=lambda one: not is_whiteout(one.name))


class Naive:
    """Applies layers to a folder, as root of a system of its own would."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def apply(self, entries: list[Entry]) -> None:
        for entry in in_order(entries):
            above, _, name = entry.name.rpartition("/")
            erase = is_whiteout(entry.name)
            parent = self._inside(above, make=not erase)
            if parent is None or not parent.is_dir():
                if erase:
                    continue
                raise Unfit
            if erase:
                self._erase(parent, name)
            else:
                self._write(parent / name, entry)

    def _inside(self, path: str, *, make: bool) -> Path | None:
        """Resolve one component after the other below the root, with os.readlink."""
        here, rest, hops = self.root, [part for part in path.split("/") if part], 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                here = here if here == self.root else here.parent
                continue
            child = here / part
            if child.is_symlink():
                hops += 1
                if hops > 40:
                    raise Unfit
                target = os.readlink(child)
                here = self.root if target.startswith("/") else here
                rest = [one for one in target.split("/") if one] + rest
            elif child.exists():
                here = child
                if not child.is_dir() and rest:
                    if make:
                        raise Unfit
                    return None
            elif make:
                child.mkdir(0o755)
                os.chmod(child, 0o755)
                os.utime(child, (0, 0))
                here = child
            else:
                return None
        return here

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()

    def _erase(self, parent: Path, name: str) -> None:
        if name == ".wh..wh..opq":
            for child in parent.iterdir():
                self._remove(child)
        else:
            self._remove(parent / name.removeprefix(".wh."))

    def _write(self, path: Path, entry: Entry) -> None:
        if entry.type == tarfile.LNKTYPE:
            above, _, name = entry.target.rpartition("/")
            parent = self._inside(above, make=False)
            target = parent / name if parent is not None else None
            if target is None or not os.path.lexists(target):
                raise Unfit
            if target.is_dir() and not target.is_symlink():
                raise Unfit
            if target == path:
                return
            self._remove(path)
            if not os.path.lexists(target):
                raise Unfit  # it lay in the folder that just went
            os.link(target, path, follow_symlinks=False)
            return
        if not (entry.type == tarfile.DIRTYPE and path.is_dir() and not path.is_symlink()):
            self._remove(path)
            self._make(path, entry)
        if entry.type != tarfile.SYMTYPE:
            if ROOT:
                os.chown(path, entry.uid, entry.gid)
            os.chmod(path, entry.mode & (0o1777 if entry.type != tarfile.DIRTYPE else 0o7777))
        os.utime(path, (entry.mtime, entry.mtime), follow_symlinks=False)

    @staticmethod
    def _make(path: Path, entry: Entry) -> None:
        if entry.type == tarfile.DIRTYPE:
            path.mkdir()
        elif entry.type == tarfile.SYMTYPE:
            path.symlink_to(entry.target)
        elif entry.type == tarfile.FIFOTYPE:
            os.mkfifo(path)
        else:
            path.write_bytes(entry.data)

    def facts(self) -> dict[str, tuple[object, ...]]:
        return {str(path.relative_to(self.root)): _facts(path) for path in self.root.rglob("*")}


def _facts(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    owner = (found.st_uid, found.st_gid) if ROOT else None
    if stat.S_ISLNK(found.st_mode):
        return ("link", os.readlink(path).encode())
    if stat.S_ISDIR(found.st_mode):
        return ("folder", stat.S_IMODE(found.st_mode), owner)
    kind = "fifo" if stat.S_ISFIFO(found.st_mode) else "file"
    data = path.read_bytes() if kind == "file" else b""
    return (kind, stat.S_IMODE(found.st_mode), owner, int(found.st_mtime), data)


def _ours(one: Found) -> tuple[object, ...]:
    if one.kind == "link":
        return ("link", one.content)
    if one.kind == "folder":
        return ("folder", one.mode, one.owner if ROOT else None)
    return (one.kind, one.mode, one.owner if ROOT else None, one.mtime, one.content)


def twins(root: Path) -> set[frozenset[str]]:
    groups: dict[int, set[str]] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            groups.setdefault(path.lstat().st_ino, set()).add(str(path.relative_to(root)))
    return {frozenset(group) for group in groups.values()}


def our_twins(found: dict[str, Found]) -> set[frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for name, one in found.items():
        if one.kind == "file":
            groups.setdefault(one.twin, set()).add(name)
    return {frozenset(group) for group in groups.values()}


COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@settings(COMMON, max_examples=100)
@given(LAYERS)
def test_nothing_that_has_a_meaning_is_refused(layers: list[list[Entry]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir()
        unfit = not all(_applied(Naive(root), entries) for entries in layers)
        try:
            merge(Path(name), *(layer(*entries) for entries in layers))
        except ImageRefused:
            assert unfit


def _applied(naive: Naive, entries: list[Entry]) -> bool:
    try:
        naive.apply(entries)
    except Unfit:
        return False
    return True


@settings(COMMON, max_examples=100)
@given(LAYERS)
def test_what_comes_out_is_what_plain_calls_would_make(layers: list[list[Entry]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir()
        fitting = [_fitting(Naive(root), entries) for entries in layers]
        found = merge(Path(name), *(layer(*entries) for entries in fitting))
        assert {path: _ours(one) for path, one in found.items()} == Naive(root).facts()
        assert our_twins(found) == twins(root)


def _fitting(naive: Naive, entries: list[Entry]) -> list[Entry]:
    """Apply what can be applied of a layer and return it; the rest is left out."""
    kept: list[Entry] = []
    for entry in in_order(entries):
        before = naive.facts()
        if _applied(naive, [entry]):
            kept.append(entry)
        else:
            assume(naive.facts() == before)
    return kept
