"""The bulk server: listings, contents, refusals, and links that end in the middle of an answer."""

from __future__ import annotations

import errno
import os
import random
import struct
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.guest_host import Guest

_FIXED = struct.Struct("<cBIIIQQQqq")
Row = dict[str, bytes | int]
FIELDS = ("kind", "flags", "mode", "uid", "nlink", "inode", "size", "allocated", "mtime", "ctime")


def _text(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from("<H", data)
    return data[2 : 2 + length], data[2 + length :]


def _rows(batch: bytes) -> Iterator[tuple[bytes, Row]]:
    while batch:
        path, batch = _text(batch)
        row: Row = dict(zip(FIELDS, _FIXED.unpack_from(batch), strict=True))
        row["redirect"], batch = _text(batch[_FIXED.size :])
        row["target"], batch = _text(batch)
        yield path, row


def _list(
    guest: Guest, tree: int = 0, entries: int = 1 << 20, size: int = 1 << 30
) -> tuple[dict[bytes, Row], bool]:
    guest.bulk.ask(b"L", struct.pack("<BIQ", tree, entries, size))
    found: dict[bytes, Row] = {}
    while True:
        kind, payload = guest.bulk.answer()
        if kind == b"z":
            count, truncated = struct.unpack("<IB", payload)
            assert count == len(found)
            return found, bool(truncated)
        assert kind == b"e"
        for path, row in _rows(payload):
            parent = path.rpartition(b"/")[0]
            assert not parent or parent in found  # parents come first
            found[path] = row


def _error(guest: Guest) -> int:
    kind, payload = guest.bulk.answer()
    assert kind == b"x"
    return int.from_bytes(payload[4:8], "little")


def test_a_listing_says_what_lstat_says(guest: Guest) -> None:
    top = os.fsencode(guest.folder / "ws")
    os.makedirs(top + b"/a/b")
    for name in (b"plain", b"a/b/odd\nname \xff", b"a/space [x]"):
        with open(top + b"/" + name, "wb") as out:
            out.write(name * 100)
    os.symlink(b"../nowhere", top + b"/a/link")
    os.mkfifo(top + b"/pipe")
    os.link(top + b"/plain", top + b"/twin")
    os.truncate(top + b"/plain", 1 << 30)
    found, truncated = _list(guest)
    assert not truncated
    assert set(found) == {
        *(b"a", b"a/b", b"a/b/odd\nname \xff", b"a/link", b"a/space [x]"),
        *(b"pipe", b"plain", b"twin"),
    }
    kinds = {path: row["kind"] for path, row in found.items()}
    assert (kinds[b"a"], kinds[b"a/link"], kinds[b"pipe"]) == (b"d", b"l", b"s")
    assert found[b"a/link"]["target"] == b"../nowhere"
    for path, row in found.items():
        stat = os.lstat(top + b"/" + path)
        told = (row["mode"], row["uid"], row["nlink"], row["inode"], row["size"])
        assert told == (stat.st_mode, stat.st_uid, stat.st_nlink, stat.st_ino, stat.st_size)
        assert (row["mtime"], row["ctime"]) == (stat.st_mtime_ns, stat.st_ctime_ns)
        assert row["allocated"] == stat.st_blocks * 512


@pytest.mark.skipif(os.getuid() != 0, reason="trusted attributes and devices need root")
def test_overlay_marks_are_told(guest: Guest) -> None:
    top = guest.folder / "ws"
    os.mknod(top / "gone", 0o020000, 0)
    for name in ("new", "moved"):
        (top / name).mkdir()
    os.setxattr(top / "new", "trusted.overlay.opaque", b"y")
    os.setxattr(top / "moved", "trusted.overlay.redirect", b"/from/here")
    found, _ = _list(guest)
    assert found[b"gone"]["kind"] == b"w"
    assert found[b"new"]["flags"] == 1
    assert (found[b"moved"]["flags"], found[b"moved"]["redirect"]) == (2, b"/from/here")


def test_bounds_cut_a_listing_and_say_so(guest: Guest) -> None:
    for number in range(50):
        (guest.folder / "root" / f"{number:03}").touch()
    assert [len(part) if not cut else -len(part) for part, cut in [_list(guest, 1)]] == [50]
    part, cut = _list(guest, 1, entries=7)
    assert (len(part), cut) == (7, True)
    part, cut = _list(guest, 1, size=300)
    assert cut
    assert 0 < len(part) < 50


def test_a_folder_too_deep_is_cut(guest: Guest) -> None:
    here = os.open(guest.folder / "ws", os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d" * 20, dir_fd=here)
        deeper = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    found, cut = _list(guest)
    assert cut
    assert max(map(len, found)) < 4096


def test_contents_come_whole_with_the_times_after(guest: Guest) -> None:
    data = random.Random(1).randbytes(1_000_001)
    path = guest.folder / "ws" / "data"
    path.write_bytes(data)
    stat = path.stat()
    guest.bulk.get(b"data", stat.st_ino)
    guest.bulk.get(b"data", stat.st_ino)
    for _ in range(2):
        content, kind, end = guest.bulk.content()
        assert content == data
        assert kind == b"f"
        assert struct.unpack("<IQqq", end) == (7, len(data), stat.st_mtime_ns, stat.st_ctime_ns)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (b"../root/secret", errno.EXDEV),
        (b"/etc/passwd", errno.EXDEV),
        (b"link", errno.ELOOP),
        (b"up/passwd", errno.ELOOP),
        (b"nothing", errno.ENOENT),
        (b"folder", errno.EINVAL),
        (b"pipe", errno.EINVAL),
        (b"", errno.ENOENT),
        (b"fi\0le", errno.EINVAL),
    ],
)
def test_a_get_opens_nothing_but_files_of_its_tree(guest: Guest, path: bytes, code: int) -> None:
    top = guest.folder / "ws"
    (guest.folder / "root" / "secret").write_text("no")
    (top / "file").write_text("x")
    (top / "folder").mkdir()
    (top / "link").symlink_to("file")
    (top / "up").symlink_to("/etc")
    os.mkfifo(top / "pipe")
    guest.bulk.get(path, (top / "file").stat().st_ino)
    assert _error(guest) == code


