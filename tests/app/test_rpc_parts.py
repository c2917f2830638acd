"""Values that are too long for one line of `control.sock`, in pieces: whole, bounded, let go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.rpc_parts import MAX_GONE, MAX_KEPT, MAX_VALUE, PIECE, LetGo, Parted, Put, Shelf, Wanted


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
    shelf.put(Put(1, bytes(MAX_VALUE)))
    with pytest.raises(AppError, match=f"{MAX_VALUE + 1} bytes is over the limit") as caught:
        shelf.put(Put(1, b"x"))
    assert caught.value.code == "too-large"
    with pytest.raises(AppError):
        shelf.take(Parted(1, MAX_VALUE))  # it was let go
    with pytest.raises(AppError, match="over the limit"):
        shelf.keep(bytes(MAX_VALUE + 1))


def test_what_was_broken_off_stands_in_no_others_way() -> None:
    shelf = Shelf()
    half = bytes(MAX_VALUE // 2)
    for number in range(MAX_GONE + 9):
        shelf.put(Put(number, half))
    last = MAX_GONE + 8
    shelf.put(Put(last, half))
    assert shelf.take(Parted(last, MAX_VALUE)) == bytes(MAX_VALUE)
    for going_on in (
        lambda: shelf.put(Put(last - 1, b"x")),
        lambda: shelf.take(Parted(last - 1, len(half) + 1)),
    ):
        with pytest.raises(AppError, match="others of this client took its room") as caught:
            going_on()
        assert caught.value.code == "busy"


def test_the_one_that_is_being_put_stays_and_the_idle_one_goes() -> None:
    shelf = Shelf()
    third = bytes(MAX_VALUE // 3)
    shelf.put(Put(1, third))
    shelf.put(Put(2, third))
    shelf.put(Put(1, third))
    shelf.put(Put(3, third))  # of the three, nothing came for the second one for longest
    assert shelf.take(Parted(1, 2 * len(third))) == third + third
    assert shelf.take(Parted(3, len(third))) == third
    with pytest.raises(AppError, match="took its room"):
        shelf.take(Parted(2, len(third)))


def test_what_a_client_lets_go_is_forgotten() -> None:
    shelf = Shelf()
    shelf.put(Put(1, b"abc"))
    kept = shelf.keep(b"abc")
    shelf.let_go(LetGo(1))
    shelf.let_go(LetGo(kept.id, result=True))
    shelf.let_go(LetGo(99))
    with pytest.raises(AppError, match=" 0 were put"):
        shelf.take(Parted(1, 3))
    with pytest.raises(AppError, match="no piece"):
        shelf.piece(Wanted(kept.id, 0))


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
