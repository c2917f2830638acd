from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from widgets.cells import cells
from widgets.diff_draw import find_ranges
from widgets.diff_text import Expanded, styled, window, wrap_starts, wrapped_height

LINES = st.text(st.sampled_from("ab \t世é(){}"), max_size=60)
STYLES = {layer: Style(color=f"color({n})") for n, layer in enumerate(("", "mark", "find"))}


def style_of(_name: str, layer: str) -> Style:
    return STYLES[layer]


@given(LINES)
def test_tabs_go_to_the_next_stop(text: str) -> None:
    line = Expanded(text)
    assert "\t" not in line.text
    assert line.text.replace(" ", "") == text.replace("\t", "").replace(" ", "")
    for offset, char in enumerate(text):
        if char != "\t":
            assert line.text[line.at(offset)] == char
    assert line.at(len(text)) == len(line.text)


@given(LINES, st.integers(0, 40), st.integers(2, 30))
def test_a_window_never_takes_more_cells_than_it_has(text: str, start: int, width: int) -> None:
    shown = Expanded(text).text
    first, last = window(shown, start, width)
    assert cells(shown[first:last]) <= width


@given(LINES, st.integers(2, 30))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    shown = Expanded(text).text
    starts = [*wrap_starts(shown, width), len(shown)]
    pieces = [shown[a:b] for a, b in itertools.pairwise(starts)]
    assert "".join(pieces) == shown
    assert all(cells(piece) <= width for piece in pieces)
    assert wrapped_height(text, width) == len(pieces)


@given(LINES, st.data())
def test_pieces_are_the_text_and_marks_stay_where_they_are(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    line = Expanded(text)
    pieces = styled(line, 0, len(line.text), ((), [(start, end)], ()), style_of)
    assert "".join(part for part, _ in pieces) == line.text
    marked = "".join(part for part, style in pieces if style is STYLES["mark"])
    assert marked == line.text[line.at(start) : line.at(end)]


def test_a_hit_lies_over_a_mark() -> None:
    line = Expanded("return quote")
    pieces = styled(line, 0, 12, ((), [(0, 12)], [(7, 12)]), style_of)
    assert [(part, style is STYLES["find"]) for part, style in pieces] == [
        ("return ", False),
        ("quote", True),
    ]


def test_finding_ignores_case_and_survives_odd_letters() -> None:
    assert find_ranges("Quote, quote", "QUOTE") == [(0, 5), (7, 12)]
    assert find_ranges("İ quote", "quote") == [(2, 7)]
    assert find_ranges("aaa", "aa") == [(0, 2)]
