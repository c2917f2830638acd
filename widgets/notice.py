"""One line above the keys: what went wrong and the fix, or what was just done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.message import Message

from widgets.cells import Piece, cells, total, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from textual.strip import Strip

    from themes.glyphs import Glyphs

Level = Literal["info", "done", "warning", "error"]
TOKENS = {"info": "accent", "done": "success", "warning": "warning", "error": "error"}


@dataclass(frozen=True, slots=True)
class NoticeValue:
    """What is said: a sentence and, for what went wrong, the exact next step."""

    text: str
    hint: str = ""
    level: Level = "info"
    whole: bool = False
    """Take up to half of the screen rather than leave out the end of the text."""
    is_question: bool = False
    """The next key answers it, so none closes it."""
    of_agent: bool = False
    """An agent brought it about, at a moment of its choice."""


class NoticeLine(LineView):
    """Not there while there is nothing to say; wraps into as many lines as the text needs."""

    DEFAULT_CSS = """
    NoticeLine { height: auto; max-height: 50%; width: 1fr; background: $panel; display: none; }
    NoticeLine.-shown { display: block; }
    """
    MAX_LINES = 4

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.value: NoticeValue | None = None
        self.reach = ""
        """What is pressed before a key of ours, such as `ctrl+g`, while an agent has the keys."""
        self._lines: list[list[Piece]] = []

    @dataclass
    class Opened(Message):
        """The user clicked the line."""

        value: NoticeValue

    def on_click(self) -> None:
        """Tell that somebody wants to know more."""
        if self.value is not None:
            self.post_message(self.Opened(self.value))

    def show(self, value: NoticeValue | None) -> None:
        """Say something, or nothing."""
        self.value = value
        self.set_class(value is not None, "-shown")
        self._lay_out(self.host.size.width)

    def reach_by(self, keys: str) -> None:
        """Say that our keys are reached by others before them, or at once (an empty text)."""
        if keys != self.reach:
            self.reach = keys
            self._lay_out(self.host.size.width)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        super().on_resize()
        self._lay_out(self.size.width)

    def _lay_out(self, width: int) -> None:
        self._lines = []
        if self.value is not None:
            self._lines = self._wrapped(self.value, max(10, width - 2))
        self.set_row_count(len(self._lines))
        self.styles.height = max(1, len(self._lines))
        self.redraw()

    def _wrapped(self, value: NoticeValue, width: int) -> list[list[Piece]]:
        """Break the sentence and its fix into lines; of too long a sentence the end is left out."""
        most = self._most_lines(value)
        text = value.text[: most * width]
        words, whole = broken(text.split(), width), text == value.text
        while True:
            shown = words if whole else [*words, self.glyphs.ellipsis]
            lines = wrap_words([*self._words(value, shown), *self._room()], width)
            if len(lines) <= most or not words:
                return lines[:most]
            words, whole = words[:-1], False

    def _most_lines(self, value: NoticeValue) -> int:
        if not value.whole:
            return self.MAX_LINES
        return max(self.MAX_LINES, self.host.size.height // 2)

    def _words(self, value: NoticeValue, text: list[str]) -> list[Piece]:
        paint, glyphs = self.paint, self.glyphs
        token = TOKENS[value.level]
        sign = {"done": glyphs.done, "info": glyphs.dot}.get(value.level, glyphs.stalled)
        words: list[Piece] = [(sign, paint(token, "raised", "b"))]
        words += [(word, paint("foreground", "raised")) for word in text]
        if value.hint:
            words.append((glyphs.rename, paint(token, "raised", "b")))
            words += [(word, paint(token, "raised")) for word in value.hint.split()]
        return words

    def _room(self) -> list[Piece]:
        """Return a blank in place of the keys, which stand flush right in the last line."""
        length = total(self._keys())
        return [(" " * (length - 1), self.paint(on="raised"))] if length else []

    def _keys(self) -> list[Piece]:
        """Return what can be pressed at what stays until it is closed."""
        value = self.value
        if value is None or value.is_question or value.level not in ("error", "warning"):
            return []
        key, label = self.paint("accent", "raised", "b"), self.paint("muted", "raised")
        if self.reach:
            return [(f"  {self.reach} esc", key), (" close ", label)]
        close: list[Piece] = [("esc", key), (" close ", label)]
        if value.level == "warning":
            return [("  ", label), *close]
        return [("  enter", key), (" details  ", label), *close]

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw one of the lines."""
        blank = self.paint(on="raised")
        right = self._keys() if row == len(self._lines) - 1 else []
        words = self._lines[row][:-1] if right else self._lines[row]
        left = [(" ", blank), *words]
        return two_sided(left, right, width, blank, self.glyphs.ellipsis)

    def blank_style_token(self) -> str:
        """Use the line's own background."""
        return "raised"


def broken(words: list[str], width: int) -> list[str]:
    """Return words of at most `width` characters: a long one is broken into several."""
    return [word[at : at + width] for word in words for at in range(0, len(word), width)]


def wrap_words(words: list[Piece], width: int) -> list[list[Piece]]:
    """Break pieces (one word each) into lines of at most `width` cells."""
    lines: list[list[Piece]] = [[]]
    used = 0
    for text, style in words:
        length = cells(text)
        if used and used + 1 + length > width:
            lines.append([])
            used = 0
        if used:
            lines[-1].append((" ", style))
            used += 1
        lines[-1].append((text, style))
        used += length
    return lines
