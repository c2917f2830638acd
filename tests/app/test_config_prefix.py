"""The prefix as the user configures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.config import Defaults, Ui, load_config, tighten
from app.errors import AppError
from app.prefix import PrefixRefused, prefix_byte, prefix_key, prefix_name

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, text: str) -> Ui:
    (folder / "config.yaml").write_text(text)
    return load_config(folder).ui


def test_the_default(tmp_path: Path) -> None:
    assert loaded(tmp_path, "ui: {bell: mark}\n") == Ui()
    assert (Ui().prefix, Ui().direct_keys) == ("ctrl+g", True)


@pytest.mark.parametrize(
    ("written", "key", "byte"),
    [
        ("ctrl+a", "ctrl+a", b"\x01"),
        ("Ctrl+B", "ctrl+b", b"\x02"),
        ("ctrl+z", "ctrl+z", b"\x1a"),
        ("ctrl+space", "ctrl+space", b"\x00"),
        ("ctrl+\\", "ctrl+backslash", b"\x1c"),
        ("ctrl+]", "ctrl+right_square_bracket", b"\x1d"),
        ("ctrl+^", "ctrl+circumflex_accent", b"\x1e"),
        ("ctrl+_", "ctrl+underscore", b"\x1f"),
    ],
)
def test_keys_that_can_be_the_prefix(tmp_path: Path, written: str, key: str, byte: bytes) -> None:
    assert loaded(tmp_path, f"ui: {{prefix: '{written}', direct_keys: false}}\n") == Ui(
        prefix=key, direct_keys=False
    )
    assert prefix_name(key) == written.lower()
    assert prefix_byte(key) == byte


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("g", "'g' types something"),
        ("'?'", "'?' types something"),
        ("space", "types something"),
        ("ctrl+i", "cannot tell ctrl+i from tab"),
        ("ctrl+m", "from enter"),
        ("ctrl+h", "from backspace"),
        ("'ctrl+['", "from escape"),
        ("ctrl+1", "not a key that every terminal can send"),
        ("ctrl+shift+g", "not a key that every terminal can send"),
        ("alt+g", "not a key that every terminal can send"),
        ("f1", "not a key that every terminal can send"),
        ("super+g", "not a key that every terminal can send"),
        ("'ctrl+g x'", "not a key that every terminal can send"),
        ("ctrl", "not a key that every terminal can send"),
        ("7", "must be the name of one key"),
        ("[ctrl+a, ctrl+b]", "must be the name of one key"),
        ("''", "must be the name of one key"),
        ("'ctrl+é'", "not a key that every terminal can send"),
    ],
)
def test_keys_that_cannot(tmp_path: Path, written: str, words: str) -> None:
    with pytest.raises(AppError) as caught:
        loaded(tmp_path, f"ui:\n  prefix: {written}\n")
    assert "config.yaml:2:" in caught.value.message
    assert words in caught.value.message
    assert caught.value.hint.startswith("Choose one of: ctrl+a")


def test_direct_keys_are_on_or_off(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "ui: {direct_keys: no}\n").direct_keys
    with pytest.raises(AppError, match="'direct_keys' must be true or false"):
        loaded(tmp_path, "ui: {direct_keys: f12}\n")


def test_a_project_may_not_change_them(tmp_path: Path) -> None:
    (tmp_path / ".cloche.yaml").write_text("ui: {prefix: ctrl+a}\n")
    with pytest.raises(AppError, match="unknown key 'ui'"):
        tighten(Defaults(), tmp_path)


@given(st.text(max_size=12) | st.text(max_size=3).map("ctrl+".__add__))
def test_whatever_is_taken_is_one_control_character(text: str) -> None:
    key = taken(text)
    if key is not None:
        assert prefix_key(prefix_name(key)) == key
        assert len(prefix_byte(key)) == 1
        assert prefix_byte(key) < b"\x20"


def taken(text: str) -> str | None:
    try:
        return prefix_key(text)
    except PrefixRefused:
        return None
