"""What the tests of capture, git and mirror share."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from snapshot.capture import CaptureOptions, SnapshotReport, take_snapshot
from snapshot.manifest import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND = 1_000_000_000

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "LC_ALL": "C",
}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git on the test's own data; give what it printed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=GIT_ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=60,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"git {arguments}: {done.stderr}")
    return done.stdout


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files (with their folders) below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def repository(root: Path, files: dict[str, str | bytes]) -> Path:
    """Make a repository with one commit of `files`."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", "first")
    return root


def capture(workspace: Path, place: Path, **options: object) -> SnapshotReport:
    """Take a snapshot of `workspace` into the (new) folder `place`."""
    place.mkdir(parents=True, exist_ok=True)
    return take_snapshot(workspace, place, CaptureOptions(**options))  # type: ignore[arg-type]  # options of any type


def unpacked(place: Path) -> Path:
    """Unpack the image of `place` as the guest would see it."""
    out = place / "unpacked"
    subprocess.run(
        ["unsquashfs", "-q", "-n", "-d", str(out), str(place / "workspace.squashfs")],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    return out


def tree_of(root: Path) -> dict[bytes, Entry]:
    """List a real tree the slow and simple way (whole seconds, as squashfs has them)."""
    found: dict[bytes, Entry] = {}
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top)] = _entry(path)
    return found


def _entry(path: bytes) -> Entry:
    state = os.lstat(path)
    mode, mtime = stat.S_IMODE(state.st_mode), int(state.st_mtime) * SECOND
    if stat.S_ISLNK(state.st_mode):
        return Entry("link", mode, 0, mtime, "", os.readlink(path))
    if stat.S_ISDIR(state.st_mode):
        return Entry("dir", mode, 0, mtime)
    if stat.S_ISREG(state.st_mode):
        with open(path, "rb") as file:
            data = file.read()
        return Entry("file", mode, len(data), mtime, blake3(data).hexdigest())
    return Entry("special", mode, 0, mtime)


AWKWARD = [
    b"-dash",
    b"sp ace",
    b"new\nline",
    b"\xff\xfe",
    b"*",
    b"a[b]",
    b"back\\slash",
    b"...",
    b"#c",
    b" lead and trail ",
    b"l" * 255,
    "ü\u202e".encode(),
]


def seconds_only(report: SnapshotReport) -> dict[bytes, Entry]:
    """The manifest as squashfs keeps it: whole seconds, git's rebuilt files without a time."""

    return {
        path: msgspec.structs.replace(
            entry, mtime_ns=entry.mtime_ns // 10**9 * 10**9, tracked=False
        )
        for path, entry in report.manifest.items()
    }


def awkward_tree(root: Path) -> Path:
    top = os.fsencode(root)
    for number, name in enumerate(AWKWARD):
        (Path(os.fsdecode(os.path.join(top, name)))).write_bytes(name * number)
    write(root, {"a/b/c/deep.txt": "deep", "empty": "", "sub/.hidden": "h"})
    (root / "hollow").mkdir(mode=0o700)
    os.symlink("a/b", root / "inside")
    os.symlink("/etc/passwd", root / "absolute")
    os.symlink("../../outside", root / "sub/outside")
    os.symlink("x" * 300, root / "long")
    os.link(root / "a/b/c/deep.txt", root / "hard")
    with (root / "sparse").open("wb") as file:
        file.truncate(6 << 20)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o4755)
    os.utime(root / "empty", ns=(0, 1_234_567_890_123_456_789))
    return root


def made(path: Path) -> Path:
    path.mkdir()
    return path
