"""The frames of `pane.sock`."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.terminal import stream


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=80))), st.integers(1, 30))
def test_frames_survive_any_cutting(parts: list[tuple[int, bytes]], step: int) -> None:
    data = b"".join(stream.frame(kind, payload) for kind, payload in parts)
    reader = stream.FrameReader()
    found = [f for at in range(0, len(data), step) for f in reader.feed(data[at : at + step])]
    assert found == parts


def test_long_data_becomes_several_frames() -> None:
    data = bytes(range(256)) * 1000
    found = list(stream.FrameReader().feed(stream.pieces(stream.INPUT, data)))
    assert all(kind == stream.INPUT and len(payload) <= 65_536 for kind, payload in found)
    assert b"".join(payload for _, payload in found) == data


def test_a_length_is_checked_before_anything_is_kept() -> None:
    with pytest.raises(stream.StreamError, match="65537"):
        list(stream.FrameReader().feed(struct.pack("<BI", stream.OUTPUT, 65_537)))
    with pytest.raises(ValueError, match="longer"):
        stream.frame(stream.OUTPUT, b"\0" * 65_537)


def test_a_payload_must_be_as_long_as_its_layout() -> None:
    assert stream.unpack(stream.SIZE, b"\x50\0\x18\0") == (80, 24)
    for payload in (b"", b"\0" * 3, b"\0" * 5):
        with pytest.raises(stream.StreamError):
            stream.unpack(stream.SIZE, payload)
