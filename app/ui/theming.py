"""Palettes as Textual themes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.console import Console
from textual.theme import Theme

from themes.palette import DEFAULT, FEW_COLOURS, builtin_palettes

if TYPE_CHECKING:
    from textual.app import App

    from themes.palette import Palette


def theme_of(palette: Palette) -> Theme:
    """Return the Textual theme that a palette describes."""
    tokens = palette.tokens()
    extra = {
        "footer-background": tokens["panel"],
        "block-cursor-background": tokens["selection"],
        "block-cursor-foreground": tokens["foreground"],
        "input-cursor-background": tokens["accent"],
        "input-cursor-foreground": tokens["background"],
        "input-selection-background": tokens["selection"],
        "scrollbar": tokens["faint"],
        "scrollbar-background": tokens["surface"],
    }
    if palette.ansi:
        extra |= {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
    return Theme(
        name=palette.name,
        primary=tokens["accent"],
        secondary=tokens["muted"],
        accent=tokens["accent"],
        success=tokens["success"],
        warning=tokens["warning"],
        error=tokens["error"],
        foreground=tokens["foreground"],
        background=tokens["background"],
        surface=tokens["surface"],
        panel=tokens["panel"],
        dark=palette.dark,
        ansi=palette.ansi,
        variables={**tokens, **extra},
    )


def install_themes(app: App[None], wanted: str = DEFAULT) -> None:
    """Register Cloche's themes and choose one; an unknown name gives the default."""
    palettes = builtin_palettes()
    for palette in palettes.values():
        app.register_theme(theme_of(palette))
    app.theme = wanted if wanted in palettes else DEFAULT


def chosen_palette(wanted: str = "") -> Palette:
    """Return the palette that the user wants, else the one that this terminal can show.

    A terminal of sixteen colours gets its own: the nearest ones to ours would be the same black for
    text and ground in places, and the agents' red and green would be neither. So does one that is
    to show none.
    """
    palettes = builtin_palettes()
    if wanted in palettes:
        return palettes[wanted]
    shown = Console(force_terminal=True, legacy_windows=False).color_system
    few = shown in (None, "standard", "windows") or "NO_COLOR" in os.environ
    return palettes[FEW_COLOURS if few else DEFAULT]
