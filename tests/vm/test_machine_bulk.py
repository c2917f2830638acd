"""The bulk client against guests that lie, stall, babble, and any bytes at all."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vm.machine_fakes import greet, listening
from vm.errors import GuestProtocol, LinkLost
from vm.machine.bulk import MAX_DATA, MAX_WRITE, Activity, BulkClient, Fetched, GuestError
from vm.machine.entries import MAX_FRAME, EntryReader, UpperEntry, decode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

TOKEN = "fedcba9876543210" * 2


def entry(
    path: bytes = b"a",
    kind: bytes = b"f",
    flags: int = 0,
    size: int = 3,
    redirect: bytes = b"",
    target: bytes = b"",
) -> bytes:
    fixed = struct.pack("<BBIIIQQQqq", kind[0], flags, 0o100644, 1000, 1, 7, size, 4096, 11, -12)
    return b"".join(
        (
            struct.pack("<H", len(path)) + path,
            fixed,
            struct.pack("<H", len(redirect)) + redirect,
            struct.pack("<H", len(target)) + target,
        )
    )


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<I", len(payload) + 1) + kind + payload


def list_end(count: int, truncated: int = 0) -> bytes:
    return frame(b"z", struct.pack("<IB", count, truncated))


@contextlib.asynccontextmanager
async def client_of(path: Path, *answers: bytes) -> AsyncGenerator[BulkClient]:
    """A client whose guest gives these answers, one for each request, whatever was asked."""

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer, TOKEN)
        for answer in answers:
            (length,) = struct.unpack("<I", await reader.readexactly(4))
            await reader.readexactly(length)
            writer.write(answer)
            await writer.drain()
        await reader.read()

    async with listening(path, guest):
        client = await BulkClient.connect(path, TOKEN, 5.0)
        try:
            yield client
        finally:
            await client.close()


async def test_a_list(tmp_path: Path) -> None:
    first = frame(b"e", entry(b"d", b"d", 3, redirect=b"/old") + entry(b"d/f"))
    second = frame(b"e", entry(b"l", b"l", target=b"../x") + entry(b"w", b"w"))
    async with client_of(tmp_path / "s", first + second + list_end(4, 1)) as client:
        listing = await client.list_upper("workspace", 10, 10_000)
    assert listing.truncated
    entries = list(listing.entries)
    assert [(e.path, e.kind) for e in entries] == [
        (b"d", "dir"), (b"d/f", "file"), (b"l", "link"), (b"w", "whiteout"),
    ]  # fmt: skip
    assert list(listing.entries) == entries, "they are walked over again and again"
    assert entries[0] == UpperEntry(
        b"d", "dir", True, b"/old", 0o100644, 1000, 1, 7, 3, 4096, 11, -12, b""
    )
    assert entries[2].target == b"../x"


async def test_a_list_that_is_known_is_not_taken_apart(tmp_path: Path) -> None:
    """Its digest covers the entries and what the end says, wherever the frames are cut."""
    one, two = entry(b"d", b"d"), entry(b"d/f")
    whole = frame(b"e", one + two) + list_end(2)
    cut = frame(b"e", one) + frame(b"e", two) + list_end(2)
    other = frame(b"e", one + entry(b"d/g")) + list_end(2)
    truncated = frame(b"e", one + two) + list_end(2, 1)
    async with client_of(tmp_path / "s", whole, cut, other, truncated) as client:
        first = await client.list_upper("workspace", 10, 10_000)
        again = await client.list_upper("workspace", 10, 10_000, known=first.digest)
        assert (again.known, list(again.entries), again.digest) == (True, [], first.digest)
        for cut_short in (False, True):
            fresh = await client.list_upper("workspace", 10, 10_000, known=first.digest)
            assert (fresh.known, fresh.truncated, len(fresh.entries)) == (False, cut_short, 2)
            assert fresh.digest != first.digest


async def test_the_request_is_as_the_contract_says(tmp_path: Path) -> None:
    seen = bytearray()

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer, TOKEN)
        busy = frame(b"a", struct.pack("<BQ", 1, 1_500_000))
        answers = [list_end(0), frame(b"f", struct.pack("<IQqq", 1, 0, 5, 6)), busy]
        answers += [frame(b"k")] * 4
        for answer in answers:
            head = await reader.readexactly(4)
            seen.extend(head + await reader.readexactly(struct.unpack("<I", head)[0]))
            writer.write(answer)
        await reader.read()

    async with listening(tmp_path / "s", guest):
        client = await BulkClient.connect(tmp_path / "s", TOKEN, 5.0)
        await client.list_upper("root", 9, 99)
        done = await client.fetch("workspace", b"p/q", 12, 34, print)
        activity = await client.activity()
        await client.freeze()
        await client.thaw()
        await client.set_clock(-5)
        await client.ping()
        await client.close()
    assert done == Fetched(0, 5, 6, 0)
    assert activity == Activity(waits=True, cpu_s=1.5)
    assert bytes(seen) == b"".join(
        (
            frame(b"L", struct.pack("<BIQ", 1, 9, 99)),
            frame(b"G", struct.pack("<IBQQH", 1, 0, 12, 34, 3) + b"p/q"),
            frame(b"A"),
            frame(b"F", b"\1"),
            frame(b"F", b"\0"),
            frame(b"T", struct.pack("<q", -5)),
            frame(b"P"),
        )
    )


async def test_a_file_in_pieces(tmp_path: Path) -> None:
    data = [frame(b"d", struct.pack("<I", 1) + bytes([n]) * 65_000) for n in range(3)]
    end = frame(b"f", struct.pack("<IQqq", 1, 195_000, 1, 2))
    got = bytearray()
    async with client_of(tmp_path / "s", b"".join(data) + end) as client:
        done = await client.fetch("root", b"x", 1, 200_000, got.extend)
    assert done == Fetched(195_000, 1, 2, 195_000)
    assert len(got) == 195_000


async def test_an_error_leaves_the_link_whole(tmp_path: Path) -> None:
    error = frame(b"x", struct.pack("<II", 1, 116) + b"stale\x1b[31m handle")
    async with client_of(tmp_path / "s", error, frame(b"k")) as client:
        with pytest.raises(GuestError, match=r"stale\[31m handle \(errno 116\)") as caught:
            await client.fetch("root", b"x", 1, 10, print)
        assert caught.value.errno == 116
        await client.ping()


BAD_LISTS = {
    "truncated entry": frame(b"e", entry()[:-1]) + list_end(1),
    "length beyond the frame": frame(b"e", b"\xff\xff" + entry()) + list_end(1),
    "absolute": frame(b"e", entry(b"/etc")) + list_end(1),
    "dots": frame(b"e", entry(b"../x")) + list_end(1),
    "empty path": frame(b"e", entry(b"")) + list_end(1),
    "double slash": frame(b"e", entry(b"d", b"d") + entry(b"d//x")) + list_end(2),
    "nul": frame(b"e", entry(b"a\0b")) + list_end(1),
    "unknown kind": frame(b"e", entry(kind=b"?")) + list_end(1),
    "unknown flag": frame(b"e", entry(flags=8)) + list_end(1),
    "huge size": frame(b"e", entry(size=1 << 63)) + list_end(1),
    "redirect without its flag": frame(b"e", entry(kind=b"d", redirect=b"/x")) + list_end(1),
    "flag without redirect": frame(b"e", entry(kind=b"d", flags=2)) + list_end(1),
    "child before its folder": frame(b"e", entry(b"d/x")) + list_end(1),
    "child of a file": frame(b"e", entry(b"f") + entry(b"f/x")) + list_end(2),
    "twice": frame(b"e", entry() + entry()) + list_end(2),
    "too many": frame(b"e", b"".join(entry(b"%d" % n) for n in range(11))) + list_end(11),
    "too long": b"".join(frame(b"e", entry(b"%d" % n, target=b"t" * 60_000) * 1) for n in range(10))
    * 3,
    "wrong count": frame(b"e", entry()) + list_end(2),
    "wrong end": frame(b"z", b"\0"),
    "wrong truncated": list_end(0, 2),
    "wrong type": frame(b"k"),
    "unknown type": frame(b"?"),
    "empty frame": struct.pack("<I", 0),
    "enormous frame": struct.pack("<I", 0xFFFFFFFF) + b"e",
    "one too many": struct.pack("<I", MAX_FRAME + 1) + b"e",
    "short error": frame(b"x", b"\0\0"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
async def test_a_bad_list_ends_the_link(tmp_path: Path, name: str) -> None:
    async with client_of(tmp_path / "s", BAD_LISTS[name], frame(b"k")) as client:
        with pytest.raises(GuestProtocol):
            await client.list_upper("workspace", 10, 10_000)
        with pytest.raises(LinkLost):
            await client.ping()


BAD_FILES = {
    "more than allowed": frame(b"d", struct.pack("<I", 1) + b"x" * 11),
    "another id": frame(b"d", struct.pack("<I", 2) + b"x"),
    "short data": frame(b"d", b"\1\0"),
    "another's end": frame(b"f", struct.pack("<IQqq", 3, 0, 0, 0)),
    "another's error": frame(b"x", struct.pack("<II", 3, 2)),
    "short end": frame(b"f", struct.pack("<I", 1)),
    "a list": frame(b"e", entry()),
}


@pytest.mark.parametrize("name", BAD_FILES)
async def test_a_bad_file_ends_the_link(tmp_path: Path, name: str) -> None:
    got = bytearray()
    async with client_of(tmp_path / "s", BAD_FILES[name]) as client:
        with pytest.raises(GuestProtocol):
            await client.fetch("workspace", b"p", 1, 10, got.extend)
        with pytest.raises(LinkLost):
            await client.ping()
    assert not got


async def test_too_large_a_data_frame(tmp_path: Path) -> None:
    big = frame(b"d", struct.pack("<I", 1) + b"x" * 65_537)
    async with client_of(tmp_path / "s", big) as client:
        with pytest.raises(GuestProtocol):
            await client.fetch("workspace", b"p", 1, 1 << 20, print)


async def test_a_copy_in_pieces_and_its_end(tmp_path: Path) -> None:
    data = frame(b"d", bytes(4) + b"abc")
    answers = (frame(b"k"), data + data + frame(b"k"), frame(b"q"), frame(b"k"), frame(b"k"))
    pieces: list[bytes] = []
    async with client_of(tmp_path / "s", *answers) as client:
        await client.copy_open(b"a", root=True, into=False)
        assert not await client.copy_read(6, pieces.append)
        assert await client.copy_read(6, pieces.append)
        await client.copy_write(b"x" * 65536)
        await client.copy_close()
        for path in (b"", b"a\0b", b"a" * 4096):
            with pytest.raises(ValueError, match="path"):
                await client.copy_open(path, root=False, into=False)
        with pytest.raises(ValueError, match="too much"):
            await client.copy_write(b"x" * (MAX_WRITE + 1))
    assert pieces == [b"abc", b"abc"]


async def test_pieces_of_a_copy_are_sent_together_and_all_their_answers_are_taken(
    tmp_path: Path,
) -> None:
    broken = frame(b"x", struct.pack("<II", 0, 32) + b"Broken pipe")
    answers = [frame(b"k")] * 3 + [frame(b"k"), broken, broken] + [frame(b"k")] * 2
    async with client_of(tmp_path / "s", *answers) as client:
        await client.copy_write(b"x" * (2 * MAX_DATA + 1))
        with pytest.raises(GuestError) as caught:
            await client.copy_write(b"x" * 3 * MAX_DATA)
        assert caught.value.errno == 32
        await client.copy_write(b"")
        await client.ping()


@pytest.mark.parametrize(
    "answer",
    [
        frame(b"d", bytes(4) + b"four"),
        frame(b"d", bytes(4)),
        frame(b"d"),
        frame(b"e"),
        frame(b"z", bytes(5)),
    ],
)
async def test_a_bad_piece_of_a_copy_ends_the_link(tmp_path: Path, answer: bytes) -> None:
    async with client_of(tmp_path / "s", answer) as client:
        with pytest.raises(GuestProtocol):
            await client.copy_read(3, bytes)
        with pytest.raises(LinkLost):
            await client.ping()


async def test_silence_and_a_closed_port(tmp_path: Path) -> None:
    async with client_of(tmp_path / "s", b"") as client:
        with pytest.raises(LinkLost, match="within"):
            await client.ping(0.1)
        with pytest.raises(LinkLost):
            await client.ping()

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer, TOKEN)

    async with listening(tmp_path / "t", guest):
        client = await BulkClient.connect(tmp_path / "t", TOKEN, 5.0)
        with pytest.raises(LinkLost, match="broke"):
            await client.ping()
        await client.close()


async def test_a_sink_that_fails_and_a_cancelled_call_end_the_link(tmp_path: Path) -> None:
    data = frame(b"d", struct.pack("<I", 1) + b"x")

    def full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    async with client_of(tmp_path / "s", data) as client:
        with pytest.raises(OSError, match="No space left"):
            await client.fetch("workspace", b"p", 1, 10, full)
        with pytest.raises(LinkLost):
            await client.ping()
    async with client_of(tmp_path / "t", b"") as client:
        call = asyncio.create_task(client.ping())
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(LinkLost):
            await client.ping()


names = st.binary(min_size=1, max_size=8).filter(
    lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..")
)


@given(st.lists(names, unique=True, max_size=6), st.sampled_from([b"f", b"d", b"l", b"w", b"s"]))
def test_what_is_written_is_read(parts: list[bytes], kind: bytes) -> None:
    reader = EntryReader(100, 100_000)
    reader.keep(b"".join(entry(part, kind, target=part) for part in parts))
    entries = reader.decode()
    assert len(entries) == len(parts)
    assert [e.path for e in entries] == parts
    assert [e.target for e in entries] == parts


@given(st.binary(max_size=300))
def test_any_bytes_give_entries_or_a_protocol_error(payload: bytes) -> None:
    reader = EntryReader(10, 1000)
    with contextlib.suppress(GuestProtocol):
        reader.keep(payload)
        assert all(e.path and not e.path.startswith(b"/") for e in reader.decode())


@given(st.integers(0, 120), st.integers(0, 255))
def test_one_changed_byte_never_breaks_the_decoder(position: int, value: int) -> None:
    payload = bytearray(entry(b"dir/name", b"d", 2, redirect=b"/r", target=b"t") * 2)
    payload[position % len(payload)] = value
    with contextlib.suppress(GuestProtocol):
        found, after = decode(bytes(payload), 0)
        assert 0 < after <= len(payload)
        assert len(found.path) + len(found.redirect) + len(found.target) < len(payload)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_any_stream_ends_in_one_of_our_errors(
    tmp_path_factory: pytest.TempPathFactory, stream: bytes
) -> None:
    path = tmp_path_factory.mktemp("b") / "s"

    async def check() -> None:
        async with client_of(path, stream) as client:
            with contextlib.suppress(GuestProtocol, GuestError, LinkLost):
                await client.list_upper("workspace", 10, 1000, 0.05)

    asyncio.run(check())


@pytest.mark.parametrize(
    "payload",
    [
        entry(b"p" * 60_000) * 2,
        entry(b"folder/" + b"p" * 60_000),
        entry(b"p" * 60_000, target=b"\0"),
        entry(b"p" * 60_000, kind=b"?"),
        entry(b"p" * 60_000 + b"/"),
    ],
)
def test_a_message_names_no_more_than_the_beginning_of_a_path(payload: bytes) -> None:
    reader = EntryReader(10, 1 << 20)
    reader.keep(payload)
    with pytest.raises(GuestProtocol) as caught:
        reader.decode()
    assert len(caught.value.message) < 300
