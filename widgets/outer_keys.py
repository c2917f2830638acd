"""The user's own terminal: what one of its sequences says, by the names that Textual has for keys.

Three families meet here. Old terminals send characters, an Escape before them for Alt, and a few
dozen sequences. Some (xterm, tmux, when told so) add `CSI 27 ; modifiers ; code ~`. Those with the
kitty protocol send `CSI code:shifted:base ; modifiers:event ; text u`. The same key has the same
name whichever terminal it came from; what is no key press (a release, Shift alone) has none.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.keys import _character_to_key as textual_name  # pyright: ignore[reportPrivateUsage]

ESCAPE: Final = "\x1b"

LONE_MODIFIERS = frozenset(
    {
        *(f"{side}_{name}" for side in ("left", "right")
          for name in ("shift", "control", "alt", "super", "hyper", "meta")),
        *(f"iso_level{level}_shift" for level in (3, 5)),
        "caps_lock", "scroll_lock", "num_lock",
    }
)  # fmt: skip
"""Keys that mean nothing alone; the kitty protocol reports them all the same."""

CSI_KEY: Final = re.compile(
    r"\x1b\[(?P<code>\d{0,7})(?::(?P<shifted>\d{0,7}))?(?::(?P<base>\d{0,7}))?"
    r"(?:;(?P<modifiers>\d{0,3})(?::(?P<event>\d))?)?(?:;(?P<text>[\d:]{0,64}))?"
    r"(?P<final>[u~ABCDEFHPQRSZ])"
)
SS3_KEY: Final = re.compile(r"\x1bO(?:1?;?(?P<modifiers>[2-9]|1[0-6]))?(?P<final>[A-Za-z])")
RXVT_KEY: Final = re.compile(r"\x1b\[(?P<code>[235678])(?P<final>[\^$@])")

MODIFIERS: Final = ("shift", "alt", "ctrl", "super", "hyper", "meta")
"""In the order of their bits; the two after them are caps lock and num lock, which are no keys."""

NUMBERED: Final = {
    "25~": "f13", "26~": "f14", "28~": "f15", "29~": "f16", "31~": "f17", "32~": "f18",
    "33~": "f19", "34~": "f20", "8u": "backspace", "32u": "space", "1Z": "tab",
}  # fmt: skip
"""What the VT220 numbered beyond the kitty protocol's table."""

SS3: Final = {
    **dict(zip("ABCDFHPQRSEMI", ("up", "down", "right", "left", "end", "home", "f1", "f2", "f3",
                                 "f4", "kp_begin", "enter", "tab"), strict=True)),
    **dict(zip("abcd", ("ctrl+up", "ctrl+down", "ctrl+right", "ctrl+left"), strict=True)),
    **dict(zip("jklmnoXpqrstuvwxy", "*+,-./=0123456789", strict=True)),
}  # fmt: skip
"""Cursor keys and F1 … F4, rxvt's ctrl with cursor keys, the keypad in its own mode."""

RXVT: Final = {
    "2": "insert",
    "3": "delete",
    "5": "pageup",
    "6": "pagedown",
    "7": "home",
    "8": "end",
}
RXVT_MODIFIERS: Final = {"^": "ctrl+", "$": "shift+", "@": "ctrl+shift+"}

ALT: Final = {"\r": "enter", "\t": "tab", "\x7f": "backspace", " ": "space"}
"""Characters that Alt is no letter with."""

CTRL: Final = {
    "\0": "ctrl+space", "\x1c": "ctrl+backslash", "\x1d": "ctrl+right_square_bracket",
    "\x1e": "ctrl+circumflex_accent", "\x1f": "ctrl+underscore",
}  # fmt: skip
"""Control characters that are no letter with ctrl; Textual calls the first one ctrl+@."""

NEED_SHIFT: Final = '!@#$%^&*()_+{}|:"<>?~'
"""Symbols that Shift makes on an American keyboard."""

CHARACTERS: Final = {"enter": "\r", "tab": "\t", "backspace": "\x7f", "space": " "}
PRIVATE: Final = range(57344, 63744)
"""Numbers of keys without a character in the kitty protocol; unknown ones are left out."""


class _Press(NamedTuple):
    """One key press as a terminal numbered it."""

    code: int
    final: str
    modifiers: int
    shifted: int = 0
    base: int = 0
    text: str = ""

    def has(self, *names: str) -> bool:
        """Tell whether one of these modifiers is held."""
        return any(self.modifiers & 1 << MODIFIERS.index(name) for name in names)


def keys_of(sequence: str) -> list[events.Key] | None:
    """Return the keys of a whole sequence (an empty list for none), or None when it is no key."""
    if match := CSI_KEY.fullmatch(sequence):
        return _csi(match)
    if match := SS3_KEY.fullmatch(sequence):
        return _ss3(match)
    if match := RXVT_KEY.fullmatch(sequence):
        return [events.Key(RXVT_MODIFIERS[match["final"]] + RXVT[match["code"]], None)]
    return _listed(sequence)


