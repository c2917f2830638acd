"""Which theme a terminal gets that the user chose none for."""

from __future__ import annotations

import pytest

from app.ui.theming import chosen_palette


@pytest.mark.parametrize(
    ("term", "colorterm", "wanted", "name"),
    [
        ("xterm-256color", "truecolor", "", "cloche-dark"),
        ("xterm-256color", "", "", "cloche-dark"),
        ("xterm-16color", "", "", "cloche-ansi"),
        ("linux", "", "", "cloche-ansi"),
        ("xterm", "truecolor", "", "cloche-dark"),
        ("xterm-16color", "", "cloche-light", "cloche-light"),
        ("xterm-16color", "", "no such theme", "cloche-ansi"),
        ("xterm-256color", "", "no such theme", "cloche-dark"),
    ],
)
def test_the_theme_is_one_that_the_terminal_can_show(
    term: str, colorterm: str, wanted: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    if colorterm:
        monkeypatch.setenv("COLORTERM", colorterm)
    assert chosen_palette(wanted).name == name
