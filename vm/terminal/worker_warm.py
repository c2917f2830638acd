"""Runs every path of the engine once, before the sandbox closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import wire_view
from vm.terminal.ghostty_clone import CONTINUATION_BYTES
from vm.terminal.ghostty_engine import GhosttyEngine
from vm.terminal.screen import Modifier, Motion, MouseAction, MouseEvent, Shape, Unit
from vm.terminal.wire_frame import pack_frame, unpack_frame

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty

TEXT = "\x1b[1;38;2;1;2;3mé漢e\u0301\U0001f1fa\U0001f1f8\x1b[m\r\n\x1b[c\a"
LINK = "\x1b]8;;https://example.org/\x1b\\there\x1b]8;;\x1b\\ (and) more\r\n"


def warm_up(ghostty: Ghostty) -> None:
    """Run every path once, so that what loads lazily is loaded while files can still be opened.

    Codecs are the usual case: Python imports one at its first use.
    """
    engine = GhosttyEngine(ghostty, 80, 24)
    engine.feed((TEXT + LINK).encode())
    engine.take_replies()
    engine.take_happenings()
    unpack_frame(pack_frame(1, engine.frame(full=True)))
    _send(engine)
    engine.scroll(-1)
    engine.scroll_to_end()
    engine.text(scrollback=True)
    _select(engine)
    _copy(engine)
    engine.snapshot()
    engine.resize(100, 30)
    # the way of copying that is used where the engine makes no snapshot
    engine.feed(b"\x1b]0;" + b"x" * (CONTINUATION_BYTES + 1))
    _copy(engine)
    engine.close()


def _send(engine: GhosttyEngine) -> None:
    engine.feed(b"\x1b[?1003h\x1b[?1006h\x1b[?2004h\xff\xfe")
    for event in (MouseAction.PRESS, MouseAction.SCROLL_UP):
        engine.encode_wheel(MouseEvent(event, 1, 1, 1, Modifier(0)))
    engine.encode_key("ctrl+shift+a", None)
    engine.encode_paste("a\nb")


def _select(engine: GhosttyEngine) -> None:
    for unit in Unit:
        engine.select(1, 1, unit)
        engine.select_to(4, 1)
        engine.frame()
        wire_view.unpack_copied(wire_view.pack_copied(1, engine.selected_text()))
    engine.select_none()


def _copy(engine: GhosttyEngine) -> None:
    engine.copy_mode(True)
    engine.search("MORE", backwards=True)
    engine.search("more", backwards=True)
    while engine.work(1):
        pass
    for shape in Shape:
        engine.copy_mark(shape)
        engine.selected_text()
    for motion in Motion:
        engine.copy_move(motion, 2)
    engine.select(1, 1, Unit.LINE)
    engine.select_to(2, 2)
    unpack_frame(pack_frame(1, engine.frame()))
    engine.resize(90, 25)
    engine.copy_mode(False)
