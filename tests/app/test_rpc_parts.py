"""Values that are too long for one line of `control.sock`, in pieces: whole, bounded, let go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.rpc_parts import MAX_KEPT, MAX_VALUE, PIECE, Parted, Put, Shelf, Wanted


@given(st.integers(1, 3 * PIECE), st.binary(min_size=1, max_size=7))
def test_a_result_comes_in_pieces_and_is_let_go_with_the_last(size: int, seed: bytes) -> None:
    value = (seed * (size // len(seed) + 1))[:size]
    shelf = Shelf()
    parted = shelf.keep(value)
    found = b""
    while len(found) < parted.size:
        found += shelf.piece(Wanted(parted.id, len(found)))
    assert found == value
    with pytest.raises(AppError, match="no piece"):
        shelf.piece(Wanted(parted.id, 0))


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_a_parameter_is_what_was_put_and_only_once(pieces: list[bytes]) -> None:
    shelf = Shelf()
    for piece in pieces:
        shelf.put(Put(1, piece))
    size = sum(map(len, pieces))
    assert shelf.take(Parted(1, size)) == b"".join(pieces)
    with pytest.raises(AppError, match="were put"):
        shelf.take(Parted(1, size + 1))


def test_neither_side_holds_more_than_the_limit() -> None:
    shelf = Shelf()
    most = bytes(MAX_VALUE // 2)
    shelf.put(Put(1, most))
    shelf.put(Put(2, most))
    with pytest.raises(AppError) as caught:
        shelf.put(Put(3, b"x"))
    assert caught.value.code == "too-large"
    with pytest.raises(AppError):
        shelf.take(Parted(1, len(most)))  # all of it was let go
    with pytest.raises(AppError, match="over the limit"):
        shelf.keep(bytes(MAX_VALUE + 1))


def test_only_a_few_results_wait() -> None:
    shelf = Shelf()
    kept = [shelf.keep(b"%d" % number) for number in range(MAX_KEPT + 1)]
    with pytest.raises(AppError, match="no piece"):
        shelf.piece(Wanted(kept[0].id, 0))
    assert [shelf.piece(Wanted(one.id, 0)) for one in kept[1:]] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("at", [-1, 3, 1 << 60])
def test_a_piece_that_is_not_there_is_refused(at: int) -> None:
    shelf = Shelf()
    parted = shelf.keep(b"abc")
    with pytest.raises(AppError, match="no piece"):
        shelf.piece(Wanted(parted.id, at))
