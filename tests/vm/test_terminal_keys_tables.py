"""Every key in every mode, against tables written from the documents of xterm and kitty."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.doubles.engines import engine
from tests.vm.key_tables import guest

if TYPE_CHECKING:
    from vm.terminal.ghostty_engine import GhosttyEngine

TABLES = {
    key: cells
    for table in (guest.OWN, guest.TEXT, guest.FUNCTION)
    for key, cells in guest.rows(table)
}


@cache
def terminal(mode: str) -> GhosttyEngine:
    """A terminal whose guest has switched a mode on; keys change nothing in it."""
    it = engine()
    it.feed(guest.MODES[mode])
    return it


def sent(mode: str, key: str, character: str | None = None) -> bytes:
    return terminal(mode).encode_key(key, character)


@pytest.mark.parametrize("mode", guest.COLUMNS)
@pytest.mark.parametrize("key", TABLES)
def test_the_tables(key: str, mode: str) -> None:
    assert sent(mode, key) == TABLES[key][mode]


@pytest.mark.parametrize("mode", guest.SPECIAL)
def test_modes_that_change_little(mode: str) -> None:
    for pair in guest.SPECIAL[mode].split("|"):
        key, wanted = pair.split()
        assert (key, sent(mode, key)) == (key, guest.cell(wanted))


@pytest.mark.parametrize("mode", ["plain", "cursor", "keypad", "other1", "other2"])
@pytest.mark.parametrize("held", guest.MODIFIERS, ids=lambda it: it[0])
def test_modifiers_with_keys_that_type_nothing(held: tuple[str, int], mode: str) -> None:
    names, number = held
    for key, letter in guest.LETTERED.items():
        assert sent(mode, f"{names}+{key}") == b"\x1b[1;%d%s" % (number, letter.encode())
    for key, code in guest.TILDED.items():
        assert sent(mode, f"{names}+{key}") == b"\x1b[%d;%d~" % (code, number)


@pytest.mark.parametrize("held", guest.MODIFIERS, ids=lambda it: it[0])
def test_modifiers_with_such_keys_in_kittys_protocol(held: tuple[str, int]) -> None:
    names, number = held
    for key, letter in guest.LETTERED.items():
        wanted = (
            b"\x1b[13;%d~" % number if key == "f3" else b"\x1b[1;%d%s" % (number, letter.encode())
        )
        assert sent("kitty1", f"{names}+{key}") == wanted
    for key, code in guest.TILDED.items():
        wanted = b"\x1b[%d;%d~" % (code, number)
        if key in ("f13", "f20"):
            wanted = b"\x1b[%d;%du" % (57363 + int(key[1:]), number)
        assert sent("kitty1", f"{names}+{key}") == wanted


@pytest.mark.parametrize("letter", guest.LETTERS)
def test_letters(letter: str) -> None:
    upper, control = letter.upper(), bytes([guest.LETTERS.index(letter) + 1])
    code, upper_code = ord(letter), ord(upper)
    for mode in ("plain", "other1", "cursor", "keypad"):
        assert sent(mode, letter, letter) == letter.encode()
        assert sent(mode, upper, upper) == upper.encode()
        for character in (None, control.decode()):
            assert sent(mode, f"ctrl+{letter}", character) == control
        assert sent(mode, f"ctrl+shift+{letter}") == control
        assert sent(mode, f"alt+{letter}") == b"\x1b" + letter.encode()
        assert sent(mode, f"alt+shift+{letter}") == b"\x1b" + upper.encode()
        assert sent(mode, f"alt+ctrl+{letter}") == b"\x1b" + control
    assert sent("other2", upper, upper) == b"\x1b[27;2;%d~" % upper_code
    for mode, start, end in (("other2", "27;%d;%d", b"~"), ("kitty1", "%d;%d", b"u")):
        for names, number in guest.MODIFIERS[1:7]:
            shown = upper_code if "shift" in names and mode == "other2" else code
            numbers = (number, shown) if mode == "other2" else (shown, number)
            assert sent(mode, f"{names}+{letter}") == b"\x1b[" + (start % numbers).encode() + end


@pytest.mark.parametrize("line", guest.SYMBOLS.strip().splitlines(), ids=lambda it: it.split()[0])
def test_symbols_and_digits(line: str) -> None:
    name, character, below, plain, length = line.split()
    control, code, shift = (
        guest.cell(plain) if len(plain) > 1 else plain.encode(),
        ord(character),
        0,
    )
    if below != character:
        shift = 1
    for known in (character, None):
        assert sent("plain", name, known) == sent("other1", name, known) == character.encode()
        assert sent("kitty1", name, known) == character.encode()
    assert (
        sent("plain", f"alt+{name}")
        == sent("other1", f"alt+{name}")
        == b"\x1b" + character.encode()
    )
    assert sent("plain", f"ctrl+{name}") == control
    assert sent("plain", f"alt+ctrl+{name}") == b"\x1b" + control
    long = b"\x1b[27;%d;%d~" % (5 + shift, code)
    assert sent("other1", f"ctrl+{name}") == (long if length == "long" else control)
    assert sent("other2", f"ctrl+{name}") == long
    assert sent("other2", f"alt+{name}") == b"\x1b[27;%d;%d~" % (3 + shift, code)
    for names, number in (("ctrl", 5), ("alt", 3), ("alt+ctrl", 7), ("super", 9)):
        assert sent("kitty1", f"{names}+{name}") == b"\x1b[%d;%du" % (ord(below), number + shift)
