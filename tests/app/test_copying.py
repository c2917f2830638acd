"""Copies on the host's side: whatever a guest sends, nothing but the whole copy has a name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli.copy import guest_side
from app.client.copying import into, out
from app.client.copying.out import Place, destination, receive
from app.client.copying.report import CopyLimits, CopyReport
from app.copy_stream import BROKEN, BrokenFile, pack_length, pack_record, read_chunks, read_record
from app.errors import AppError
from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import asyncssh

END = pack_record("z", 0, 0, b"")


def stream(*parts: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(b"".join(parts))
    reader.feed_eof()
    return reader


def file(path: bytes, content: bytes = b"", mode: int = 0o644) -> bytes:
    chunk = pack_length(len(content)) + content if content else b""
    return pack_record("f", mode, len(content), path) + chunk + pack_length(0)


def folder(path: bytes, mode: int = 0o755) -> bytes:
    return pack_record("d", mode, 0, path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield Place(opened, b"copy", tmp_path / "copy")
    os.close(opened)


def silent(_: CopyReport) -> None:
    """Show nothing."""


async def taken(place: Place, *parts: bytes) -> CopyReport:
    return await receive(stream(*parts), place, silent)


async def test_a_tree_arrives_with_its_modes(place: Place, tmp_path: Path) -> None:
    report = await taken(
        place, folder(b"", 0o700), folder(b"a", 0), file(b"a/x", b"one", 0o6751), file(b"b"), END
    )
    assert (report.files, report.folders, report.size) == (2, 2, 3)
    assert (tmp_path / "copy" / "a" / "x").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "copy" / "a" / "x").stat().st_mode) == 0o751
    assert stat.S_IMODE((tmp_path / "copy" / "a").stat().st_mode) == 0o700
    assert os.listdir(tmp_path) == ["copy"]


async def test_what_is_no_file_is_told_and_left_out(place: Place) -> None:
    parts = (
        folder(b""),
        pack_record("l", 0, 0, b"link"),
        pack_record("s", 0, 0, b"fifo"),
        pack_record("x", 13, 0, b"secret"),
        pack_record("f", 0o644, 9, b"torn") + pack_length(2) + b"ab" + pack_length(BROKEN),
        END,
    )
    report = await taken(place, *parts)
    told = {one.path: one.reason for one in report.skipped}
    assert list(told) == ["link", "fifo", "secret", "torn"]
    assert told["secret"] == "Permission denied"
    assert os.listdir(place.path) == []


HOSTILE = {
    "up": (folder(b""), folder(b"..")),
    "out": (folder(b""), file(b"../x", b"x")),
    "absolute": (folder(b""), file(b"/tmp/x", b"x")),
    "dot": (folder(b""), file(b"a/./x", b"x")),
    "nul": (folder(b""), file(b"a\0b", b"x")),
    "twice": (folder(b""), file(b"a"), file(b"a")),
    "file as folder": (folder(b""), file(b"a"), file(b"a/b")),
    "folder twice": (folder(b""), folder(b"a"), folder(b"a")),
    "no folder": (folder(b""), file(b"a/b")),
    "root twice": (folder(b""), folder(b"")),
    "begins inside": (folder(b"a"),),
    "unknown kind": (folder(b""), b"q" + folder(b"a")[1:]),
    "huge chunk": (folder(b""), file(b"a")[:-4] + pack_length(1 << 20)),
    "long path": (folder(b""), b"d" + b"\0" * 12 + b"\xff\xff" + b"a" * 0xFFFF),
    "two files": (file(b"", b"x"), file(b"")),
}


@pytest.mark.parametrize("parts", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_list_that_cannot_be_leaves_nothing(
    place: Place, tmp_path: Path, parts: tuple[bytes, ...]
) -> None:
    with pytest.raises(GuestProtocol):
        await taken(place, *parts, END)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("parts", [(folder(b""), file(b"a", b"x")), (file(b"", b"x"),)])
async def test_a_stream_that_breaks_off_leaves_what_was_there(
    place: Place, tmp_path: Path, parts: tuple[bytes, ...]
) -> None:
    if parts[0][:1] == b"f":
        (tmp_path / "copy").write_bytes(b"before")
    whole = b"".join(parts)
    for cut in range(0, len(whole) + 1, 3):
        with pytest.raises(asyncio.IncompleteReadError):
            await taken(place, whole[:cut])
    assert os.listdir(tmp_path) in ([], ["copy"])
    if (tmp_path / "copy").exists():
        assert (tmp_path / "copy").read_bytes() == b"before"


async def test_a_file_takes_no_name_that_was_meant_for_a_folder(
    place: Place, tmp_path: Path
) -> None:
    meant = replace(place, folder_meant=True)
    with pytest.raises(AppError, match="There is no folder") as refused:
        await taken(meant, file(b"", b"x"), END)
    assert (refused.value.code, refused.value.hint) == ("not-found", f"mkdir -p {meant.path}")
    assert os.listdir(tmp_path) == []
    await taken(meant, folder(b""), file(b"a", b"x"), END)
    assert (tmp_path / "copy" / "a").read_bytes() == b"x"


def test_a_slash_asks_the_guest_for_a_folder_for_a_file_only(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"")
    assert into.asked_of_guest(one, b"/tmp/new/") == b"/tmp/new/."
    assert into.asked_of_guest(one, b"/tmp/new") == b"/tmp/new"
    assert into.asked_of_guest(tmp_path, b"/tmp/new/") == b"/tmp/new/"


async def test_a_file_replaces_a_file_and_nothing_else(place: Place, tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes(b"before")
    await taken(place, file(b"", b"after"), END)
    assert (tmp_path / "copy").read_bytes() == b"after"
    (tmp_path / "copy").unlink()
    (tmp_path / "victim").write_bytes(b"safe")
    (tmp_path / "copy").symlink_to("victim")
    for parts in ((file(b"", b"evil"),), (folder(b""), file(b"victim", b"evil"))):
        with pytest.raises(AppError, match="nothing is written"):
            await taken(place, *parts, END)
    assert (tmp_path / "victim").read_bytes() == b"safe"


@pytest.mark.parametrize("kind", ["l", "s", "x", "z"])
async def test_a_copy_of_no_file_is_an_error(place: Place, tmp_path: Path, kind: str) -> None:
    with pytest.raises(AppError):
        await taken(place, pack_record(kind, 2, 0, b""), END)
    assert os.listdir(tmp_path) == []


async def test_a_full_disk_keeps_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "RESERVE", 1 << 62)
    with pytest.raises(AppError) as caught:
        await taken(place, folder(b""), file(b"a", b"x"), END)
    assert caught.value.code == "disk-full"
    assert os.listdir(tmp_path) == []


async def test_names_without_end_are_cut_off(place: Place, tmp_path: Path) -> None:
    bounded = replace(place, limits=CopyLimits(entries=10))
    nine = [folder(b"%d" % number) for number in range(9)]
    with pytest.raises(AppError, match="more entries than 10") as caught:
        await taken(bounded, folder(b""), *nine, folder(b"9"), END)
    assert caught.value.code == "too-large"
    assert os.listdir(tmp_path) == []
    await taken(bounded, folder(b""), *nine, END)


@pytest.mark.parametrize("many", [False, True])
async def test_bytes_without_end_are_cut_off(place: Place, tmp_path: Path, many: bool) -> None:
    bounded = replace(place, limits=CopyLimits(size=5000))

    def parts(size: int) -> list[bytes]:
        if not many:
            return [file(b"", bytes(size)), END]
        return [folder(b""), file(b"a", bytes(2500)), file(b"b", bytes(size - 2500)), END]

    with pytest.raises(AppError, match="more bytes than 5,000") as caught:
        await taken(bounded, *parts(5001))
    assert caught.value.code == "too-large"
    assert os.listdir(tmp_path) == []
    assert (await taken(bounded, *parts(5000))).size == 5000


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_no_bytes_are_worse_than_an_error(data: bytes) -> None:
    async def read() -> None:
        reader = stream(data)
        while (await read_record(reader)).kind == "f":
            async for _ in read_chunks(reader):
                pass

    with contextlib.suppress(GuestProtocol, asyncio.IncompleteReadError, BrokenFile):
        asyncio.run(read())


def test_where_a_copy_goes(tmp_path: Path) -> None:
    assert destination(b"/a/b/", tmp_path) == tmp_path / "b"
    assert destination(b"x", tmp_path / "new") == tmp_path / "new"
    for source, target in ((b"..", tmp_path), (b"x", tmp_path / "no" / "where")):
        with pytest.raises(AppError):
            destination(source, target)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(AppError, match="is a link"):
        destination(b"x", tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(AppError, match="is no folder"):
        destination(b"x", tmp_path / "file" / "x")


async def test_an_error_may_name_the_place_that_was_asked_for() -> None:
    record = await read_record(stream(pack_record("x", 2, 0, b"/tmp/no/../where/")))
    assert record.path == b"/tmp/no/../where/"
    with pytest.raises(GuestProtocol):
        await read_record(stream(pack_record("x", 2, 0, b"a\0b")))


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("s1:a/b", ("s1", b"a/b")),
        ("s1:", ("s1", b".")),
        ("s1:a:b", ("s1", b"a:b")),
        ("./a:b", None),
        ("/x:y", None),
        (":x", None),
        ("plain", None),
    ],
)
def test_which_side_is_the_guest(text: str, side: tuple[str, bytes] | None) -> None:
    assert guest_side(text) == side


class Sink:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        """Have room."""

    def write_eof(self) -> None:
        """End."""


async def sent(path: Path) -> tuple[list[tuple[str, bytes, bytes]], CopyReport]:
    sink, report = Sink(), CopyReport()
    writer = cast("asyncssh.SSHWriter[bytes]", sink)
    await into._Sender(writer, report, silent).send(path)  # pyright: ignore[reportPrivateUsage]
    reader, found = stream(sink.data), list[tuple[str, bytes, bytes]]()
    while (record := await read_record(reader)).kind != "z":
        content = b""
        if record.kind == "f":
            content = b"".join([chunk async for chunk in read_chunks(reader)])
        found.append((record.kind, record.path, content))
    return found, report


async def test_what_is_sent_of_a_tree(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "big").write_bytes(b"x" * 200_000)
    (top / "a").write_bytes(b"a")
    (top / "link").symlink_to("/etc/passwd")
    (top / "folder-link").symlink_to("sub")
    os.mkfifo(top / "fifo")
    found, report = await sent(top)
    assert found == [
        ("d", b"top", b""),
        ("f", b"top/a", b"a"),
        ("d", b"top/sub", b""),
        ("f", b"top/sub/big", b"x" * 200_000),
    ]
    told = {one.path: one.reason for one in report.skipped}
    assert told == {
        "top/fifo": "is no regular file",
        "top/folder-link": "is a link",
        "top/link": "is a link",
    }
    assert (report.files, report.folders, report.size) == (2, 2, 200_001)
