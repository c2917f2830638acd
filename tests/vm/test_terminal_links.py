"""Links (OSC 8) of the real engine: only addresses of the web, no more than a frame holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.doubles.engines import engine, lines
from vm.terminal import ghostty_links
from vm.terminal.screen import MAX_LINK, Link

if TYPE_CHECKING:
    from vm.terminal.ghostty_engine import GhosttyEngine


def links(terminal: GhosttyEngine, y: int = 0) -> tuple[Link, ...]:
    return terminal.frame(full=True).rows[y].links


def osc8(uri: str, text: str) -> bytes:
    return f"\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\".encode()


def test_cells_with_a_link_lead_to_its_address() -> None:
    terminal = engine(40, 6)
    terminal.feed(b"see " + osc8("https://a.example/", "here") + osc8("http://b.example", "漢x"))
    assert links(terminal) == (
        Link(4, 8, "https://a.example/"),
        Link(8, 11, "http://b.example"),
    )
    assert links(terminal, 1) == ()


@pytest.mark.parametrize(
    "uri",
    ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "ssh://x", "https:",
     "HTTPS//x", "http://é", "http://" + "x" * MAX_LINK, "x-cloche://y", "mailto:a@b"],
)  # fmt: skip
def test_other_addresses_are_no_links(uri: str) -> None:
    terminal = engine(40, 6)
    terminal.feed(osc8(uri, "click me"))
    assert lines(terminal)[0] == "click me"
    assert links(terminal) == ()


def test_links_are_told_when_only_they_change_and_in_copy_mode_too() -> None:
    terminal = engine(40, 6)
    terminal.feed(osc8("http://a", "text"))
    terminal.frame()
    terminal.feed(b"\r" + osc8("http://b", "text"))
    assert terminal.frame().rows[0].links == (Link(0, 4, "http://b"),)
    terminal.copy_mode(True)
    terminal.feed(b"\x1bc")
    assert links(terminal) == (Link(0, 4, "http://b"),)


def test_asking_for_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghostty_links, "CELLS_A_FRAME", 50)
    terminal = engine(40, 6)
    terminal.feed(b"".join(osc8("http://a", "x" * 39) + b"\r\n" for _ in range(5)))
    found_links = [row.links for row in terminal.frame(full=True).rows.values()]
    assert sum(link.end - link.start for row in found_links for link in row) == 50
