"""A real overlay mount, made as the guest makes its own, and its upper dir as PID 1 lists it."""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blake3 import blake3

from snapshot.manifest import Entry, Manifest
from snapshot.mirror import FileKey

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@dataclass(frozen=True)
class Upper:
    """What `vm.machine.bulk` delivers, for tests."""

    path: bytes
    kind: str
    opaque: bool = False
    redirect: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    uid: int = 1000
    nlink: int = 1
    inode: int = 0
    size: int = 0
    allocated: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    target: bytes = b""


@contextmanager
def overlay(lower: Path, place: Path) -> Generator[Path]:
    """Mount an overlay on `lower`; gives the merged folder. OSError where that is not allowed."""
    for name in ("upper", "work", "merged"):
        (place / name).mkdir(parents=True)
    options = f"lowerdir={lower},upperdir={place / 'upper'},workdir={place / 'work'}"
    done = subprocess.run(
        [
            *("mount", "-t", "overlay", "overlay", "-o"),
            f"{options},redirect_dir=on,metacopy=off,index=off",
            str(place / "merged"),
        ],
        capture_output=True,
    )
    if done.returncode:
        raise OSError(done.stderr.decode())
    try:
        yield place / "merged"
    finally:
        subprocess.run(["umount", str(place / "merged")], check=True)


def possible(place: Path) -> bool:
    """Whether an overlay can be mounted below `place`."""
    (place / "lower").mkdir(parents=True)
    try:
        with overlay(place / "lower", place):
            return True
    except OSError:
        return False


def list_upper(upper: Path) -> list[Upper]:
    """List an upper dir, parents first."""
    top = os.fsencode(upper)
    found: list[Upper] = []
    for folder, folders, files in os.walk(top):
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            found.append(_upper(path, os.path.relpath(path, top)))
    return sorted(found, key=lambda entry: entry.path)


def _upper(path: bytes, name: bytes) -> Upper:
    state = os.lstat(path)
    kind = _kind(state)
    is_dir = kind == "dir"
    return Upper(
        name,
        kind,
        is_dir and _attribute(path, "opaque") == b"y",
        _attribute(path, "redirect") if is_dir else b"",
        state.st_mode,
        state.st_uid,
        state.st_nlink,
        state.st_ino,
        state.st_size if kind == "file" else 0,
        state.st_blocks * 512,
        state.st_mtime_ns,
        state.st_ctime_ns,
        os.readlink(path) if kind == "link" else b"",
    )


def _kind(state: os.stat_result) -> str:
    if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
        return "whiteout"
    for test, kind in ((stat.S_ISDIR, "dir"), (stat.S_ISREG, "file"), (stat.S_ISLNK, "link")):
        if test(state.st_mode):
            return kind
    return "special"


def _attribute(path: bytes, name: str) -> bytes:
    try:
        return os.getxattr(path, f"trusted.overlay.{name}", follow_symlinks=False)
    except OSError:
        return b""


def contents_of(upper: Path, listing: list[Upper]) -> dict[FileKey, str]:
    """Read every listed file, as a mirror pass would have."""
    found: dict[FileKey, str] = {}
    for entry in listing:
        if entry.kind == "file":
            with open(os.path.join(os.fsencode(upper), entry.path), "rb") as file:
                digest = blake3(file.read()).hexdigest()
            found[FileKey(entry.inode, entry.size, entry.mtime_ns, entry.ctime_ns)] = digest
    return found


def plain(entries: dict[bytes, Entry]) -> dict[bytes, tuple[object, ...]]:
    """Reduce entries to what a change can be made of."""
    return {
        path: (entry.kind, entry.size, entry.digest, entry.target)
        + (() if entry.kind == "link" else (entry.mode,))
        for path, entry in entries.items()
    }


def manifest_of(entries: dict[bytes, Entry]) -> Manifest:
    """Make a manifest of a listed tree."""
    return Manifest(entries.items())
