from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.protocol import MAX_LINE
from app.rpc import Incoming, Lines, call_line, error_line, result_line
from app.wire_text import to_bytes, to_text


@given(st.binary(max_size=60))
def test_every_path_survives_the_wire(path: bytes) -> None:
    text = to_text(path)
    assert to_bytes(text) == path
    assert json.loads(json.dumps(text)) == text
    assert msgspec.json.decode(msgspec.json.encode(text), type=str) == text


@given(st.text(alphabet="\uef80\uefff\uee80aé", max_size=20))
def test_the_private_characters_themselves_survive(text: str) -> None:
    assert to_bytes(to_text(text.encode())) == text.encode()


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_different_paths_never_become_the_same_text(one: bytes, other: bytes) -> None:
    assert (to_text(one) == to_text(other)) == (one == other)


class Chunks:
    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk]

    async def read(self, n: int = -1) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"\n", b" "))))
async def test_lines_are_the_same_however_they_arrive(lines: list[bytes]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    for step in (1, 3, 1000):
        chunks = [stream[i : i + step] for i in range(0, len(stream), step)]
        reader = Lines(Chunks(chunks))
        assert [await reader.next() for _ in lines] == lines
        assert await reader.next() == b""


async def test_a_line_without_end_is_refused_and_not_collected() -> None:
    reader = Lines(Chunks([b"x" * 65536] * 100))
    with pytest.raises(AppError, match="over the limit"):
        await reader.next()


def test_answers_carry_result_or_error() -> None:
    good = msgspec.json.decode(result_line(7, {"a": 1}), type=Incoming)
    assert (good.id, good.error, bytes(good.result)) == (7, None, b'{"a":1}')
    bad = msgspec.json.decode(error_line(8, "busy", "No.", "Wait"), type=Incoming)
    assert bad.error is not None
    assert bad.error.data is not None
    assert (bad.error.message, bad.error.data.code, bad.error.data.hint) == ("No.", "busy", "Wait")


def test_a_message_over_the_limit_is_never_sent() -> None:
    with pytest.raises(AppError, match="over the limit"):
        call_line(1, "x", {"a": "b" * MAX_LINE})
