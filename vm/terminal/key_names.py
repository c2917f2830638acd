"""Keys as Textual names them, taken apart for an encoder.

A name is `modifier+modifier+base`. The base is a character, the name of a character (Unicode's in
small letters, a few shortened), or the name of a key that types nothing. A symbol of an American
keyboard is one with Shift on the key below it, as keyboard protocols want it told.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import NamedTuple

from vm.terminal.screen import Modifier

NAMED = {
    "up": "ARROW_UP", "down": "ARROW_DOWN", "left": "ARROW_LEFT", "right": "ARROW_RIGHT",
    "home": "HOME", "end": "END", "pageup": "PAGE_UP", "pagedown": "PAGE_DOWN",
    "insert": "INSERT", "delete": "DELETE", "enter": "ENTER", "return": "ENTER", "tab": "TAB",
    "escape": "ESCAPE", "backspace": "BACKSPACE", "space": "SPACE", "kp_begin": "NUMPAD_BEGIN",
    **{f"f{number}": f"F{number}" for number in range(1, 26)},
}  # fmt: skip
"""Textual's names of keys without a character, and the engine's."""

KEYPAD = {
    "decimal": ("NUMPAD_DECIMAL", "."), "divide": ("NUMPAD_DIVIDE", "/"),
    "multiply": ("NUMPAD_MULTIPLY", "*"), "subtract": ("NUMPAD_SUBTRACT", "-"),
    "add": ("NUMPAD_ADD", "+"), "equal": ("NUMPAD_EQUAL", "="),
    "separator": ("NUMPAD_SEPARATOR", ","),
}  # fmt: skip
"""Keys of the keypad by Textual's names: the engine's name and what they type."""

SILENT = {
    "scroll_lock": 57359, "print_screen": 57361, "pause": 57362, "menu": 57363,
    **{f"f{number}": 57363 + number for number in range(26, 36)},
    "media_play": 57428, "media_pause": 57429, "media_play_pause": 57430, "media_reverse": 57431,
    "media_stop": 57432, "media_fast_forward": 57433, "media_rewind": 57434,
    "media_track_next": 57435, "media_track_previous": 57436, "media_record": 57437,
    "lower_volume": 57438, "raise_volume": 57439, "mute_volume": 57440,
}  # fmt: skip
"""Keys that only the kitty protocol has bytes for, and its numbers of them."""

CHARACTERS = {
    "exclamation_mark": "!", "quotation_mark": '"', "number_sign": "#", "dollar_sign": "$",
    "percent_sign": "%", "ampersand": "&", "apostrophe": "'", "left_parenthesis": "(",
    "right_parenthesis": ")", "asterisk": "*", "plus": "+", "plus_sign": "+", "comma": ",",
    "minus": "-", "hyphen_minus": "-", "full_stop": ".", "slash": "/", "solidus": "/",
    "colon": ":", "semicolon": ";", "less_than_sign": "<", "equals_sign": "=",
    "greater_than_sign": ">", "question_mark": "?", "at": "@", "commercial_at": "@",
    "left_square_bracket": "[", "left_square_brace": "[", "backslash": "\\",
    "reverse_solidus": "\\", "right_square_bracket": "]", "circumflex_accent": "^",
    "underscore": "_", "low_line": "_", "grave_accent": "`", "left_curly_bracket": "{",
    "vertical_line": "|", "right_curly_bracket": "}", "tilde": "~",
}  # fmt: skip
"""Textual's names of characters (Unicode's, shortened here and there)."""

PHYSICAL = {
    "[": "BRACKET_LEFT", "]": "BRACKET_RIGHT", "\\": "BACKSLASH", "/": "SLASH", "-": "MINUS",
    "=": "EQUAL", ",": "COMMA", ".": "PERIOD", ";": "SEMICOLON", "'": "QUOTE", "`": "BACKQUOTE",
}  # fmt: skip
"""Characters of an American keyboard and the engine's names of their keys."""

BELOW = dict(zip('!@#$%^&*()_+{}|:"<>?~', "1234567890-=[]\\;',./`", strict=True))
"""Symbols of an American keyboard that need Shift, and what the same key is without."""

ABOVE = {below: symbol for symbol, below in BELOW.items()}

ALIASES = {"ctrl+@": "ctrl+space", "ctrl-at": "ctrl+space",
           "newline": "ctrl+j"}  # fmt: skip
