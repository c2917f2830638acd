"""What the terminal says of itself, in its environment alone: it is asked nothing."""

from __future__ import annotations

import locale
import os
import shutil
import sys
from typing import TYPE_CHECKING, Literal

from app.doctor.host import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

BY_VARIABLE = (
    ("KITTY_WINDOW_ID", "kitty"),
    ("GHOSTTY_RESOURCES_DIR", "ghostty"),
    ("WEZTERM_PANE", "wezterm"),
    ("ALACRITTY_WINDOW_ID", "alacritty"),
    ("VTE_VERSION", "vte"),
)
"""Variables that a terminal sets for what runs in it."""

BY_TERM = ("kitty", "ghostty", "foot", "wezterm", "alacritty", "rio", "contour")


def terminal(environment: Mapping[str, str] = os.environ) -> Terminal:
    """Return what is known of the terminal on standard output."""
    columns, rows = shutil.get_terminal_size()
    return Terminal(
        there=sys.stdout.isatty(),
        term=environment.get("TERM", ""),
        colorterm=environment.get("COLORTERM", ""),
        no_colour=bool(environment.get("NO_COLOR")),
        columns=columns,
        rows=rows,
        encoding=locale.getpreferredencoding(False),
        program=name_of(environment),
        multiplexer=_multiplexer(environment),
        remote="SSH_CONNECTION" in environment,
    )


def name_of(environment: Mapping[str, str]) -> str:
    """Return the terminal's name in lower case, empty when nothing tells it.

    `TERM` comes first: it goes along through sudo and ssh, and the others can be left over from a
    terminal that started this one.
    """
    term = environment.get("TERM", "")
    for name in BY_TERM:
        if name in term:
            return name
    told = environment.get("TERM_PROGRAM", "").lower()
    if told and told not in ("tmux", "screen"):
        return told
    return next((name for variable, name in BY_VARIABLE if variable in environment), "")


def _multiplexer(environment: Mapping[str, str]) -> Literal["", "tmux", "screen"]:
    if environment.get("TMUX"):
        return "tmux"
    return "screen" if environment.get("STY") else ""
