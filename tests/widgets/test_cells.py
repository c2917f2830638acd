from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from widgets.cells import cells, fit, shorten_path, total, two_sided

TEXTS = st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs", "So")), max_size=40)
BLANK = Style()


@given(TEXTS, st.integers(0, 50))
def test_fit_takes_exactly_the_cells_it_is_given(text: str, width: int) -> None:
    assert cells(fit(text, width)) == width


@given(TEXTS, st.integers(1, 50))
def test_what_is_cut_shows_it(text: str, width: int) -> None:
    fitted = fit(text, width)
    assert fitted.endswith("…") if cells(text) > width else fitted.startswith(text)


@given(st.lists(st.text("abcdé世", min_size=1, max_size=12), min_size=1), st.integers(1, 60))
def test_a_shortened_path_fits(parts: list[str], width: int) -> None:
    path = "/".join(parts)
    short = shorten_path(path, width)
    assert cells(short) <= width
    if cells(path) <= width:
        assert short == path


def test_a_shortened_path_keeps_its_name() -> None:
    assert shorten_path("src/very/long/folder/of/things/name.py", 20) == "src/very/lo…/name.py"


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=3), st.integers(1, 80))
def test_a_line_has_exactly_its_width(left: list[str], right: list[str], width: int) -> None:
    strip = two_sided(
        [(text, BLANK) for text in left], [(text, BLANK) for text in right], width, BLANK
    )
    assert sum(cells(segment.text) for segment in strip) == width


def test_the_right_part_wins() -> None:
    strip = two_sided([("a long name", BLANK)], [("+42 −7", BLANK)], 12, BLANK)
    assert strip.text == "a lon…+42 −7"
    assert total([("ab", BLANK), ("世", BLANK)]) == 4
