"""What is painted over a terminal's rows: never other text or width, visible on every terminal."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from themes.palette import builtin_palettes
from widgets.paint import Paint
from widgets.terminal_draw import (
    BAR,
    LINE,
    LOOKS,
    CursorLook,
    look_of,
    mark_codes,
    paint_cursor,
    paint_marks,
)
from widgets.terminal_draw_ink import Depth, Ink
from widgets.terminal_feed import Mark, MarkKind

DEPTHS: tuple[Depth, ...] = ("none", "sixteen", "many", "full")
CURSORS: tuple[CursorLook, ...] = ("block", "bar", "underline", "hollow")
MARK_KINDS: tuple[MarkKind, ...] = ("selection", "match", "current")


def ink_of(depth: Depth, theme: str = "cloche-dark") -> Ink:
    palette = builtin_palettes()[theme]
    return Ink(Paint(palette.tokens()), depth, dark=palette.dark)


INKS = {depth: ink_of(depth) for depth in DEPTHS}

# characters of no, one and two cells, joined and combined ones
characters = st.sampled_from(
    [*"ab ─é", "漢", "字", "👍", "e\u0301", "\u0301", "🇩", "\u200d", "\ufe0f"]
)
texts = st.lists(characters, max_size=12).map("".join)
colors = st.sampled_from([None, Color.default(), Color.from_ansi(3), Color.from_rgb(9, 99, 200)])
styles = st.builds(
    Style,
    color=colors,
    bgcolor=colors,
    reverse=st.booleans(),
    underline=st.booleans(),
    dim=st.booleans(),
    link=st.sampled_from([None, "https://a.example/"]),
)
strips = st.lists(st.builds(Segment, texts, st.none() | styles, st.none()), max_size=6).map(Strip)
marks = st.lists(
    st.builds(Mark, st.integers(-3, 40), st.integers(-3, 40), st.sampled_from(MARK_KINDS)),
    max_size=8,
)


def parts(strip: Strip) -> tuple[str, int]:
    return "".join(text for text, _, _ in strip), sum(cell_len(text) for text, _, _ in strip)


@given(strips, marks, st.sampled_from(DEPTHS))
@example(Strip([Segment("漢字")]), [Mark(1, 3, "match")], "full")
def test_marks_change_neither_text_nor_width(strip: Strip, found: list[Mark], depth: Depth) -> None:
    marked = paint_marks(strip, found, INKS[depth])
    assert marked.text == strip.text
    assert marked.cell_length == strip.cell_length
    # no character is torn: a piece measured alone takes the cells that it takes in the row
    assert sum(cell_len(text) for text, _, _ in marked) == strip.cell_length


@given(strips, st.integers(-2, 40), st.sampled_from([1, 2]), st.sampled_from(CURSORS))
def test_a_cursor_never_changes_the_width(
    strip: Strip, x: int, cells: int, look: CursorLook
) -> None:
    before, _ = parts(strip)
    drawn, width = parts(paint_cursor(strip, x, cells, look, INKS["full"]))
    assert width == strip.cell_length
    assert len(drawn) == len(before)
    changed = [(old, new) for old, new in zip(before, drawn, strict=True) if old != new]
    assert set(changed) <= {(" ", BAR), (" ", LINE)}
    if look in ("block", "hollow"):
        assert not changed


@given(strips, st.sampled_from(DEPTHS))
def test_limits_change_neither_text_nor_width(strip: Strip, depth: Depth) -> None:
    limited = INKS[depth].limit(strip)
    assert parts(limited) == parts(strip)
    if depth in ("full", "many"):
        assert limited is strip
    if depth == "none":
        assert all(style is None or style.color is style.bgcolor is None for _, style, _ in limited)


@given(marks, st.integers(0, 30))
def test_later_marks_win_and_none_reaches_outside(found: list[Mark], width: int) -> None:
    codes = mark_codes(found, width)
    assert len(codes) == width
    for x, code in enumerate(codes):
        over = [mark.kind for mark in found if mark.start <= x < mark.end]
        wanted: str = over[-1] if over else ""
        if wanted == "match":
            before = [kind for kind in over if kind != "match"]
            wanted = "selected match" if before and before[-1] == "selection" else wanted
        assert (LOOKS[code - 1] if code else "") == wanted


def styles_at(strip: Strip) -> list[Style | None]:
    """The style of each cell."""
    return [style for text, style, _ in strip for _ in range(cell_len(text))]


def test_marks_are_where_they_should_be() -> None:
    strip = Strip([Segment("abcdef", Style(italic=True)), Segment("ghij")])
    found = [Mark(2, 9, "selection"), Mark(4, 6, "match"), Mark(5, 7, "current")]
    found.append(Mark(0, 1, "match"))
    cells = styles_at(paint_marks(strip, found, INKS["full"]))
    ink = INKS["full"]
    assert cells[0] == ink.marked(Style(italic=True), "match")
    assert cells[1] == Style(italic=True)
    assert cells[2] == ink.marked(Style(italic=True), "selection")
    assert cells[4] == ink.marked(Style(italic=True), "selected match")
    assert cells[6] == ink.marked(Style(), "current")
    assert cells[9] is None


def test_a_mark_that_touches_a_wide_character_takes_all_of_it() -> None:
    strip = Strip([Segment("漢e\u0301字")])
    assert strip.cell_length == 5
    marked = paint_marks(strip, [Mark(1, 3, "match")], INKS["full"])
    assert [text for text, _, _ in marked] == ["漢e\u0301", "字"]


def looks(style: Style, depth: Depth) -> tuple[object, ...]:
    """What a terminal of a depth can tell of a style."""
    system = {"sixteen": ColorSystem.STANDARD, "many": ColorSystem.EIGHT_BIT}.get(
        depth, ColorSystem.TRUECOLOR
    )
    return (Strip.render_ansi(Style.combine([style]), system),)


@pytest.mark.parametrize("theme", list(builtin_palettes()))
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_marks_and_cursor_can_be_told_apart(theme: str, depth: Depth, reverse: bool) -> None:
    ink = ink_of(depth, theme)
    palette = builtin_palettes()[theme]
    paint = Paint(palette.tokens())
    plain = paint("foreground", "background") + Style(reverse=reverse)
    plain = plain if depth in ("full", "many") else ink.limited(plain)
    marked = [ink.marked(plain, look) for look in LOOKS]
    assert len({looks(style, depth) for style in (plain, *marked)}) == 5
    for style in (plain, *marked):
        strip = Strip([Segment("x", style)])
        (cursor,) = paint_cursor(strip, 0, 1, "block", ink)
        assert cursor.style is not None
        assert looks(cursor.style, depth) != looks(style, depth)
    if depth == "none":
        assert all(it.color is None and it.bgcolor is None for it in (*marked, ink.mode()))


@pytest.mark.parametrize("theme", list(builtin_palettes()))
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("under", ["x", " "])
def test_cursor_shapes_can_be_told_apart(theme: str, depth: Depth, under: str) -> None:
    ink = ink_of(depth, theme)
    plain = Paint(builtin_palettes()[theme].tokens())("foreground", "background")
    plain = plain if depth in ("full", "many") else ink.limited(plain)
    drawn: list[tuple[object, ...]] = [(under, looks(plain, depth))]
    for look in CURSORS:
        (segment,) = paint_cursor(Strip([Segment(under, plain)]), 0, 1, look, ink)
        assert segment.style is not None
        drawn.append((segment.text, looks(segment.style, depth)))
    exact = depth in ("full", "many") and theme != "cloche-ansi"
    # with few colours a bar and an underline on a character are the same bold underline
    assert len(set(drawn)) == (5 if exact or under == " " else 4)


def test_a_cursor_without_the_keys_is_hollow() -> None:
    assert look_of("block", has_keys=False) == "hollow"
    assert look_of("bar", has_keys=True) == "bar"


def test_a_wide_cursor_covers_both_cells() -> None:
    (before, under, after) = paint_cursor(Strip([Segment("a漢b")]), 1, 2, "block", INKS["full"])
    assert (before.text, under.text, after.text) == ("a", "漢", "b")
    assert under.style == Style(reverse=True)


# -- few colours ----------------------------------------------------------------------------------


def test_text_stays_readable_in_sixteen_colours() -> None:
    grey_on_black = Style(color=Color.from_rgb(40, 40, 44), bgcolor=Color.from_rgb(16, 18, 22))
    number = ColorSystem.STANDARD
    assert grey_on_black.color is not None
    assert grey_on_black.bgcolor is not None
    nearest = grey_on_black.bgcolor.downgrade(number).number
    assert grey_on_black.color.downgrade(number).number == nearest
    mended = INKS["sixteen"].limited(grey_on_black)
    assert mended.color is not None
    assert mended.color.downgrade(number).number != nearest
    hidden = Style(color=Color.from_rgb(9, 9, 9), bgcolor=Color.from_rgb(9, 9, 9))
    assert INKS["sixteen"].limited(hidden) == hidden, "what the guest hides stays hidden"
    clear = Style(color=Color.from_ansi(15), bgcolor=Color.from_rgb(16, 18, 22), bold=True)
    assert INKS["sixteen"].limited(clear) == clear


@pytest.mark.parametrize(
    ("style", "dark", "reverse"),
    [
        ("#dddddd on #101010", True, False),
        ("#101010 on #dddddd", True, True),
        ("#101010 on #dddddd", False, False),
        ("#dddddd on #101010", False, True),
        ("#101010 on #dddddd reverse", True, False),
        ("on #00ffff", True, True),
        ("on #000080", True, False),
        ("#ff0000", True, False),
        ("#808080 on #808080", True, False),
    ],
)
def test_bars_are_seen_without_colours(style: str, dark: bool, reverse: bool) -> None:
    ink = Ink(Paint({}), "none", dark=dark)
    limited = ink.limited(Style.parse(style) + Style(bold=True, link="https://a.example/"))
    assert bool(limited.reverse) is reverse
    assert (limited.color, limited.bgcolor, limited.bold) == (None, None, True)
    assert limited.link == "https://a.example/"


def test_made_up_styles_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.terminal_draw_ink.MAX_STYLES", 10)
    ink = ink_of("none")
    for red in range(25):
        assert ink.limited(Style(color=Color.from_rgb(red, 0, 0))).color is None
    assert len(ink._limited) <= 10  # pyright: ignore[reportPrivateUsage]
