"""What `cloche send` types, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.keeper.prompts import MAX_PROMPT, PASTE_BEGIN, PASTE_END, clean_prompt, keys_of

LINES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)


def test_one_line_is_typed_and_entered() -> None:
    assert keys_of(clean_prompt("do it\n"), pastes=True) == b"do it\r"
    assert keys_of(clean_prompt("\tähem"), pastes=False) == "\tähem\r".encode()


def test_lines_are_one_paste_only_where_it_was_asked_for() -> None:
    text = clean_prompt("a\r\n\nb\n\n")
    assert keys_of(text, pastes=True) == b"\x1b[200~a\r\rb\x1b[201~\r"
    assert keys_of(text, pastes=False) == b"a\r\rb\r"


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "\x1b[201~", "a\x03", "\x7f", "\x9b", "\0", "x" * (MAX_PROMPT + 1)]
)
def test_what_is_no_prompt(text: str) -> None:
    with pytest.raises(AppError) as caught:
        clean_prompt(text)
    assert caught.value.code == "usage"
    assert caught.value.hint


@given(st.lists(LINES, min_size=2, max_size=6), st.booleans())
def test_a_prompt_submits_once_and_a_paste_has_one_end(lines: list[str], pastes: bool) -> None:
    try:
        text = clean_prompt("\n".join(lines))
    except AppError:
        return
    keys = keys_of(text, pastes=pastes)
    assert keys.endswith(b"\r")
    assert keys.count(b"\x1b") == (2 if pastes and "\n" in text else 0)
    if pastes and "\n" in text:
        assert keys.startswith(PASTE_BEGIN)
        assert keys.endswith(PASTE_END + b"\r")
    plain = keys.replace(PASTE_BEGIN, b"").replace(PASTE_END, b"")
    assert plain[:-1].decode().replace("\r", "\n") == text