"""Other names. Old terminals send NUL for ctrl+space, which Textual calls ctrl+@."""

MODIFIERS = {
    "shift": Modifier.SHIFT,
    "ctrl": Modifier.CTRL,
    "alt": Modifier.ALT,
    "super": Modifier.SUPER,
}

RARE = {"hyper": 16, "meta": 32}
"""Modifiers that the engine has no bits for, and the kitty protocol's bits."""

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no typed text may hold."""

MAX_KEY = 64
"""Longest name of a key, in characters."""

MAX_CHARACTER = 32
"""Longest text of one key (an emoji with all its parts), in characters."""

MAX_DASHES = 8
"""Underscores in a name that are tried as hyphens."""


class Key(NamedTuple):
    """One key for an encoder."""

    code: str
    """The engine's name after GHOSTTY_KEY_."""
    modifiers: Modifier
    text: str
    """What it types; empty for keys that type nothing."""
    unshifted: int
    """The character of the key without Shift, 0 for keys without one."""
    rare: int = 0
    """Bits of RARE."""
    number: int = 0
    """The kitty protocol's number of a key that the engine does not know."""


def parse(key: str, character: str | None) -> Key | str:
    """Return the key that Textual's name says, or the text to send when it is no such key."""
    key = ALIASES.get(key, key)
    modifiers, rare, base = _split(key)
    if base in NAMED:
        space = base == "space"
        return Key(NAMED[base], modifiers, " " if space else "", 32 if space else 0, rare)
    if base in KEYPAD:
        code, text = KEYPAD[base]
        return Key(code, modifiers, text, ord(text), rare)
    if base in SILENT:
        return Key("UNIDENTIFIED", modifiers, "", 0, rare, SILENT[base])
    text = _printable(character)
    symbol = base if len(base) == 1 else CHARACTERS.get(base) or text or _by_name(base)
    if len(symbol) != 1 or CONTROL.match(symbol):
        return text
    return _symbol_key(symbol, modifiers, text)._replace(rare=rare)


def _split(key: str) -> tuple[Modifier, int, str]:
    *names, base = key[:MAX_KEY].split("+")
    if not base and names:  # the plus key itself
        names, base = [name for name in names if name], "+"
    found, rare = Modifier(0), 0
    for name in names:
        found |= MODIFIERS.get(name, Modifier(0))
        rare |= RARE.get(name, 0)
    return found, rare, base


def _printable(character: str | None) -> str:
    text = (character or "")[:MAX_CHARACTER]
    return "" if CONTROL.search(text) else text


@functools.lru_cache(256)
def _by_name(base: str) -> str:
    """Return the character of a Unicode name whose spaces and hyphens became underscores."""
    words = base.upper().split("_")
    if len(words) - 1 > MAX_DASHES or not base.isascii():
        return ""
    for joints in itertools.product(" -", repeat=len(words) - 1):
        name = "".join(word + joint for word, joint in zip(words, (*joints, ""), strict=True))
        try:
            return unicodedata.lookup(name)
        except KeyError:
            continue
    return ""


def _symbol_key(symbol: str, modifiers: Modifier, text: str) -> Key:
    lower = symbol.lower() if len(symbol.lower()) == 1 else symbol
    lower = BELOW.get(symbol, lower)
    if lower != symbol:
        modifiers |= Modifier.SHIFT
    elif modifiers & Modifier.SHIFT:
        symbol = _shifted(lower)
    return Key(_code(lower), modifiers, text if len(text) == 1 else symbol, ord(lower))


def _shifted(lower: str) -> str:
    upper = ABOVE.get(lower) or lower.upper()
    return upper if len(upper) == 1 else lower


def _code(lower: str) -> str:
    if lower.isascii() and lower.isalpha():
        return lower.upper()
    if lower.isascii() and lower.isdigit():
        return f"DIGIT_{lower}"
    return PHYSICAL.get(lower, "UNIDENTIFIED")


def xterm_bits(modifiers: Modifier) -> int:
    """Return modifiers in the order of xterm and kitty: shift, alt, ctrl, super."""
    order = (Modifier.SHIFT, Modifier.ALT, Modifier.CTRL, Modifier.SUPER)
    return sum(1 << place for place, modifier in enumerate(order) if modifiers & modifier)
