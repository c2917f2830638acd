"""A theme as data: named colours for surfaces, states, diffs, syntax and the terminal.

Palettes are YAML files in `builtin/`. Every token must be there, so that no screen ever meets a
colour that a theme forgot. Values are what Textual's colour parser takes (`#rrggbb`, `ansi_red`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

BUILTIN = Path(__file__).with_name("builtin")
"""Where the themes that come with Cloche lie."""

DEFAULT = "cloche-dark"
"""The theme that is used when the user chose none."""

FEW_COLOURS = "cloche-ansi"
"""The theme for terminals of sixteen colours."""

BASE = (
    *("background", "surface", "panel", "raised", "foreground", "muted", "faint"),
    *("accent", "accent-soft", "success", "warning", "error", "selection", "selection-quiet"),
)
DIFF = (
    *("added", "added-soft", "added-mark", "added-mark-foreground"),
    *("removed", "removed-soft", "removed-mark", "removed-mark-foreground"),
    *("hatch", "gap", "number", "find", "find-foreground"),
)
STATE = (
    *("starting", "working", "waiting", "idle", "done", "failed", "paused", "stalled", "stopped"),
)
SYNTAX = (
    *("keyword", "function", "class", "string", "number", "comment"),
    *("operator", "builtin", "decorator", "variable", "tag", "heading"),
)
TERMINAL_COLORS = 16


class ThemeError(Exception):
    """A theme's file does not hold what a theme must; `hint` says what to change."""

    code = "theme"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Palette:
    """One theme."""

    name: str
    title: str
    dark: bool
    ansi: bool
    """True when only the terminal's own sixteen colours are used."""
    base: dict[str, str]
    diff: dict[str, str]
    state: dict[str, str]
    syntax: dict[str, str]
    terminal: tuple[str, ...]
    """The sixteen colours that agents' screens are shown in."""

    def tokens(self) -> dict[str, str]:
        """Return every colour under the name that styles use, such as `diff-added`."""
        flat = dict(self.base)
        for group in ("diff", "state", "syntax"):
            values = cast("dict[str, str]", getattr(self, group))
            flat.update({f"{group}-{name}": value for name, value in values.items()})
        return flat


def _group(
    raw: dict[str, object], name: str, wanted: tuple[str, ...], origin: str
) -> dict[str, str]:
    found = raw.get(name)
    values = cast("dict[object, object]", found) if isinstance(found, dict) else {}
    missing = [token for token in wanted if not isinstance(values.get(token), str)]
    if missing:
        raise ThemeError(f"{origin} has no colour {name}.{missing[0]}.", f"Add it to {origin}.")
    return {token: str(values[token]) for token in wanted}


def parse_palette(text: str, origin: str) -> Palette:
    """Return the palette that a YAML text holds.

    Raises ThemeError when it is no YAML mapping or a token is missing; names file and token.
    """
    try:
        loaded: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ThemeError(f"{origin} is not YAML: {error}.", f"Mend {origin}.") from error
    if not isinstance(loaded, dict):
        raise ThemeError(f"{origin} holds no theme.", f"Mend {origin}.")
    raw = cast("dict[str, object]", loaded)
    terminal = raw.get("terminal")
    colors = tuple(str(c) for c in cast("list[object]", terminal or ()))
    if len(colors) != TERMINAL_COLORS:
        raise ThemeError(f"{origin} needs {TERMINAL_COLORS} terminal colours.", f"Mend {origin}.")
    return Palette(
        name=str(raw.get("name", "")),
        title=str(raw.get("title", "")),
        dark=bool(raw.get("dark", True)),
        ansi=bool(raw.get("ansi", False)),
        base=_group(raw, "base", BASE, origin),
        diff=_group(raw, "diff", DIFF, origin),
        state=_group(raw, "state", STATE, origin),
        syntax=_group(raw, "syntax", SYNTAX, origin),
        terminal=colors,
    )


@functools.cache
def builtin_palettes() -> dict[str, Palette]:
    """Return the themes that come with Cloche, by name; read once."""
    files = sorted(BUILTIN.glob("*.yaml"))
    palettes = [parse_palette(file.read_text(encoding="utf-8"), file.name) for file in files]
    return {palette.name: palette for palette in palettes}
