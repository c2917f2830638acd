"""The help: its signs are those of the screen below, and its columns hold in every width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.help_screen import Fitted, HelpScreen
from app.ui.help_text import KEY_COLUMN, LEAST, group_text, legend, legend_text
from app.ui.keys import KeyGroup, KeyRow, key_groups
from tests.doubles.pilots import press, settle
from tests.doubles.scenes import workstation
from themes.glyphs import ASCII, UNICODE

NARROWEST = KEY_COLUMN + 3 + LEAST
WORDS = st.text("abcdefgh ", min_size=1, max_size=200).filter(str.strip)
SIGNS = {
    "FleetScreen": "◌●◆○✓✗‖!■⇡♪⇄",
    "ReviewScreen": "○✓✗◐↓↯!∅◉¶",
    "EgressScreen": "✓✗◆·↑",
    "CommitScreen": "!∅",
}


@pytest.mark.parametrize("screen", SIGNS)
def test_every_sign_of_a_screen_is_explained(screen: str) -> None:
    assert "".join(sign.sign for sign in legend(screen, UNICODE)) == SIGNS[screen]
    assert all(sign.meaning for sign in legend(screen, ASCII))


@given(st.integers(30, 200), st.sampled_from(sorted(SIGNS)))
def test_no_meaning_is_torn_from_its_sign(width: int, screen: str) -> None:
    signs = legend(screen, UNICODE)
    lines = legend_text(signs, width).plain.split("\n")
    for sign in signs:
        assert any(f"{sign.sign} {sign.meaning}" in line for line in lines)
    widest = max(len(f"{sign.sign} {sign.meaning}  ") for sign in signs)
    assert max(map(len, lines)) <= max(width, widest)


@given(st.integers(NARROWEST, 200), st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_what_a_key_does_never_goes_on_in_the_column_of_keys(
    width: int, rows: list[tuple[str, str]]
) -> None:
    group = KeyGroup("Title", tuple(KeyRow((f"k{keys[:5]}",), what) for keys, what in rows))
    _, title, *lines = group_text(group, width).plain.split("\n")
    assert title == "Title"
    for line in lines:
        assert len(line) <= width
        begins = line[:KEY_COLUMN].startswith("  k")
        assert begins or not line[: KEY_COLUMN + 3].strip()
    words = [word for _, what in rows for word in what.split()]
    assert [word for line in lines for word in line[KEY_COLUMN + 3 :].split()] == words or any(
        len(word) > LEAST for word in words
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_page_itself_has_room_for_all_of_its_lines(size: tuple[int, int]) -> None:
    app, _, _ = workstation()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        shown = list(app.screen.query(Fitted))
        assert len(shown) == 1 + len(key_groups())
        for one in shown:
            lines = one.render().plain.split("\n")
            assert one.size.height == len(lines)
            assert max(map(len, lines)) <= one.size.width
