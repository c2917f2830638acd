"""The prefix: the one key that goes to Cloche and not to an agent, as the user may choose it.

It is a key that every terminal sends as one control character, so it works in the workstation, in
`cloche attach`, and over any connection in between.
"""

from __future__ import annotations

import string
from typing import Final

DEFAULT: Final = "ctrl+g"

SIGNS: Final = {
    "space": "space",
    "\\": "backslash",
    "]": "right_square_bracket",
    "^": "circumflex_accent",
    "_": "underscore",
}
"""What may follow `ctrl+` besides letters, and the names of it in key events."""

SAME_AS: Final = {"h": "backspace", "i": "tab", "j": "enter", "m": "enter", "[": "escape"}
"""Keys that most terminals cannot tell from others."""

CHOICES: Final = "ctrl+a … ctrl+z but h i j m, ctrl+space, ctrl+\\, ctrl+], ctrl+^, ctrl+_"


class PrefixRefused(ValueError):
    """A key that cannot be the prefix; the message is a clause that says why."""


def prefix_key(text: object) -> str:
    """Return the name that key events have for a prefix as the user wrote it, `ctrl+g` say.

    Raises PrefixRefused.
    """
    if not isinstance(text, str) or not text:
        raise PrefixRefused("'prefix' must be the name of one key, such as ctrl+g")
    held, _, sign = text.strip().lower().rpartition("+")
    if not held and (len(sign) == 1 or sign == "space"):
        raise PrefixRefused(f"'{_short(text)}' types something, so it cannot be the prefix")
    if held == "ctrl" and sign in SAME_AS:
        raise PrefixRefused(f"terminals cannot tell ctrl+{sign} from {SAME_AS[sign]}")
    if held == "ctrl" and (sign in SIGNS or (len(sign) == 1 and sign in string.ascii_lowercase)):
        return f"ctrl+{SIGNS.get(sign, sign)}"
    raise PrefixRefused(f"'{_short(text)}' is not a key that every terminal can send by itself")


def prefix_name(key: str) -> str:
    """Return how people write a prefix that `prefix_key` returned."""
    sign = key.removeprefix("ctrl+")
    return "ctrl+" + next((short for short, name in SIGNS.items() if name == sign), sign)


def prefix_byte(key: str) -> bytes:
    """Return the control character that a terminal sends for a prefix."""
    sign = prefix_name(key).removeprefix("ctrl+")
    return b"\0" if sign == "space" else bytes([ord(sign.upper()) & 0x1F])


def _short(text: str) -> str:
    """Return what a user wrote in a form that fits into a sentence."""
    return "".join(c for c in text if c.isprintable())[:30]
