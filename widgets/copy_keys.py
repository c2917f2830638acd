"""What keys and mouse do in a terminal besides typing, as data.

The view looks keys up here, and the help screen and the guide's page are made from the same rows;
so no key can do something that nobody is told. Keys are named as Textual names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from widgets.terminal_feed import Motion, SelectionShape

CopyAction = Literal["move", "mark", "copy", "search", "find", "count", "escape", "leave"]
Direction = Literal["forwards", "backwards"]
SearchAction = Literal[
    "keep", "cancel", "erase", "erase_next", "erase_word", "erase_all",
    "left", "right", "start", "end", "next", "previous",
]  # fmt: skip
PrefixAction = Literal["enter", "page_up", "page_down", "search", "paste"]


@dataclass(frozen=True, slots=True)
class CopyKey:
    """Keys of copy mode that do the same."""

    keys: tuple[str, ...]
    action: CopyAction
    what: str
    """What it does, in a few words."""
    motion: Motion | None = None
    shape: SelectionShape | None = None
    direction: Direction = "forwards"


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """A key that, after the prefix, the terminal itself acts on."""

    keys: tuple[str, ...]
    action: PrefixAction
    what: str


@dataclass(frozen=True, slots=True)
class SearchKey:
    """Keys of the line in which a search is typed."""

    keys: tuple[str, ...]
    action: SearchAction
    what: str


@dataclass(frozen=True, slots=True)
class MouseGesture:
    """Something to do with the mouse, and what it does where the guest does not track it."""

    gesture: str
    what: str


def _move(keys: str, motion: Motion, what: str) -> CopyKey:
    return CopyKey(tuple(keys.split()), "move", what, motion=motion)


def _mark(keys: str, shape: SelectionShape, what: str) -> CopyKey:
    return CopyKey(tuple(keys.split()), "mark", what, shape=shape)


COPY_KEYS: tuple[CopyKey, ...] = (
    _move("h left", "left", "a character left"),
    _move("j down", "down", "a line down"),
    _move("k up", "up", "a line up"),
    _move("l right", "right", "a character right"),
    _move("w", "word_next", "to the next word"),
    _move("b", "word_back", "a word back"),
    _move("e", "word_end", "to the end of the word"),
    _move("0 home", "line_start", "to the start of the line"),
    _move("circumflex_accent", "line_text", "to the first text of the line"),
    _move("dollar_sign end", "line_end", "to the end of the line"),
    _move("left_curly_bracket", "paragraph_back", "a paragraph back"),
    _move("right_curly_bracket", "paragraph_next", "to the next paragraph"),
    _move("ctrl+u", "half_up", "half a page up"),
    _move("ctrl+d", "half_down", "half a page down"),
    _move("ctrl+b pageup", "page_up", "a page up"),
    _move("ctrl+f pagedown", "page_down", "a page down"),
    _move("g", "top", "to the oldest line"),
    _move("G", "bottom", "to the newest line"),
    _move("H", "screen_top", "to the top of the page"),
    _move("M", "screen_middle", "to the middle of the page"),
    _move("L", "screen_bottom", "to the bottom of the page"),
    _move("left_square_bracket", "prompt_back", "to the prompt before"),
    _move("right_square_bracket", "prompt_next", "to the next prompt"),
    _move("percent_sign", "bracket", "to the matching bracket"),
    CopyKey(tuple("123456789"), "count", "a number repeats the motion or search after it"),
    _mark("v space", "cells", "select characters"),
    _mark("V", "lines", "select lines"),
    _mark("R ctrl+v", "block", "select a rectangle"),
    _mark("o", "swap", "go to the other end of the selection"),
    CopyKey(("y", "enter"), "copy", "copy what is selected, and leave"),
    CopyKey(("slash",), "search", "search down"),
    CopyKey(("question_mark",), "search", "search up", direction="backwards"),
    CopyKey(("n",), "find", "to the next match, in the direction of the search"),
    CopyKey(("N",), "find", "to the match before it", direction="backwards"),
    CopyKey(("escape",), "escape", "take the selection away, else leave"),
    CopyKey(("q",), "leave", "leave copy mode"),
)
"""Copy mode: the page stands still and the keys are the view's. Other keys do nothing there."""

COPY_KEY: dict[str, CopyKey] = {key: row for row in COPY_KEYS for key in row.keys}
"""The row of each key."""

PREFIX_KEYS: tuple[PrefixKey, ...] = (
    PrefixKey(("left_square_bracket",), "enter", "copy mode: move, select, search, copy"),
    PrefixKey(("pageup",), "page_up", "copy mode, and a page up"),
    PrefixKey(("pagedown",), "page_down", "copy mode, and a page down"),
    PrefixKey(("f",), "search", "search up in what the terminal showed"),
    PrefixKey(("right_square_bracket",), "paste", "paste what was copied last"),
)
"""What the terminal that has the keys does after the prefix; any other key is the app's."""

PREFIX_KEY: dict[str, PrefixKey] = {key: row for row in PREFIX_KEYS for key in row.keys}
"""The row of each key."""

SEARCH_KEYS: tuple[SearchKey, ...] = (
    SearchKey(("enter",), "keep", "keep the matches, n and N step; empty: search the last text"),
    SearchKey(("escape", "ctrl+c"), "cancel", "end the search"),
    SearchKey(("down", "ctrl+n"), "next", "to the match below"),
    SearchKey(("up", "ctrl+p"), "previous", "to the match above"),
    SearchKey(("backspace", "ctrl+h"), "erase", "erase a character; in an empty line: close it"),
    SearchKey(("delete", "ctrl+d"), "erase_next", "erase the character under the cursor"),
    SearchKey(("ctrl+w", "alt+backspace"), "erase_word", "erase a word"),
    SearchKey(("ctrl+u",), "erase_all", "erase up to the start"),
    SearchKey(("left", "ctrl+b"), "left", "a character left"),
    SearchKey(("right", "ctrl+f"), "right", "a character right"),
    SearchKey(("home", "ctrl+a"), "start", "to the start"),
    SearchKey(("end", "ctrl+e"), "end", "to the end"),
)
"""The line in which a search is typed; other keys type."""

SEARCH_KEY: dict[str, SearchKey] = {key: row for row in SEARCH_KEYS for key in row.keys}
"""The row of each key."""

MOUSE_GESTURES: tuple[MouseGesture, ...] = (
    MouseGesture("click", "give the terminal the keys, take the selection away"),
    MouseGesture("drag", "select characters and copy them; past an edge the page moves"),
    MouseGesture("alt+drag", "select a rectangle and copy it"),
    MouseGesture("double click", "select a word and copy it"),
    MouseGesture("triple click", "select a line and copy it"),
    MouseGesture("shift+drag", "select also where the agent itself uses the mouse"),
    MouseGesture("middle click", "paste what was copied last"),
    MouseGesture("ctrl+click", "show the address of a link"),
    MouseGesture("wheel", "move through what the terminal showed"),
    MouseGesture("shift+wheel", "the same where the agent itself uses the mouse"),
)
"""The mouse on a terminal. An agent that uses the mouse gets all of it, except with shift."""
