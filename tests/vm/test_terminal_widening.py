"""Widening a terminal that holds links: the engine could end there, so it goes on in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.doubles.engines import engine

if TYPE_CHECKING:
    from vm.terminal.ghostty_engine import GhosttyEngine


def with_links() -> GhosttyEngine:
    terminal = engine(40, 10)
    link = "\x1b]8;;https://a.example/{0}\x1b\\line {0}\x1b]8;;\x1b\\\r\n"
    terminal.feed("".join(link.format(number) for number in range(500)).encode())
    return terminal


def test_a_terminal_with_links_is_the_same_after_it_was_widened() -> None:
    terminal = with_links()
    terminal.feed(b"\x1b]2;title\a\x1b[>5u\x1b[?1h\x1b[?2004h\x1b[3;7H\x1b7")
    terminal.take_happenings()
    terminal.scroll(-100)
    before, modes = terminal.text(scrollback=True), terminal.modes()
    page = terminal.frame(full=True)
    terminal.resize(60, 10)
    after = terminal.frame()
    assert (terminal.text(scrollback=True), terminal.modes()) == (before, modes)
    assert [row.text.rstrip() for row in after.rows.values()] == [
        row.text.rstrip() for row in page.rows.values()
    ]
    assert after.rows[0].links
    terminal.feed(b"\x1b[6n\x1b[?u\a\x1b]2;other\a\x1b]11;?\a\x1b[1;1H\x1b8x")
    assert terminal.take_replies().startswith(b"\x1b[3;7R\x1b[?5u\x1b]11;rgb:")
    happened = terminal.take_happenings()
    assert (happened.bell, happened.title) == (True, "other")
    terminal.scroll_to_end()
    assert terminal.frame().rows[2].text[6] == "x"


def test_the_newest_output_is_followed_after_that() -> None:
    terminal = with_links()
    terminal.resize(60, 10)
    assert terminal.scrollback().at_end
    terminal.feed(b"newer\r\n" * 30)
    assert terminal.scrollback().at_end
    assert terminal.frame(full=True).rows[0].text.startswith("newer")


def test_what_was_selected_is_so_no_more_and_copy_mode_goes_on() -> None:
    terminal = with_links()
    terminal.copy_mode(True)
    terminal.resize(60, 10)
    assert terminal.view.copying
    terminal.copy_mode(False)
    assert not terminal.view.selected
    terminal.close()


def test_a_link_that_is_cut_between_two_pieces_is_seen() -> None:
    terminal = engine(40, 10)
    for byte in b"\x1b]8;;https://a.example/\x1b\\x":
        terminal.feed(bytes([byte]))
    assert terminal._has_links  # pyright: ignore[reportPrivateUsage]
