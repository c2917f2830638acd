from __future__ import annotations

import dataclasses

import pytest
from rich.cells import cell_len
from textual.color import Color

from themes.glyphs import ASCII, UNICODE, Glyphs
from themes.palette import BUILTIN, Palette, ThemeError, builtin_palettes, parse_palette


def name_of(palette: Palette) -> str:
    return palette.name


COLOURED = [palette for palette in builtin_palettes().values() if not palette.ansi]
READABLE = 4.5
"""Contrast that WCAG asks of text."""


def test_one_dark_one_light_one_of_the_terminals_own_colours() -> None:
    found = builtin_palettes()
    assert set(found) == {"cloche-dark", "cloche-light", "cloche-ansi"}
    assert [found[name].dark for name in ("cloche-dark", "cloche-light")] == [True, False]
    assert found["cloche-ansi"].ansi


@pytest.mark.parametrize("palette", builtin_palettes().values(), ids=name_of)
def test_every_token_is_a_colour(palette: Palette) -> None:
    for token, value in palette.tokens().items():
        assert Color.parse(value), token


def test_the_ansi_theme_names_only_the_terminals_colours() -> None:
    palette = builtin_palettes()["cloche-ansi"]
    assert all(value.startswith("ansi_") for value in palette.tokens().values())


@pytest.mark.parametrize("palette", COLOURED, ids=name_of)
def test_text_is_readable_on_every_surface(palette: Palette) -> None:
    tokens: dict[str, str] = palette.tokens()
    surfaces = ("background", "surface", "panel", "raised", "selection", "selection-quiet")
    for surface in surfaces:
        assert contrast(tokens["foreground"], tokens[surface]) >= READABLE
    for text in ("muted", "accent", "success", "warning", "error", "state-working"):
        for surface in ("background", "surface", "panel"):
            assert contrast(tokens[text], tokens[surface]) >= READABLE, (text, surface)


@pytest.mark.parametrize("palette", COLOURED, ids=name_of)
def test_code_is_readable_on_changed_lines(palette: Palette) -> None:
    tokens: dict[str, str] = palette.tokens()
    syntax = [token for token in tokens if token.startswith("syntax-")]
    for side in ("added", "removed"):
        mark = tokens[f"diff-{side}-mark"]
        assert contrast(tokens[f"diff-{side}-mark-foreground"], mark) >= READABLE
        for token in syntax:
            assert contrast(tokens[token], tokens[f"diff-{side}-soft"]) >= 4, (token, side)
    for ground in ("background", "diff-gap"):
        for token in syntax:
            assert contrast(tokens[token], tokens[ground]) >= 4, (token, ground)
    assert contrast(tokens["diff-find-foreground"], tokens["diff-find"]) >= READABLE
    assert contrast(tokens["diff-number"], tokens["background"]) >= 3


def test_the_signs_of_the_terminals_own_colours_differ_from_their_grounds() -> None:
    tokens: dict[str, str] = builtin_palettes()["cloche-ansi"].tokens()
    for text, ground in (
        ("diff-added-mark-foreground", "diff-added-mark"),
        ("diff-removed-mark-foreground", "diff-removed-mark"),
        ("diff-find-foreground", "diff-find"),
        ("foreground", "selection"),
    ):
        assert tokens[text] != tokens[ground]
    syntax = {value for token, value in tokens.items() if token.startswith("syntax-")}
    assert not syntax & {"ansi_black", "ansi_white", "ansi_bright_white"}  # one of two grounds


def contrast(one: str, other: str) -> float:
    lights = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_every_glyph_is_one_cell(glyphs: Glyphs) -> None:
    assert all(cell_len(sign) == 1 for sign in dataclasses.astuple(glyphs))


def test_the_ascii_set_is_ascii() -> None:
    assert all(sign.isascii() for sign in dataclasses.astuple(ASCII))


def test_states_and_decisions_differ_without_colour() -> None:
    for glyphs in (UNICODE, ASCII):
        states = [
            getattr(glyphs, name)
            for name in ("starting", "working", "waiting", "idle", "done", "failed", "paused")
        ]
        assert len(set(states)) == len(states)
        decisions = [getattr(glyphs, n) for n in ("open", "accepted", "rejected", "mixed")]
        assert len(set(decisions)) == len(decisions)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2]", "holds no theme"),
        ("base: {", "is not YAML"),
        ("name: x", "needs 16 terminal colours"),
    ],
)
def test_a_bad_file_is_named(text: str, says: str) -> None:
    with pytest.raises(ThemeError, match=says) as caught:
        parse_palette(text, "mine.yaml")
    assert "mine.yaml" in caught.value.message
    assert caught.value.hint


def test_a_missing_token_is_named() -> None:
    text = (BUILTIN / "dark.yaml").read_text(encoding="utf-8").replace('  muted: "#8a94a6"\n', "")
    with pytest.raises(ThemeError, match=r"has no colour base\.muted"):
        parse_palette(text, "mine.yaml")