def _listed(sequence: str) -> list[events.Key] | None:
    """Return the keys of a sequence that Textual lists; an Escape first in the list is Alt."""
    found = ANSI_SEQUENCES_KEYS.get(sequence)
    if isinstance(found, str):
        return [events.Key(textual_name(found), found)]
    if not isinstance(found, tuple):
        return None
    names = [key.value for key in found]
    if len(names) == 2 and names[0] == "escape":
        return with_alt([events.Key(names[1], None)])
    return [events.Key(name, None) for name in names if name[0] != "<"]


def alt_key(character: str) -> events.Key:
    """Return Alt with a character, which old terminals send as an Escape before it."""
    if character in ALT:
        return events.Key(f"alt+{ALT[character]}", None)
    if character in CTRL:
        return events.Key(f"alt+{CTRL[character]}", None)
    if character < " ":
        return events.Key(f"alt+ctrl+{chr(ord(character) + 0x60)}", None)
    lower = character.lower()
    if character != lower and len(lower) == 1:
        return events.Key(f"alt+shift+{lower}", None)
    return events.Key(f"alt+{textual_name(character)}", None)


def with_alt(keys: list[events.Key]) -> list[events.Key]:
    """Return keys with Alt held; its name comes first among the modifiers."""
    return [it if it.key.startswith("alt+") else events.Key(f"alt+{it.key}", None) for it in keys]


def _csi(match: re.Match[str]) -> list[events.Key] | None:
    code, modifiers = int(match["code"] or 1), max(int(match["modifiers"] or 1) - 1, 0)
    final, text = match["final"], match["text"] or ""
    if (final in "ABCDEFHPQRSZ" and code != 1) or (not match["code"] and final in "u~"):
        return _listed(match[0])
    if modifiers > 0xFF or match["event"] == "3":
        return []
    if code == 27 and final == "~" and text.isdecimal():
        return _keys(_other_key(int(text), modifiers))
    shifted, base = int(match["shifted"] or 0), int(match["base"] or 0)
    if final == "u" and not shifted and not text:
        return _keys(_other_key(code, modifiers)._replace(base=base))
    return _keys(_Press(code, final, modifiers, shifted, base, _text(text)))


def _other_key(code: int, modifiers: int) -> _Press:
    """Return a key that may be numbered by the character that Shift makes, as xterm does it."""
    character = _character(code)
    if modifiers & 1 and character.isupper() and len(character.lower()) == 1:
        code = ord(character.lower())
    elif character and character in NEED_SHIFT:
        modifiers &= ~1
    return _Press(code, "u", modifiers)


def _text(points: str) -> str:
    return "".join(_character(int(point)) for point in points.split(":") if point)


def _character(point: int) -> str:
    """Return a character that may be typed, else an empty text."""
    if point < 32 or 0x7F <= point < 0xA0 or 0xD800 <= point < 0xE000 or point > 0x10FFFF:
        return ""
    return chr(point)


def _ss3(match: re.Match[str]) -> list[events.Key] | None:
    name = SS3.get(match["final"])
    if name is None:
        return None
    if match["modifiers"] and match["final"].isupper():
        return _keys(_Press(1, match["final"], int(match["modifiers"]) - 1))
    if len(name) == 1:
        return [events.Key(textual_name(name), name)]
    return [events.Key(name, CHARACTERS.get(name))]


def _keys(press: _Press) -> list[events.Key]:
    number = f"{press.code}{press.final}"
    name = FUNCTIONAL_KEYS.get(number) or NUMBERED.get(number)
    if press.final == "Z":
        press = press._replace(modifiers=press.modifiers | 1)
    if name in LONE_MODIFIERS or (name is None and (press.final != "u" or press.code in PRIVATE)):
        return []
    if press.text and not press.has("super", "hyper", "meta"):
        return _typed(press, name)
    key = _named(press, name) if name else _bare(press)
    return [key] if key is not None else []


def _typed(press: _Press, name: str | None) -> list[events.Key]:
    """Return what text a key typed; a key of the keypad keeps its name."""
    if name is None:
        return [events.Key(textual_name(character), character) for character in press.text]
    if name == "space":
        name = "shift+space" if press.has("shift") else name
    return [events.Key(name, press.text)]


def _named(press: _Press, name: str) -> events.Key:
    held = _held(press)
    return events.Key("+".join([*held, name]), None if held else CHARACTERS.get(name))


def _bare(press: _Press) -> events.Key | None:
    """Return a key of a character that came without text: it has modifiers, mostly."""
    character = _character(press.code)
    if press.has("ctrl", "alt", "super") and press.code > 0x7F and press.base:
        character = _character(press.base)  # another alphabet: ctrl+c is where it always was
    elif press.has("shift") and press.shifted and chr(press.code).upper() != chr(press.shifted):
        character = _character(press.shifted)
        press = press._replace(modifiers=press.modifiers & ~1)
    if not character:
        return None
    if not press.modifiers & 0x3E:
        typed = character.upper() if press.has("shift") else character
        return events.Key(textual_name(typed), typed) if len(typed) == 1 else None
    return events.Key("+".join([*_held(press), textual_name(character)]), None)


def _held(press: _Press) -> list[str]:
    """Return the names of the modifiers, sorted as Textual sorts them."""
    return sorted(name for bit, name in enumerate(MODIFIERS) if press.modifiers & 1 << bit)
