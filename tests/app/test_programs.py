"""Programs in the guest, from the client: how they are asked for, and what a terminal gets."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.attach import MAIN_SCREEN, RESET
from app.cli.terminal_writer import TerminalWriter
from app.client import copying
from app.client.copying.report import forbidden
from app.copy_stream import Record
from app.errors import AppError, naming
from app.keeper.guest_program import HOME, Place, place_of
from app.programs import MAX_COMMAND, Program, check_words

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(argv=st.lists(WORDS, min_size=1, max_size=5), env=st.dictionaries(WORDS, WORDS), cwd=WORDS)
def test_a_keeper_understands_what_a_client_asks(
    argv: list[str], env: dict[str, str], cwd: str
) -> None:
    program = Program(tuple(argv), cwd=cwd, env=env)
    assert shlex.split(program.command) == argv
    assert place_of(program.environment) == Place(cwd or "/workspace", env)
    assert place_of(Program(("true",)).environment) == HOME


@given(argv=st.lists(WORDS, min_size=1, max_size=5), env=st.dictionaries(WORDS, WORDS))
def test_what_fits_may_be_passed_on(argv: list[str], env: dict[str, str]) -> None:
    check_words(argv, env)


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["true", "a\0b"], {}, "NUL"),
        (["true"], {"A": "a\0b"}, "NUL"),
        (["true", "caf\udce9"], {}, "'caf\\udce9' is not UTF-8"),
        (["true"], {"A": "caf\udce9"}, "not UTF-8"),
        (["x" * MAX_COMMAND], {}, f"{MAX_COMMAND} are possible"),
        (["x"] * (MAX_COMMAND // 2 + 1), {}, f"{MAX_COMMAND} are possible"),
        (["'" * (MAX_COMMAND // 5)], {}, f"{MAX_COMMAND} are possible"),  # quoted they are more
        (["true"], {"A": "ü" * (MAX_COMMAND // 2)}, f"{MAX_COMMAND} are possible"),
    ],
)
def test_what_no_guest_can_be_given(words: list[str], env: dict[str, str], said: str) -> None:
    with pytest.raises(AppError) as caught:
        check_words(words, env)
    assert caught.value.code == "usage"
    assert said in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "7", '{"a": 1}', "{"])
def test_an_environment_that_makes_no_sense(text: str) -> None:
    with pytest.raises(AppError) as caught:
        place_of({"CLOCHE_ENV": text})
    assert caught.value.code == "usage"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_a_terminal_gets_nothing_back_for_plain_text(pipe: tuple[int, int]) -> None:
    writer = TerminalWriter(pipe[1])
    await writer.write("plain — text\n".encode())
    assert os.read(pipe[0], 99) == "plain — text\n".encode()
    assert writer.undo == b""


async def test_the_main_screen_is_left_only_when_another_is_shown(pipe: tuple[int, int]) -> None:
    writer = TerminalWriter(pipe[1])
    await writer.write(b"\x1b[1mbold\x1b[m")
    assert writer.undo == RESET, "the cursor would go back to where some editor began"
    await writer.write(b"\x1b[?10")
    await writer.write(b"49hpage")
    assert writer.undo == MAIN_SCREEN + RESET
    await writer.write(b"\x1b[?1049l")
    assert writer.undo == RESET


async def test_what_acts_on_the_terminal_does_not_get_there(pipe: tuple[int, int]) -> None:
    writer = TerminalWriter(pipe[1])
    await writer.write(b"a\x1b]52;c;aGk=\x07b\x1b[21tc\x1bP$qm\x1b\\d")
    assert os.read(pipe[0], 99) == b"abcd"


def test_a_hint_names_the_session() -> None:
    error = AppError("lost", "It is gone.", "cloche stop ID && cloche resume ID", status=125)
    named = naming(error, "my box")
    assert named.hint == "cloche stop 'my box' && cloche resume 'my box'"
    assert (named.code, named.message, named.status) == ("lost", "It is gone.", 125)
    other = AppError("lost", "It is gone.", "Look at HIDDEN and IDLE")
    assert naming(other, "x") is other


@pytest.mark.parametrize("number", [1, 13])
def test_only_root_could_copy_it(number: int) -> None:
    error = forbidden(Record("x", number, 0, b"etc/x"))
    assert (error.code, error.hint) == ("guest-error", copying.AS_ROOT)
    assert "etc/x" in error.message