def test_another_inode_and_a_size_beyond_the_limit_are_refused(guest: Guest) -> None:
    path = guest.folder / "ws" / "file"
    path.write_bytes(b"12345")
    guest.bulk.get(b"file", path.stat().st_ino + 1)
    assert _error(guest) == errno.ESTALE
    guest.bulk.get(b"file", path.stat().st_ino, limit=4)
    assert _error(guest) == errno.EFBIG


def test_freezing_waits_for_the_kernels_word(guest: Guest) -> None:
    group = guest.folder / "cgroup" / "agent"
    (group / "cgroup.freeze").write_text("0")
    (group / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    guest.bulk.ask(b"F", b"\1")
    assert guest.bulk.answer() == (b"k", b"")
    assert (group / "cgroup.freeze").read_text() == "1"
    guest.bulk.ask(b"F", b"\0")
    assert guest.bulk.answer() == (b"k", b"")


def test_commands_that_make_no_sense_are_errors(guest: Guest) -> None:
    for kind, payload in [(b"L", b""), (b"L", b"\2" * 13), (b"G", b"1"), (b"F", b""), (b"F", b"\2"),
                          (b"T", b"1"), (b"T", b"\xff" * 8), (b"?", b"")]:  # fmt: skip
        guest.bulk.ask(kind, payload)
        assert _error(guest) in (errno.EINVAL, errno.ENOSYS)
    guest.bulk.ask(b"T", struct.pack("<q", 1_700_000_000 * 10**9))
    assert guest.bulk.answer() == (b"k", b"")


@pytest.mark.parametrize("length", [0, 70_000, 1 << 20, 0xFFFFFFFF])
def test_an_impossible_length_ends_the_link_only(guest: Guest, length: int) -> None:
    guest.bulk.send(struct.pack("<I", length) + b"x" * 100)
    guest.bulk.connect()
    guest.bulk.ask(b"P")
    assert guest.bulk.answer() == (b"k", b"")


def test_links_ended_in_the_middle_of_an_answer(guest: Guest) -> None:
    path = guest.folder / "ws" / "big"
    path.write_bytes(b"\x16" * 3_000_000)
    chance = random.Random(7)
    for number in range(200):
        if number % 3 == 0:
            for _ in range(10):
                guest.bulk.get(b"big", path.stat().st_ino)
        elif number % 3 == 1:
            guest.bulk.send(chance.randbytes(50_000))
        else:
            guest.bulk.ask(b"L", struct.pack("<BIQ", 0, 1000, 1 << 20))
        guest.bulk.connect()
        guest.bulk.ask(b"P")
        assert guest.bulk.answer() == (b"k", b"")


def test_a_host_that_asks_without_reading_is_cut_off(guest: Guest) -> None:
    path = guest.folder / "ws" / "big"
    path.write_bytes(b"x" * 3_000_000)
    inode = path.stat().st_ino
    request = struct.pack("<I", 27) + b"G" + struct.pack("<IBQQH", 7, 0, inode, 1 << 30, 3) + b"big"
    guest.bulk.send(request * 60_000)
    guest.bulk.connect()
    guest.bulk.ask(b"P")
    assert guest.bulk.answer() == (b"k", b"")
