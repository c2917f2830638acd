"""Every name of a key that Textual can make means something, in every mode."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.keys import Keys, _character_to_key  # pyright: ignore[reportPrivateUsage]

from tests.doubles.engines import engine
from tests.vm.key_tables import guest
from vm.terminal.key_names import Key, parse

NO_KEYS = {"<any>", "<scroll-up>", "<scroll-down>", "<ignore>"}
"""Members of Textual's list of keys that are none."""

ONLY_MODIFIERS = {
    *(name for name in FUNCTIONAL_KEYS.values() if name.startswith(("left_", "right_", "iso_"))),
    "caps_lock", "num_lock",
}  # fmt: skip

OLD_KNOWS_NOT = {"scroll_lock", "print_screen", "pause", "lower_volume", "raise_volume",
                 "mute_volume"}  # fmt: skip
"""Keys that only the kitty protocol can tell; so are media_… and F25 … F35."""

NAMES = sorted(
    {
        *(key.value for key in Keys),
        *FUNCTIONAL_KEYS.values(),
        *(it if isinstance(it, str) else "" for it in ANSI_SEQUENCES_KEYS.values()),
    }
    - {""}
)
TERMINALS = {mode: engine() for mode in guest.MODES}
for _mode, _terminal in TERMINALS.items():
    _terminal.feed(guest.MODES[_mode])

CHARACTERS = [
    chr(point)
    for point in range(sys.maxunicode + 1)
    if unicodedata.category(chr(point)) not in ("Cc", "Cs", "Cn")
]


def silent_to_old(name: str) -> bool:
    base = name.rpartition("+")[2]
    number = int(base[1:]) if base[:1] == "f" and base[1:].isdigit() else 0
    return base in OLD_KNOWS_NOT or base.startswith("media_") or number > 25


@pytest.mark.parametrize("mode", guest.MODES)
def test_each_name_sends_something(mode: str) -> None:
    kitty = mode.startswith("kitty")
    for name in NAMES:
        data = TERMINALS[mode].encode_key(name, None)
        nothing = name in NO_KEYS | ONLY_MODIFIERS or (silent_to_old(name) and not kitty)
        assert bool(data) is not nothing, name


@pytest.mark.parametrize("mode", guest.MODES)
def test_each_modifier_with_each_name(mode: str) -> None:
    for name in NAMES:
        if (
            "+" in name
            or name == "ctrl-at"
            or name in NO_KEYS | ONLY_MODIFIERS
            or silent_to_old(name)
        ):
            continue
        for held in ("shift", "ctrl", "alt", "alt+ctrl", "alt+ctrl+shift"):
            assert TERMINALS[mode].encode_key(f"{held}+{name}", None), (held, name)


def test_each_character_is_typed_as_it_is() -> None:
    for character in CHARACTERS:
        found = parse(_character_to_key(character), character)
        assert (found.text if isinstance(found, Key) else found) == character, hex(ord(character))


@given(st.sampled_from(CHARACTERS), st.sampled_from(list(guest.MODES)))
def test_a_character_reaches_a_guest(character: str, mode: str) -> None:
    data = TERMINALS[mode].encode_key(_character_to_key(character), character)
    if mode in ("kitty9", "kitty31"):
        assert data.startswith(b"\x1b[")
        assert data.endswith((b"u", b"~"))
    elif mode == "other2" and "A" <= character <= "~":
        assert data.endswith((b"~", character.encode()))
    else:
        assert data == character.encode()


@given(st.sampled_from(CHARACTERS))
def test_alt_with_a_character_needs_no_more_than_its_name(character: str) -> None:
    name = f"alt+{_character_to_key(character)}"
    if len(name) <= 64:  # longer names belong to characters that no keyboard has with Alt
        data = TERMINALS["plain"].encode_key(name, None)
        assert data in (b"\x1b" + character.encode(), b"")
        assert data or not character.isalnum()
