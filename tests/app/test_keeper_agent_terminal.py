"""What the terminal's holder adds by itself never gets into the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from app.keeper.agent_terminal import CLEAR, first_words

if TYPE_CHECKING:
    from vm.machine.guest_exec import Terminal


class Pieces:
    """A terminal that gives its output in the pieces that it was made of."""

    def __init__(self, *pieces: bytes) -> None:
        self.left = list(pieces)

    async def read(self) -> bytes:
        return self.left.pop(0) if self.left else b""


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([CLEAR, b"never read here"], b""),
        ([CLEAR + b"$ "], b"$ "),
        ([CLEAR[:2], CLEAR[2:] + b"$ "], b"$ "),
        ([b"$ ", b"more"], b"$ "),
        ([CLEAR[:3], b"x"], CLEAR[:3] + b"x"),
        ([CLEAR + CLEAR], CLEAR),
        ([], b""),
    ],
)
async def test_only_the_first_clearing_is_taken_away(pieces: list[bytes], wanted: bytes) -> None:
    terminal = Pieces(*pieces)
    assert await first_words(cast("Terminal", terminal)) == wanted
