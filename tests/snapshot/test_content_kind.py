"""What a binary content is told to be."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.content_kind import UNKNOWN, described, kind_of


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0????", UNKNOWN),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\x7fELF\2\1\1", "application/x-elf"),
        (b"\0" * 257 + b"ustar\x0000", "application/x-tar"),
        (b"", UNKNOWN),
        (b"\x89PN", UNKNOWN),
    ],
)
def test_the_first_bytes_speak(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


@given(st.binary(max_size=300))
def test_every_content_has_a_printable_description_with_its_hash(data: bytes) -> None:
    text = described(data)
    assert text.isprintable()
    assert hashlib.sha256(data).hexdigest() in text
    assert f"{len(data):,} byte" in text
