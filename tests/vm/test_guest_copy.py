"""The guest's copies, run on the host with sanitizers: streams, refusals, links that end."""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.vm.guest_host import BulkPort, Guest

_HEAD = struct.Struct("<cIQH")
IN = 2


def said(bulk: BulkPort) -> bytes:
    """Return all that a copy says to its end."""
    data = b""
    while True:
        bulk.ask(b"R", struct.pack("<II", 1 << 20, 500))
        while (answer := bulk.answer())[0] == b"d":
            data += answer[1][4:]
        if answer == (b"q", b""):
            return data
        assert answer == (b"k", b"")


def opened(guest: Guest, path: bytes, flags: int = 0) -> BulkPort:
    guest.bulk.ask(b"C", bytes([flags]) + path)
    assert guest.bulk.answer() == (b"k", b"")
    return guest.bulk


def records(data: bytes) -> list[tuple[bytes, int, bytes, bytes]]:
    """Return kind, mode, path and content of each record."""
    found: list[tuple[bytes, int, bytes, bytes]] = []
    while data:
        kind, mode, _, length = _HEAD.unpack_from(data)
        path, data = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
        content = b""
        while kind == b"f":
            (size,) = struct.unpack_from("<I", data)
            content, data = content + data[4 : 4 + size], data[4 + size :]
            if not size:
                break
        found.append((kind, mode, path, content))
    return found


def head(kind: bytes, path: bytes, mode: int = 0o644) -> bytes:
    return _HEAD.pack(kind, mode, 0, len(path)) + path


def written(guest: Guest, to: bytes, *parts: bytes) -> list[tuple[bytes, int, bytes, bytes]]:
    bulk, data = opened(guest, to, IN), b"".join(parts)
    for at in range(0, len(data), 60_000):
        bulk.ask(b"W", data[at : at + 60_000])
        if bulk.answer()[0] == b"x":
            break
    return records(said(bulk))


def test_a_tree_goes_out(guest: Guest) -> None:
    top = guest.folder / "ws" / "top"
    (top / "sub").mkdir(parents=True)
    content = os.urandom(300_000)
    (top / "sub" / "big").write_bytes(content)
    (top / "sub" / "big").chmod(0o4751)
    (top / "link").symlink_to("sub")
    os.mkfifo(top / "fifo")
    found = {
        path: (kind, mode, data) for kind, mode, path, data in records(said(opened(guest, b"top")))
    }
    assert found[b"sub/big"] == (b"f", 0o751, content)
    assert [found[path][0] for path in (b"sub", b"link", b"fifo")] == [b"d", b"l", b"s"]
    assert records(said(opened(guest, b"top/link")))[0][0] == b"l"
    assert records(said(opened(guest, b"nope")))[0][:2] == (b"x", errno.ENOENT)


def test_a_tree_comes_in_and_links_are_replaced(guest: Guest) -> None:
    ws = guest.folder / "ws"
    (guest.folder / "victim").write_bytes(b"safe")
    content = os.urandom(150_000)
    body = b"".join(
        struct.pack("<I", len(piece)) + piece
        for piece in (content[at : at + 65536] for at in range(0, len(content), 65536))
    ) + struct.pack("<I", 0)
    parts = (head(b"d", b"src", 0o755), head(b"f", b"src/x", 0o6755), body, head(b"z", b""))
    assert written(guest, b"new", *parts)[0][0] == b"z"
    assert (ws / "new" / "x").read_bytes() == content
    assert (ws / "new" / "x").stat().st_mode & 0o7777 == 0o755
    assert written(guest, b"new", *parts)[0][0] == b"z"
    assert (ws / "new" / "src" / "x").read_bytes() == content

    (ws / "pointer").symlink_to("../victim")
    one = (head(b"f", b"f"), struct.pack("<I", 0), head(b"z", b""))
    assert written(guest, b"pointer", *one)[0][0] == b"z"
    assert (guest.folder / "victim").read_bytes() == b"safe"
    assert not (ws / "pointer").is_symlink()


@pytest.mark.parametrize(
    "path", [b"../x", b"a/../../x", b"/x", b"", b".", b"a//b", b"a\0b", b"a/."]
)
def test_no_path_leads_out_of_the_target(guest: Guest, path: bytes) -> None:
    (guest.folder / "ws" / "in").mkdir()
    (answer,) = written(guest, b"in", head(b"f", path), struct.pack("<I", 0), head(b"z", b""))
    assert answer[:2] == (b"x", errno.EINVAL)
    assert os.listdir(guest.folder / "ws" / "in") == []


def test_a_link_inside_the_target_is_not_walked_through(guest: Guest) -> None:
    target = guest.folder / "ws" / "in"
    target.mkdir()
    (guest.folder / "outside").mkdir()
    (target / "way").symlink_to("../../outside")
    for parts in ((head(b"d", b"way"),), (head(b"f", b"way/x"), struct.pack("<I", 0))):
        (answer,) = written(guest, b"in", *parts, head(b"z", b""))
        assert answer[0] == b"x"
    assert os.listdir(guest.folder / "outside") == []


def test_a_copy_ends_with_its_link_and_leaves_no_half_file(guest: Guest) -> None:
    bulk = opened(guest, b"half", IN)
    bulk.ask(b"W", head(b"f", b"half") + struct.pack("<I", 10) + b"x")
    assert bulk.answer() == (b"k", b"")
    guest.bulk.connect()
    guest.bulk.ask(b"R", struct.pack("<II", 10, 10))
    assert guest.bulk.answer()[1][4:8] == struct.pack("<I", errno.EBADF)
    assert not (guest.folder / "ws" / "half").exists()


def test_requests_that_make_no_sense(guest: Guest) -> None:
    for kind, payload, code in (
        (b"C", b"", errno.EINVAL),
        (b"C", b"\0", errno.EINVAL),
        (b"C", b"\4x", errno.EINVAL),
        (b"C", b"\0a\0b", errno.EINVAL),
        (b"C", b"\0" + b"a" * 5000, errno.EINVAL),
        (b"R", b"", errno.EINVAL),
        (b"R", bytes(8), errno.EBADF),
        (b"W", b"x", errno.EBADF),
    ):
        guest.bulk.ask(kind, payload)
        answer, said_ = guest.bulk.answer()
        assert (answer, said_[4:8]) == (b"x", struct.pack("<I", code)), (kind, payload[:9])
    guest.bulk.ask(b"Q")
    assert guest.bulk.answer() == (b"k", b"")
