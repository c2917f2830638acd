"""The control port's relay: preambles at any moment, floods, garbage, and 200 connections."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.vm.guest_host import PREFIX, TOKEN, Guest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def guest(program: Path, tmp_path: Path) -> Iterator[Guest]:
    running = Guest(program, tmp_path)
    yield running
    running.close()


def _echo(guest: Guest, text: bytes) -> None:
    guest.control.connect()
    guest.control.send(b"begin\n" + text + b"\n")
    assert guest.control.until(text + b"\n").lstrip() == b"banner\n"


def test_a_connection_reaches_a_fresh_server(guest: Guest) -> None:
    _echo(guest, b"one")
    _echo(guest, b"two")


def test_payload_that_ends_like_a_preamble_is_not_held_back(guest: Guest) -> None:
    guest.control.connect()
    guest.control.send(b"begin\n")
    guest.control.until(b"banner\n")
    whole = PREFIX + b"HELLO "
    for length in range(1, len(whole)):
        guest.control.send(whole[:length])
        assert guest.control.take(length) == whole[:length]


def test_each_hello_is_answered_and_only_the_last_can_start(guest: Guest) -> None:
    port = guest.control
    first, second = port.hello(), port.hello()
    port.send(PREFIX + f"START {first}\n".encode())
    port.send(PREFIX + f"START {second}\n".encode())
    assert PREFIX + b"BEGIN" not in port.until(PREFIX + f"BEGIN {second}\n".encode())


def test_a_start_counts_once(guest: Guest) -> None:
    port = guest.control
    nonce = port.hello()
    start = PREFIX + f"START {nonce}\n".encode()
    port.send(start)
    port.until(PREFIX + f"BEGIN {nonce}\n".encode())
    port.send(b"begin\n" + start + b"end\n")
    assert port.until(b"end\n") == b"banner\n" + start  # payload like any other


def test_a_server_that_dies_is_told_of_and_the_next_link_is_a_new_one(guest: Guest) -> None:
    guest.control.connect()
    guest.control.send(b"die\n")
    assert guest.control.until(PREFIX + b"ENDED\n") == b"banner\n"
    _echo(guest, b"another")


@pytest.mark.parametrize(
    "noise",
    [
        PREFIX[:-1] + b"x",
        PREFIX.replace(TOKEN.encode(), b"f" * 32) + b"HELLO " + b"a" * 32 + b"\n",
        PREFIX + b"HELLO " + b"A" * 32 + b"\n",
        PREFIX + b"HELLO " + b"a" * 31 + b"\n",
        PREFIX + b"START " + b"a" * 32 + b"\n",
        PREFIX + b"READY " + b"a" * 32 + b"\n",
        PREFIX + b"HELLO " + b"a" * 20,
        b"\x16" * 1000,
        bytes(range(256)) * 300,
    ],
)
def test_what_is_no_preamble_begins_nothing(guest: Guest, noise: bytes) -> None:
    guest.control.send(noise)
    _echo(guest, b"still here")


def test_two_hundred_connections_most_of_them_ended_abruptly(guest: Guest) -> None:
    chance = random.Random(20240229)
    for number in range(200):
        if number % 5 == 0:
            _echo(guest, b"%d" % number)
            continue
        guest.control.connect()
        if number % 5 == 1:
            guest.control.send(b"flood\n")  # and its answer is never read up to the end
        elif number % 5 == 2:
            guest.control.send(chance.randbytes(chance.randrange(1, 100_000)))
        elif number % 5 == 3:
            half = PREFIX + b"HELLO " + b"a" * 32 + b"\n"
            guest.control.send(half[: chance.randrange(1, len(half))])
        else:
            guest.control.send(b"die\n")
    _echo(guest, b"at last")


def test_a_hello_in_the_middle_of_a_flood_ends_it(guest: Guest) -> None:
    guest.control.connect()
    guest.control.send(b"flood\n")
    guest.control.take(500_000)
    _echo(guest, b"calm")
