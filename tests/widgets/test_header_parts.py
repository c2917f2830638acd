from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themes.glyphs import ASCII, UNICODE, Glyphs
from widgets.cells import cells
from widgets.header_parts import Bit, PaneFacts, Wish, chosen, header_parts, length
from widgets.session_rail import SessionRow

TAKES = "ctrl+g enter"


def row(name: str = "fix-parser", **values: object) -> SessionRow:
    fields: dict[str, object] = {
        "key": "s1",
        "number": 1,
        "state": "working",
        "sign": "●",
        "agent": "claude-code",
        "name": name,
        "status": "working",
        "age": "3m",
        "added": 42,
        "removed": 7,
        "files": 3,
        "live": True,
    }
    return SessionRow(**{**fields, **values})  # type: ignore[arg-type]  # fields of any type


def text(width: int, facts: PaneFacts | None = None, shown: SessionRow | None = None) -> str:
    """The line as it is drawn."""
    left, right = header_parts(shown or row(), facts or PaneFacts(), UNICODE, width, TAKES)
    gap = width - length(left) - length(right)
    assert gap >= 0
    return "".join(bit.text for bit in (*left, Bit(" " * gap), *right))


EVERYTHING = PaneFacts(
    active=True,
    current=True,
    trouble="reconnects",
    back=12,
    copying=True,
    progress=(1, 40),
    marked=True,
    title="vim",
)


@pytest.mark.parametrize(
    "line",
    [
        " 1 fix-parser ●  3m ",
        " 1 fix-parser ● working ",
        " 1 fix-parser  ● working  3m ",
        " 1 fix-parser   ● working  3m  +42 −7 ",
        " 1 fix-parser  claude-code   ● working  3m  +42 −7 ",
        " 1 fix-parser  claude-code   ● working  3m  +42 −7 · 3 files ",
    ],
)
def test_what_is_left_with_less_room(line: str) -> None:
    assert text(len(line)) == line


def test_twenty_cells_show_number_sign_and_name_whatever_else_is_true() -> None:
    shown = text(20, EVERYTHING, row("a-rather-long-name"))
    assert "1" in shown
    assert "a-rat" in shown
    assert "●" in shown


def test_where_the_keys_go_is_said_before_the_whole_name() -> None:
    assert "⌨" in text(20, PaneFacts(active=True), row("a-rather-long-name"))


def test_a_wide_header_says_everything() -> None:
    shown = text(160, EVERYTHING)
    for word in (
        *("▸1 fix-parser  claude-code", "⌨", "♪", "copy mode", "↑ 12 lines back"),
        *("! reconnects", "━━──── 40%", "vim", "● working", "3m", "+42 −7 · 3 files"),
    ):
        assert word in shown


def test_an_elsewhere_attached_terminal_says_how_to_take_it() -> None:
    facts = PaneFacts(active=True, mirrored=True)
    assert "attached elsewhere · ctrl+g enter takes it" in text(120, facts)
    assert "⇄ attached elsewhere" in text(60, facts)
    assert "⇄" in text(20, facts)
    assert "⌨" not in text(120, facts)


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ((1, 0), "────── 0%"),
        ((1, 100), "━━━━━━ 100%"),
        ((2, 50), "✗ ━━━─── 50%"),
        ((3, -1), "busy"),
        ((4, -1), "‖ paused"),
        ((2, -1), "✗ failed"),
        ((1, 255), "busy"),
    ],
)
def test_progress(progress: tuple[int, int], words: str) -> None:
    assert words in text(140, PaneFacts(progress=progress))


def test_a_stopped_session_without_changes_shows_none() -> None:
    assert "files" not in text(120, shown=row(files=0, added=0, removed=0))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40)


@given(
    st.integers(1, 250),
    NAMES,
    NAMES,
    st.builds(
        PaneFacts,
        active=st.booleans(),
        current=st.booleans(),
        trouble=st.sampled_from(["", "reconnects"]),
        back=st.integers(0, 10**9),
        copying=st.booleans(),
        mirrored=st.booleans(),
        progress=st.none() | st.tuples(st.integers(0, 9), st.integers(-1, 300)),
        marked=st.booleans(),
        title=NAMES,
    ),
    st.sampled_from([UNICODE, ASCII]),
)
def test_it_never_gets_too_long_and_twenty_cells_name_the_session(
    width: int, name: str, agent: str, facts: PaneFacts, glyphs: Glyphs
) -> None:
    shown = row(name, agent=agent)
    left, right = header_parts(shown, facts, glyphs, width, TAKES)
    assert length(left) + length(right) <= width
    if width >= 20:
        line = "".join(bit.text for bit in (*left, *right))
        assert "1 " in line
        assert shown.sign in line
        assert name[:2] in line


@given(st.lists(st.tuples(st.sampled_from("abc"), NAMES)), st.integers(0, 60))
def test_what_is_granted_fits_and_more_room_grants_no_less(
    wishes: list[tuple[str, str]], width: int
) -> None:
    asked = [Wish(part, (Bit(words),)) for part, words in wishes]
    found = chosen(asked, width)
    assert sum(length(bits) for bits in found.values()) <= width
    everything = chosen(asked, 10**6)
    assert everything == {wish.part: wish.bits for wish in asked}


def test_a_wish_that_fits_is_granted_before_a_less_important_one() -> None:
    wishes = [Wish("a", (Bit("1234"),)), Wish("b", (Bit("12"),)), Wish("a", (Bit("12345"),))]
    assert set(chosen(wishes, 4)) == {"a"}
    assert cells(chosen(wishes, 6)["a"][0].text) == 4
    assert cells(chosen(wishes, 7)["a"][0].text) == 5
