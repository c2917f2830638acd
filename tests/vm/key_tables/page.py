"""The guide's page of what reaches an agent, made from the tables that the tests hold us to.

Run as a program it prints the page: `python -m tests.vm.key_tables.page`, from the top folder.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.vm.key_tables import guest
from vm.terminal.key_names import CHARACTERS, KEYPAD
from widgets.terminal import DEFAULT_PASSTHROUGH, DEFAULT_PREFIX
from widgets.terminal_keys import ESCAPE_DELAY

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = {
    "left_pointing_double_angle_quotation_mark": "«",
    "no_break_space": "no-break space",
    "euro_sign": "€",
    "grinning_face": "😀",
    "kp_begin": "keypad 5",
    **{name: f"keypad {text}" for name, (_, text) in KEYPAD.items()},
}
TITLES = ("plain", "other 1", "other 2", "kitty 1", "kitty 1+8", "kitty 31")

INTRODUCTION = """\
# What reaches the agent

This page is made from the tables that the tests compare with the program, key by key.

An agent's screen is a terminal of the kind `xterm-256color`. What a key sends there depends on what
the program in it has asked for, as on any terminal. `\\e` is Escape, `\\x7f` a byte in hexadecimal.

* **plain**: nothing asked for; most shells and programs.
* **other 1**, **other 2**: xterm's modifyOtherKeys, `CSI > 4 ; 1 m` (Emacs) and `CSI > 4 ; 2 m`
  (Vim).
* **kitty 1**, **kitty 1+8**, **kitty 31**: kitty's keyboard protocol with these flags, `CSI > 1 u`
  and so on (Neovim, Helix, fish, many agents).

## What stays Cloche's

"""

OUTER = """
## What your own terminal can tell

A key that your terminal does not tell from another one is that other one for the agent, too.

* Terminals with kitty's protocol (kitty, Ghostty, foot, WezTerm, Alacritty, iTerm2 and others)
  tell every key.
* xterm, and tmux with `set -s extended-keys on`, tell nearly every key: Cloche asks them for
  xterm's longer form.
* All others (GNOME Terminal, Terminal.app, PuTTY, plain tmux) send the same for `ctrl+i` and `tab`;
  `ctrl+m`, `shift+enter`, `ctrl+enter` and `enter`; `ctrl+[` and `escape`; `ctrl+shift+a` and
  `ctrl+a`; `ctrl+/` and `ctrl+_`; `ctrl+2`, `ctrl+@` and `ctrl+space`.

Cloche asks for kitty's protocol by itself and takes back at the end what it asked for. On terminals
without it:

* Alt is an Escape before the key. That and a key that follows Escape at once cannot be told apart,
  so Escape waits {delay} ms for more, no longer; twice Escape is two keys.
* `ctrl+h` is its own key where the terminal's Backspace sends DEL (`stty erase`), else Backspace.
* On other alphabets `ctrl` and `alt` work by the key's place with kitty's protocol: `ctrl+с` on a
  Cyrillic keyboard is `ctrl+c`.

## Pastes

A paste arrives whole, up to 16 MiB, with marks around it where the program asked for them (mode
2004). Control characters in it, Escape among them, become blanks, so no paste can press keys or end
itself; what is no UTF-8 becomes `\ufffd`. Without marks line ends are sent as Enter.
"""


def shown(key: str) -> str:
    """Return a key as people write it."""
    *held, base = key.split("+")
    base = NAMES.get(base) or CHARACTERS.get(base) or base.replace("_", " ")
    return code("+".join([*held, base]))


def code(text: str) -> str:
    """Return text as code in a table."""
    fence = "``" if "`" in text else "`"
    blank = " " if "`" in text else ""
    return f"{fence}{blank}{text.replace('|', chr(92) + '|')}{blank}{fence}"


def cell_words(text: str) -> str:
    """Return a cell of a table as the page shows it."""
    return {"..": "same", "--": "nothing"}.get(text) or code(text)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table."""
    names = list(titles)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def mode_table(source: str) -> str:
    """Return one of the tables with a column for each mode."""
    lines = [line.split() for line in source.strip().splitlines()]
    rows = ([shown(key), *map(cell_words, cells)] for key, *cells in lines)
    return table(("key", *TITLES), rows)


def ours() -> str:
    """Return which keys do not reach an agent."""
    direct = sorted(DEFAULT_PASSTHROUGH)
    keys = f"`{direct[0]}` … `{direct[8]}` and `{direct[-1]}`"
    return (
        f"* `{DEFAULT_PREFIX}`, the prefix: the key after it is Cloche's. Twice it reaches the "
        "agent once.\n"
        f"* {keys}, unless `direct_keys: false` gives them to the agent.\n"
        "* While copy mode is on, all keys; see [keys](keys.md).\n"
        "* Keys that are only modifiers, and keys that are let go: no program gets them here.\n\n"
        "Both can be chosen, see [configuration](configuration.md).\n"
    )


def modifiers() -> str:
    """Return how keys that type nothing tell modifiers."""
    numbers = table(
        ("with", "number"), ([code(names), str(number)] for names, number in guest.MODIFIERS)
    )
    letters = ", ".join(f"{shown(key)} {letter}" for key, letter in guest.LETTERED.items())
    tilded = ", ".join(f"{code(key)} {number}" for key, number in guest.TILDED.items())
    return (
        "With a modifier, in every mode:\n\n"
        f"* `\\e[1;NUMBER LETTER`: {letters}\n* `\\e[CODE;NUMBER~`: {tilded}\n\n{numbers}"
        "\nWith kitty's protocol `f3` sends `\\e[13;NUMBER~`, and keys from `f13` on "
        "`\\e[57376;NUMBER u` and up.\n"
    )


def small_modes() -> str:
    """Return what modes do that change little."""
    titles = {"cursor": "Cursor keys (mode 1)", "noalt": "Alt without Escape (mode 1036 off)",
              "bs": "Backspace sends BS (mode 67)", "keypad": "Keypad (`ESC =`)"}  # fmt: skip
    rows: list[list[str]] = []
    for mode, title in titles.items():
        pairs = [pair.split() for pair in guest.SPECIAL[mode].split("|")]
        rows.append([title, ", ".join(f"{shown(key)} {cell_words(sent)}" for key, sent in pairs)])
    return table(("mode", "keys"), rows)


def controls() -> str:
    """Return what ctrl sends to a plain guest with characters that are no letters."""
    lines = [line.split() for line in guest.SYMBOLS.strip().splitlines()]
    pairs = [(character, plain) for _, character, _, plain, _ in lines if plain != character]
    told = ", ".join(f"{code('ctrl+' + sign)} {code(plain)}" for sign, plain in pairs)
    return (
        "`ctrl` with a letter sends its number in the alphabet, `\\x01` to `\\x1a`, with Shift or "
        f"without. Of other characters:\n{told}. All others stay as they are.\n"
    )


def page() -> str:
    """Return the whole page."""
    parts = [
        INTRODUCTION + ours(),
        "\n## Letters, digits, symbols\n\n" + controls() + "\n" + mode_table(guest.TEXT),
        "\n## Enter, Tab, Escape, Backspace, Space\n\n" + mode_table(guest.OWN),
        "\n## Keys that type nothing, and the keypad\n\n" + mode_table(guest.FUNCTION),
        "\n" + modifiers(),
        "\n## Other modes\n\nCompared with plain:\n\n" + small_modes(),
        OUTER.format(delay=round(ESCAPE_DELAY * 1000)),
    ]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
