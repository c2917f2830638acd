"""What keys send to a guest without the kitty protocol: the plain keyboard and modifyOtherKeys.

The engine follows a newer convention there, which programs that never asked for anything do not
know, and it has no first level of modifyOtherKeys. The rules are xterm's, whose name guests see in
TERM; for keys with a control character of their own they are the table of "legacy" keys in kitty's
specification, which is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vm.terminal.key_names import xterm_bits
from vm.terminal.screen import Modifier

if TYPE_CHECKING:
    from vm.terminal.key_names import Key

SHIFT, CTRL, ALT = Modifier.SHIFT, Modifier.CTRL, Modifier.ALT

OWN_CONTROL = {"ENTER": 13, "TAB": 9, "ESCAPE": 27, "BACKSPACE": 127, "SPACE": 32}
"""Keys with a control character (or blank) of their own, and the number of it."""

CONTROLS = {
    " ": 0, "2": 0, "3": 27, "4": 28, "5": 29, "6": 30, "7": 31, "8": 127, "/": 31, "?": 127,
    **{chr(point): point & 0x1F for point in range(0x40, 0x7F)},
}  # fmt: skip
"""What ctrl and a character send; any other character ctrl leaves as it is."""


class Plain(NamedTuple):
    """What of a terminal's modes matters to the plain keyboard."""

    level: int = 0
    """Level of modifyOtherKeys, 0 … 2."""
    escape_for_alt: bool = True
    """Alt sends an Escape first (mode 1036)."""
    backspace_is_bs: bool = False
    """Backspace sends BS and ctrl+Backspace DEL, not the other way round (mode 67)."""


def plain(key: Key, modes: Plain) -> bytes | None:
    """Return what a key sends, None for keys whose sequences are the same everywhere."""
    if key.code not in OWN_CONTROL and not key.text:
        return None
    if key.modifiers & Modifier.SUPER or key.rare & ~32:
        return b""  # nothing that an old program could know
    key = key._replace(modifiers=key.modifiers | (ALT if key.rare else Modifier(0)))
    if _is_long(key, modes.level):
        number = OWN_CONTROL.get(key.code) or ord(key.text)
        return b"\x1b[27;%d;%d~" % (1 + xterm_bits(key.modifiers), number)
    prefix = b"\x1b" if key.modifiers & ALT and modes.escape_for_alt else b""
    return prefix + (_own(key, modes) if key.code in OWN_CONTROL else _typed(key))


def _own(key: Key, modes: Plain) -> bytes:
    ctrl, shift = bool(key.modifiers & CTRL), bool(key.modifiers & SHIFT)
    if key.code == "BACKSPACE":
        return b"\b" if ctrl is not modes.backspace_is_bs else b"\x7f"
    if key.code == "TAB":
        return b"\x1b[Z" if shift else b"\t"
    if key.code == "SPACE":
        return b"\0" if ctrl else b" "
    return b"\r" if key.code == "ENTER" else b"\x1b"


def _typed(key: Key) -> bytes:
    if key.modifiers & CTRL and key.text in CONTROLS:
        return bytes([CONTROLS[key.text]])
    return key.text.encode()


def _is_long(key: Key, level: int) -> bool:
    """Tell whether modifyOtherKeys gives a key a sequence of its own."""
    modifiers = key.modifiers & (SHIFT | CTRL | ALT)
    if not level or not modifiers or len(key.text) > 1 or key.code.startswith("NUMPAD"):
        return False
    if key.code == "ENTER":
        return True
    if key.code == "TAB":
        return modifiers != SHIFT
    if key.code == "BACKSPACE":
        return level == 2 and modifiers != CTRL
    return _is_long_at_two(key, modifiers) if level == 2 else _is_long_at_one(key, modifiers)


def _is_long_at_two(key: Key, modifiers: Modifier) -> bool:
    """Everything but a symbol that needs Shift and has nothing to do with ctrl."""
    if key.code == "SPACE" or "@" <= key.text <= "~":
        return True
    return modifiers != SHIFT


def _is_long_at_one(key: Key, modifiers: Modifier) -> bool:
    """Only what the plain keyboard cannot tell: Alt is an Escape, some characters have a control.

    `ctrl+a` and `ctrl+2` stay as they were, `ctrl+1` and `ctrl+;` do not.
    """
    if key.code == "ESCAPE":
        return modifiers not in (SHIFT, CTRL)
    has_control = bool(modifiers & CTRL) and key.text != "?" and key.text in CONTROLS
    if has_control:
        return bool(modifiers & SHIFT and modifiers & ALT)
    return bool(modifiers & CTRL)
