from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App, ComposeResult

from tests.doubles.pilots import settle
from themes.glyphs import UNICODE
from widgets.cells import two_sided
from widgets.file_list import FileList, FileRow
from widgets.key_bar import Hint, KeyBar
from widgets.line_list import LineList
from widgets.notice import NoticeLine, NoticeValue
from widgets.session_rail import SessionRow, SessionStrip

if TYPE_CHECKING:
    from textual.message import Message
    from textual.strip import Strip
    from textual.widget import Widget


class Words(LineList[str]):
    """Words; those in capitals are headings of two lines."""

    def item_key(self, item: str) -> str | None:
        """Return the word."""
        return None if item.isupper() else item

    def item_height(self, item: str) -> int:
        """Give headings two lines."""
        return 2 if item.isupper() else 1

    def draw_item(self, item: str, line: int, width: int, *, selected: bool) -> Strip:
        """Draw the word."""
        style = self.paint("accent" if selected else "foreground")
        return two_sided([(item, style)], [], width, style)


class Host(App[None]):
    """Shows one widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget
        self.told: list[Message] = []

    def compose(self) -> ComposeResult:
        """Yield the widget."""
        yield self.widget

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        """Keep it."""
        self.told.append(message)

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        """Keep it."""
        self.told.append(message)

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        """Keep it."""
        self.told.append(message)


WORDS = ["FRUIT", "apple", "pear", "NUTS", "hazel", "walnut", *(f"w{n}" for n in range(40))]


async def test_headings_are_skipped_and_the_ends_hold() -> None:
    words = Words(glyphs=UNICODE)
    app = Host(words)
    async with app.run_test(size=(30, 10)) as pilot:
        words.set_items(WORDS)
        words.focus()
        await settle(pilot)
        assert words.current_key == "apple"
        await pilot.press("j", "j")
        assert words.current_key == "hazel"
        await pilot.press("k", "k", "k", "k")
        assert words.current_key == "apple"
        await pilot.press("G")
        assert words.current_key == "w39"
        assert words.scroll_offset.y == words.row_count - 10
        await pilot.press("down", "pageup")
        assert words.current_key == "w30"
        await pilot.press("g", "pagedown", "enter")
        await settle(pilot)
        assert isinstance(app.told[-1], LineList.Chosen)
        assert isinstance(app.told[0], LineList.Moved)


async def test_the_cursor_stays_on_its_item_when_the_list_changes() -> None:
    words = Words(glyphs=UNICODE)
    async with Host(words).run_test(size=(30, 10)) as pilot:
        words.set_items(WORDS)
        words.select("walnut")
        words.set_items(["new", *WORDS])
        assert words.current_key == "walnut"
        words.set_items(["a", "b"])
        assert words.current_key in ("a", "b")
        words.set_items([])
        assert words.current_key is None
        words.focus()
        await pilot.press("j", "k", "g", "G", "pagedown", "pageup", "enter")


async def test_a_click_selects_and_a_second_one_opens() -> None:
    words = Words(glyphs=UNICODE)
    app = Host(words)
    async with app.run_test(size=(30, 10)) as pilot:
        words.set_items(WORDS)
        await pilot.click(Words, offset=(2, 3))
        assert words.current_key == "pear"
        await pilot.click(Words, offset=(2, 0))
        assert words.current_key == "pear"
        await pilot.double_click(Words, offset=(2, 2))
        await settle(pilot)
        assert any(isinstance(told, LineList.Chosen) for told in app.told)


async def test_counts_of_files_line_up_right() -> None:
    files = FileList(glyphs=UNICODE)
    async with Host(files).run_test(size=(40, 10)):
        files.set_items(
            [
                FileRow("a", "src/a.py", "open", added=5, removed=120),
                FileRow("b", "src/b.py", "accepted", added=1234),
                FileRow("c", "logo.png", "mixed", binary=True, risky=True),
            ]
        )
        first, second, third = (files.row_strip(row).text for row in range(3))
        assert first.endswith("    +5 −120 ")
        assert second.endswith(" +1234      ")
        assert third.endswith("bin ")
        assert "!" in third


async def test_the_key_line_keeps_help_and_tells_clicks() -> None:
    bar = KeyBar(glyphs=UNICODE)
    app = Host(bar)
    async with app.run_test(size=(30, 5)) as pilot:
        hints = [Hint(key, f"do {key}", f"do_{key}") for key in "abcdefgh"]
        bar.show(hints, Hint("?", "help", "help"))
        await settle(pilot)
        text = bar.row_strip(0).text
        assert text.rstrip().endswith("? help")
        assert "do a" in text
        assert "do h" not in text
        await pilot.click(KeyBar, offset=(2, 0))
        await pilot.click(KeyBar, offset=(27, 0))
        await settle(pilot)
        actions = [told.action for told in app.told if isinstance(told, KeyBar.Pressed)]
        assert actions == ["do_a", "help"]


async def test_a_long_notice_wraps_and_shows_its_fix() -> None:
    notice = NoticeLine(glyphs=UNICODE)
    async with Host(notice).run_test(size=(40, 10)) as pilot:
        notice.show(NoticeValue("word " * 12, "cloche doctor", "error"))
        await settle(pilot)
        lines = [notice.row_strip(row).text for row in range(notice.row_count)]
        assert len(lines) == 3
        words = " ".join(lines).split()
        assert words[-6:] == ["cloche", "doctor", "enter", "details", "esc", "close"]
        notice.show(NoticeValue("word " * 400, "cloche doctor", "error"))
        await settle(pilot)
        words = " ".join(notice.row_strip(row).text for row in range(notice.row_count)).split()
        assert notice.row_count == notice.MAX_LINES
        assert words[-8:-4] == ["…", "→", "cloche", "doctor"], "the fix is never cut off"
        notice.show(None)
        await settle(pilot)
        assert not notice.display


async def test_the_strip_keeps_the_current_session_in_sight() -> None:
    strip = SessionStrip(glyphs=UNICODE)
    app = Host(strip)
    rows = [
        SessionRow(f"s{n}", n, "working", "●", "demo", f"session-{n}", "working")
        for n in range(1, 10)
    ]
    async with app.run_test(size=(50, 5)) as pilot:
        for current in ("s1", "s5", "s9"):
            strip.show(rows, current)
            await settle(pilot)
            assert f"session-{current[1]}" in strip.row_strip(0).text
        strip.focus()
        await pilot.press("k", "g", "G", "j")
        await settle(pilot)
        keys = [told.key for told in app.told if isinstance(told, LineList.Moved)]
        assert keys == ["s8", "s1", "s9"]
