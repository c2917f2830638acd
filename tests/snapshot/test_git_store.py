"""Objects of repositories that an attacker made: pipes, devices, bombs, numbers that lie."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zlib
from typing import TYPE_CHECKING

import pytest
from dulwich.object_format import SHA1
from dulwich.pack import write_pack_index_v2

from snapshot import git_store
from snapshot.git_dir import Dir
from snapshot.git_store import BadObject, Store
from tests.snapshot.capture_helpers import capture, git, repository, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILES: dict[str, str | bytes] = {"a.txt": "a\n", "sub/b.txt": "b\n", ".env": "secret"}


def loose(workspace: Path) -> list[Path]:
    """The file of the newest commit."""
    name = git(workspace, "rev-parse", "HEAD").strip()
    return [workspace / ".git/objects" / name[:2] / name[2:]]


def packed(workspace: Path, ending: str) -> list[Path]:
    git(workspace, "repack", "-adq")
    return list((workspace / ".git/objects/pack").glob(f"*.{ending}"))


def to_pipe(path: Path) -> None:
    os.mkfifo(path)


def to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("becomes", [to_pipe, to_device])
@pytest.mark.parametrize("part", ["loose", "pack", "idx"])
def test_objects_that_are_no_files_are_not_opened(
    part: str, becomes: Callable[[Path], None], tmp_path: Path
) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    paths = loose(workspace) if part == "loose" else packed(workspace, part)
    (workspace / ".git/index").write_bytes(b"DIRC damaged")  # so that HEAD's tree is read
    for path in paths:
        path.unlink()
        becomes(path)

    report = capture(workspace, tmp_path / "out")

    assert report.history == ()
    assert report.manifest[b"a.txt"].kind == "file"


def test_a_folder_of_objects_is_not_followed_through_a_link(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    folder = loose(workspace)[0].parent
    shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    assert capture(workspace, tmp_path / "out").history == ()


@pytest.mark.parametrize("depth", ["--depth=50", "--depth=1"])
def test_every_object_reads_as_git_reads_it(depth: str, tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {f"d/{n}": f"{n}\n" * 50 for n in range(30)})
    for turn in range(12):
        write(workspace, {"a.txt": "line\n" * 300 + f"{turn}\n"})
        git(workspace, "add", ".")
        git(workspace, "commit", "-q", "-m", str(turn))
    git(workspace, "repack", "-adfq", depth, "--window=50")
    names = git(workspace, "cat-file", "--batch-all-objects", "--batch-check").splitlines()

    with opened(workspace / ".git/objects") as store:
        for line in names:
            name, kind, size = line.split()
            found = store.read(name.encode())
            head = f"{kind} {size}\0".encode()
            assert hashlib.sha1(head + found.data).hexdigest() == name


class opened:
    """The store of one `objects` folder."""

    def __init__(self, folder: Path) -> None:
        found = Dir.open(os.fsencode(folder))
        assert found is not None
        self.folder = found
        self.store = Store([found], SHA1)

    def __enter__(self) -> Store:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self.folder.close()


def number(kind: int, size: int) -> bytes:
    """The head of a packed object."""
    out = [kind << 4 | size & 15]
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def forged(tmp_path: Path, objects: list[bytes]) -> Path:
    """A pack of hand-made objects, named 00…0, 11…1 and so on."""
    body = b"PACK" + struct.pack(">II", 2, len(objects))
    rows: list[tuple[bytes, int, int]] = []
    for count, item in enumerate(objects):
        rows.append((bytes([count * 0x11]) * 20, len(body), 0))
        body += item
    body += hashlib.sha1(body).digest()
    folder = tmp_path / "objects/pack"
    folder.mkdir(parents=True)
    (folder / f"pack-{'a' * 40}.pack").write_bytes(body)
    with (folder / f"pack-{'a' * 40}.idx").open("wb") as file:
        write_pack_index_v2(file, rows, body[-20:])
    return tmp_path / "objects"


def bombs() -> Iterator[tuple[str, list[bytes]]]:
    huge = git_store.OBJECT_LIMIT + 1
    whole = number(2, 4) + zlib.compress(b"base")
    yield "says that it is huge", [number(2, 1 << 60) + zlib.compress(b"x")]
    yield "is huge", [number(2, huge) + zlib.compress(bytes(huge))]
    yield "is longer than it says", [number(2, 4) + zlib.compress(bytes(1 << 20))]
    grown = b"\x04" + bytes([0x80 | huge & 0x7F, 0x80 | huge >> 7 & 0x7F, 0x80 | huge >> 14 & 0x7F])
    grown += bytes([huge >> 21]) + b"\x90\x04" * 100
    delta = number(6, len(grown)) + bytes([len(whole)]) + zlib.compress(grown)
    yield "makes something huge", [delta, whole]
    yield "stands on itself", [number(7, 4) + b"\0" * 20 + zlib.compress(b"\1\1\1a")]
    yield "stands before the pack", [number(6, 4) + b"\xff\xff\x7f" + zlib.compress(b"\1\1\1a")]
    yield "has a number without end", [b"\xff" * 400]
    yield "is of no kind", [number(5, 1) + zlib.compress(b"x")]


@pytest.mark.parametrize(("what", "objects"), list(bombs()), ids=[name for name, _ in bombs()])
def test_a_packed_object_that_lies_is_refused(
    what: str, objects: list[bytes], tmp_path: Path
) -> None:
    del what
    if len(objects) == 2:  # a delta on what comes before it
        objects = objects[::-1]
    last = bytes([(len(objects) - 1) * 0x11]).hex().encode() * 20
    with opened(forged(tmp_path, objects)) as store, pytest.raises((BadObject, zlib.error)):
        store.read(last)
