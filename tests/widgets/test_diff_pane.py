from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from app.protocol import FileChange
from app.services.documents import build
from tests.doubles.pilots import settle
from themes.glyphs import ASCII, UNICODE, Glyphs
from widgets.cells import cells
from widgets.diff_heights import BLOCK
from widgets.diff_pane import DiffPane

if TYPE_CHECKING:
    import pytest
    from rich.style import Style

    from widgets.diff_model import DiffDocument, Layout

LAYOUTS: tuple[Layout, Layout] = ("split", "unified")
LINE = st.text(st.sampled_from("ab \t世é(){}\x1b\u202e"), max_size=30)
FILE = st.lists(LINE, max_size=25).map(lambda lines: "\n".join(lines).encode())


def document(base: bytes, agent: bytes) -> DiffDocument:
    """Return the document of a changed file."""
    change = FileChange("f.txt", "modified", mode="100644", old_mode="100644", base="b", agent="a")
    return build(change, base, agent).document


class Host(App[None]):
    """Shows one pane."""

    def __init__(self, shown: DiffDocument, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.shown = shown
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield the pane."""
        yield DiffPane(glyphs=self.glyphs)

    def on_mount(self) -> None:
        """Show the document."""
        self.pane.show(self.shown)

    @property
    def pane(self) -> DiffPane:
        """The pane."""
        return self.query_one(DiffPane)


def texts_of(pane: DiffPane) -> list[str]:
    """Return every line that there is to scroll through, as it is drawn."""
    return [pane.row_strip(row).text for row in range(pane.visual_rows)]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(base=FILE, agent=FILE, layout=st.sampled_from(("split", "unified")), wrap=st.booleans())
def test_every_line_has_the_width_and_nothing_hidden(
    base: bytes, agent: bytes, layout: Layout, wrap: bool
) -> None:
    async def check() -> None:
        app = Host(document(base, agent))
        async with app.run_test(size=(60, 12)) as pilot:
            await settle(pilot)
            pane = app.pane
            pane.set_layout(layout)
            pane.set_wrap(wrap)
            await settle(pilot)
            for text in texts_of(pane):
                assert cells(text) == pane.look.width
                assert not any(char in text for char in "\x1b\t\n\u202e")

    asyncio.run(check())


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(st.sampled_from(["one", "two", "three", "x" * 70]), max_size=12),
    layout=st.sampled_from(("split", "unified")),
    no_space=st.booleans(),
)
def test_each_changed_line_can_be_reached_in_every_view(
    lines: list[str], layout: Layout, no_space: bool
) -> None:
    numbered = [f"{index}:{line}" for index, line in enumerate(lines)]
    base = "\n".join(numbered[::2]).encode()
    agent = "\n".join([*numbered[1::2], "last"]).encode()

    async def check() -> None:
        app = Host(document(base, agent))
        async with app.run_test(size=(80, 12)) as pilot:
            await settle(pilot)
            app.pane.set_layout(layout)
            app.pane.set_wrap(True)
            app.pane.set_no_space(no_space)
            await settle(pilot)
            shown = "\n".join(texts_of(app.pane))
            for index in range(len(numbered)):
                assert f"{index}:" in shown
            wide = sum(line.count("x") for line in numbered)
            assert shown.count("x") == wide

    asyncio.run(check())


async def test_the_cursor_walks_and_the_hunk_follows() -> None:
    base = "\n".join(str(n) for n in range(100)).encode()
    agent = base.replace(b"\n10\n", b"\nten\n").replace(b"\n80\n", b"\neighty\n")
    app = Host(document(base, agent))
    async with app.run_test(size=(140, 20)) as pilot:
        await settle(pilot)
        pane = app.pane
        pane.focus()
        assert (pane.unit_count, pane.current_unit) == (2, 0)
        await pilot.press("G")
        assert pane.current_unit == 1
        await pilot.press("g", "j", "j", "k")
        assert (pane.cursor, pane.current_unit) == (1, 0)
        await pilot.press("pagedown", "pageup")
        pane.go_to_unit(1)
        assert pane.current_unit == 1
        top = pane.scroll_offset.y
        assert top <= pane.cursor < top + pane.size.height


async def test_a_fold_opens_by_click_and_the_overview_jumps() -> None:
    base = "\n".join(str(n) for n in range(400)).encode()
    agent = base.replace(b"\n200\n", b"\nx\n")
    app = Host(document(base, agent))
    async with app.run_test(size=(100, 20)) as pilot:
        await settle(pilot)
        pane = app.pane
        before = pane.total_rows
        await pilot.click(DiffPane, offset=(20, 0))
        assert pane.total_rows > before
        await pilot.click(DiffPane, offset=(99, 19))
        assert pane.cursor > pane.total_rows // 2


async def test_decisions_show_by_sign_as_well_as_by_colour() -> None:
    for glyphs in (UNICODE, ASCII):
        app = Host(document(b"one\n", b"two\n"), glyphs)
        async with app.run_test(size=(80, 10)) as pilot:
            await settle(pilot)
            seen: set[str] = set()
            for decision in ("open", "accepted", "rejected", "mixed"):
                app.pane.set_decisions([decision])
                await settle(pilot)
                seen.add(app.pane.row_strip(0).text[1])
            assert len(seen) == 4


async def test_without_colours_marks_are_underlined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(document(b"return one thing\n", b"return two thing\n"))
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        strip = app.pane.row_strip(0)
        assert any(segment.style and segment.style.underline for segment in strip)
        for segment in strip:
            assert is_grey(segment.style)


def is_grey(style: Style | None) -> bool:
    """Tell whether a style has no hue."""
    colors = [] if style is None else [style.color, style.bgcolor]
    triplets = [color.triplet for color in colors if color is not None and color.triplet]
    return all(max(t) - min(t) <= 1 for t in triplets)


async def test_a_long_line_is_cut_with_a_mark_and_scrolls() -> None:
    app = Host(document(b"x\n", b"0123456789" * 30 + b"\n"))
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        pane = app.pane
        pane.set_layout("unified")
        await settle(pilot)
        assert pane.row_strip(1).text.endswith("›")
        pane.action_side(1)
        assert "89012" in pane.row_strip(1).text[:20]


async def test_a_long_file_is_measured_only_where_it_shows() -> None:
    text = "".join(f"{n} " + "x" * (200 if n % 7 == 0 else 10) + "\n" for n in range(30_000))
    app = Host(document(b"", text.encode()))
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        pane = app.pane
        measured: list[int] = []
        measure = pane.measure

        def counted(start: int, stop: int) -> list[int]:
            measured.append(stop - start)
            return measure(start, stop)

        pane.measure = counted  # type: ignore[method-assign]  # it counts and passes on
        pane.set_wrap(True)
        await settle(pilot)
        assert sum(measured) <= 2 * BLOCK
        pane.go_to(20_000)
        await settle(pilot)
        assert sum(measured) <= 5 * BLOCK
        shown = pane.row_strip(pane.top_of(20_000)).text
        assert "20000 x" in shown


async def test_rolling_up_in_a_wrapped_file_moves_by_as_many_lines_as_asked() -> None:
    text = "".join(f"{n} " + "x" * (200 if n % 3 == 0 else 10) + "\n" for n in range(6_000))
    app = Host(document(b"", text.encode()))
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        pane = app.pane
        pane.set_wrap(True)
        pane.go_to(3 * BLOCK + 20)
        await settle(pilot)

        def shown() -> list[str]:
            top = pane.scroll_offset.y
            return [pane.row_strip(top + y).text for y in range(10)]

        for _ in range(30):
            before = shown()
            pane.roll(-3)
            await pilot.pause()
            assert shown()[3:] == before[:7]


async def scrolling_cost(count: int) -> float:
    """CPU seconds of scrolling by three lines in a file of so many."""
    base = "".join(f"    value_{n} = compute(items[{n}])\n" for n in range(count))
    agent = base.replace("compute(items[25", "derive(items[25")
    app = Host(document(base.encode(), agent.encode()))
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        pane = app.pane
        pane.action_unfold_all()
        await settle(pilot)
        spent: list[float] = []
        for _ in range(40):
            began = time.process_time()
            pane.scroll_to(y=pane.scroll_offset.y + 3, animate=False)
            await pilot.pause()
            spent.append(time.process_time() - began)
        return sorted(spent)[len(spent) // 4]


async def test_scrolling_a_long_file_costs_no_more_than_a_short_one() -> None:
    short = await scrolling_cost(400)
    assert await scrolling_cost(50_000) < 4 * short


async def test_a_long_file_is_unfolded_and_wrapped_in_a_moment() -> None:
    base = "".join(f"value {n}\n" for n in range(50_000))
    began = time.process_time()
    shown = document(base.encode(), base.replace("value 9", "other 9").encode())
    compared = time.process_time() - began
    app = Host(shown)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        began = time.process_time()
        app.pane.action_unfold_all()
        app.pane.set_wrap(True)
        assert time.process_time() - began < 4 * compared
        assert app.pane.total_rows >= 50_000
        app.pane.action_unfold_all()
        assert app.pane.total_rows < 50_000


def backgrounds(pane: DiffPane, row: int) -> set[str]:
    """Return the background colours of a drawn row."""
    found = {str(s.style.bgcolor.name) for s in pane.row_strip(row) if s.style and s.style.bgcolor}
    return found


async def test_changes_of_white_space_alone_can_look_like_none() -> None:
    base = b"one\nif a:\n  b\n\nlast\n"
    agent = b"one\nif a:\n    b\n\n\nlast\nmore\n"
    app = Host(document(base, agent))
    async with app.run_test(size=(100, 20)) as pilot:
        await settle(pilot)
        pane = app.pane
        pane.set_layout("unified")
        loud = [backgrounds(pane, row) for row in range(pane.total_rows)]
        pane.set_no_space(True)
        quiet = [backgrounds(pane, row) for row in range(pane.total_rows)]
        rows = pane.document.rows.rows(0, pane.total_rows) if pane.document else ()
        both = zip(rows, loud, quiet, strict=True)
        changed = [row.old_text or row.new_text or "" for row, a, b in both if a != b]
        assert {text.strip() for text in changed} == {"b", ""}
        assert len(changed) == 3


async def test_lines_that_moved_say_from_where() -> None:
    body = b"def work(items):\n    for item in items:\n        use(item, again=True)\n"
    rest = b"".join(b"line %d\n" % n for n in range(20))
    app = Host(document(body + rest, rest + body))
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        for layout in LAYOUTS:
            app.pane.set_layout(layout)
            shown = "\n".join(texts_of(app.pane))
            assert shown.count("moved from 1") == 1
            assert shown.count("moved to 21") == 1
