"""A service that sends the key back, in every way that HTTP has for it: the guest never gets it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import html
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.broker_lab import CANARY, Upstream, body

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from pathlib import Path

    from tests.vm.broker_lab import Lab

KEY = CANARY.encode()
OK = b"HTTP/1.1 200 OK\r\n"
CLOSED = OK + b"Connection: close\r\n"

GZIPPED = gzip.compress(KEY, mtime=0)
"""Without the time: each worker must find the same names of tests."""

# blocks that hold the key as it is: what matters is that nobody passes them on
STORED_BR = b"\x0f" + (len(KEY) - 1).to_bytes(2, "little") + b"\x80" + KEY + b"\x03"
STORED_ZSTD = b"\x28\xb5\x2f\xfd\x20%c\x01\x00\x00" % len(KEY) + KEY


async def told(folder: Path, *pieces: bytes) -> tuple[Lab, bytes]:
    """Have the service answer with these bytes, piece by piece; what the guest got."""

    async def answer(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    async with Upstream(folder, answer) as upstream:
        lab = upstream.lab()
        got = await lab.ask(lab.head("GET /v1/a"))
    assert KEY in upstream.heads[0]
    return lab, got


def code_of(answer: bytes) -> str:
    return str(json.loads(body(answer))["error"]["code"])


def readings(data: bytes) -> Iterator[bytes]:
    """Return what a guest could make of some bytes: as they are, and unpacked."""
    yield data
    for format_of in (zlib.MAX_WBITS, -zlib.MAX_WBITS, zlib.MAX_WBITS | 16):
        with contextlib.suppress(zlib.error):
            yield zlib.decompressobj(format_of).decompress(data)


@pytest.mark.parametrize(
    ("field", "coded"),
    [
        (b"Content-Encoding: gzip", GZIPPED),
        (b"content-encoding: X-GZIP", GZIPPED),
        (b"Content-Encoding: deflate", zlib.compress(KEY)),
        (b"Content-Encoding: deflate", zlib.compress(KEY)[2:-4]),
        (b"Content-Encoding: br", STORED_BR),
        (b"Content-Encoding: zstd", STORED_ZSTD),
        (b"Content-Encoding: identity, gzip", GZIPPED),
        (b"Content-Encoding: identity\r\nContent-Encoding: gzip", GZIPPED),
        (b"Content-Encoding:\r\n gzip", GZIPPED),
        (b"Content-Encoding: gzip\r\nConnection: content-encoding", GZIPPED),
        (b"Content-Encoding: never-heard-of", GZIPPED),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_in_another_coding_is_refused(
    tmp_path: Path, field: bytes, coded: bytes, chunked: bool
) -> None:
    if chunked:
        rest = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(coded), coded)
    else:
        rest = b"Content-Length: %d\r\n\r\n" % len(coded) + coded
    lab, answer = await told(tmp_path, OK + field + b"\r\n" + rest)
    assert code_of(answer) == "encoded-answer"
    assert [record.code for record in lab.records] == ["encoded-answer"]
    assert not any(KEY in reading for reading in readings(body(answer)))


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"gzip", b"deflate, chunked", b"chunked, gzip"]
)
async def test_a_coding_of_the_transfer_is_refused(tmp_path: Path, coding: bytes) -> None:
    coded = GZIPPED
    head = OK + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
    _, answer = await told(tmp_path, head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(coded), coded))
    assert code_of(answer) == "upstream-protocol"


async def test_identity_said_in_words_is_passed_on(tmp_path: Path) -> None:
    fields = b"Content-Encoding: Identity\r\nContent-Length: 2\r\n\r\n"
    _, answer = await told(tmp_path, OK + fields + b"ok")
    assert body(answer) == b"ok"


def percent(text: bytes) -> bytes:
    return b"".join(b"%%%02X" % byte for byte in text)


FORMS = {
    "plain": KEY,
    "in capitals": KEY.upper(),
    "percent": KEY.replace(b"/", b"%2F").replace(b"+", b"%2b"),
    "percent everywhere": percent(KEY),
    "hexadecimal": KEY.hex().encode(),
    "base64": base64.b64encode(b"Bearer " + KEY),
    "base64, shifted": base64.b64encode(b"1" + KEY + b"22"),
    "base64 for addresses": base64.urlsafe_b64encode(b"{" + KEY + b"}"),
    "JSON": json.dumps(CANARY).replace("/", "\\/").encode(),
    "JSON in numbers": "".join(f"\\u{ord(sign):04X}" for sign in CANARY).encode(),
    "HTML": html.escape(CANARY).encode(),
    "UTF-16": CANARY.encode("utf-16"),
    "UTF-16 the other way round": CANARY.encode("utf-16-be"),
}
"""How a service may write a key that it was sent, by what `docs/guide/broker.md` says."""


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_no_form_of_the_key_passes_a_body_of_odd_chunks(tmp_path: Path, form: bytes) -> None:
    text = b"before " + form + b" after"
    head = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    ones = [b"1;key=%b\r\n%c\r\n" % (KEY, byte) for byte in text]
    lab, answer = await told(tmp_path, head, *ones, b"0\r\n\r\n")
    out = b"".join(body(answer).split(b"\r\n")[1::2])
    assert all(new in (old, ord("*")) for new, old in zip(out, text, strict=True))
    assert out.count(b"*") >= len(KEY)
    assert KEY not in answer
    assert lab.records[0].scrubbed >= 1


async def test_headers_trailers_and_all_else_of_an_answer_say_nothing(tmp_path: Path) -> None:
    coded = base64.b64encode(b"Bearer " + KEY)
    named = b"X-" + base64.urlsafe_b64encode(KEY).rstrip(b"=") + b": name\r\n"
    fields = [b"X-Key: " + KEY, b"Location: /?k=" + percent(KEY), b"X-Coded: " + coded]
    fields += [b"Set-Cookie: k=" + KEY, b"Connection: x-key2", b"X-Key2: " + KEY]
    first = b"HTTP/1.1 103 Early Hints\r\nLink: </" + KEY + b">\r\n\r\n"
    second = b"HTTP/1.1 200 " + KEY + b"\r\n" + b"\r\n".join(fields) + b"\r\n" + named
    last = b"Transfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n2\r\nok\r\n0\r\n"
    trailer = b"X-Last: " + KEY + b"\r\n\r\n"
    _, answer = await told(tmp_path, first, second + last, trailer)
    assert answer.startswith(b"HTTP/1.1 200 \r\n")
    low = answer.lower()
    assert b"103" not in low.split(b"\r\n")[0]
    for secret in (KEY, percent(KEY), coded[8:-4], base64.urlsafe_b64encode(KEY).rstrip(b"=")):
        assert secret.lower() not in low
    for header in (b"set-cookie", b"x-key2", b"x-last", b"trailer"):
        assert header not in low
    assert b"x-key: " + b"*" * len(KEY) in low
    assert body(answer) == b"2\r\nok\r\n0\r\n\r\n"


@pytest.mark.parametrize("end", range(1, len(KEY)))
async def test_an_answer_that_breaks_off_within_the_key_gives_no_more(
    tmp_path: Path, end: int
) -> None:
    _, answer = await told(tmp_path, OK + b"Content-Length: 999\r\n\r\nsaid " + KEY[:end])
    assert body(answer) in (b"said ", b"said")


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + KEY,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" + KEY,
        b"HTTP/1.1 200 OK\r\nX: " + KEY * 10_000 + b"\r\n\r\n",
        b"220 " + KEY + b" ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + KEY + b"\r\n",
    ],
)
async def test_what_is_no_answer_is_not_passed_on(tmp_path: Path, raw: bytes) -> None:
    lab, answer = await told(tmp_path, raw)
    assert KEY not in answer
    assert lab.records[0].code == "upstream-protocol"


async def test_a_second_answer_is_nobodys(tmp_path: Path) -> None:
    both = OK + b"Content-Length: 2\r\n\r\nok" + OK + b"X-Key: " + KEY + b"\r\n\r\n"
    _, answer = await told(tmp_path, both)
    assert body(answer) == b"ok"


async def test_the_name_and_key_of_basic_authentication_are_found_together(tmp_path: Path) -> None:
    async def echo(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CLOSED + b"\r\n" + head)
        await writer.drain()

    settings: dict[str, Any] = {"add": "basic", "user": "me", "accept": ["basic"]}
    async with Upstream(tmp_path, echo) as upstream:
        lab = upstream.lab(settings)
        answer = await lab.ask(lab.head("GET /v1/a"))
    coded = base64.b64encode(b"me:" + KEY)
    assert coded in upstream.heads[0]
    assert b"authorization: basic " in answer.lower()
    assert coded[4:-4].lower() not in answer.lower()
