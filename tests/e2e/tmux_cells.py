"""What tmux makes of a terminal's raw bytes, cell by cell: the oracle for our own engine."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S: Final = 60.0

Color = int | tuple[int, int, int] | None
"""None: the default; 0 to 15: one of the sixteen; else red, green, blue."""

ACS: Final = dict(zip("`afgijklmnopqrstuvwxyz{|}~", "◆▒°±␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·", strict=True))
"""The line-drawing characters of a VT100, as tmux writes them between SO and SI."""

ATTRIBUTES: Final = {
    1: "bold", 2: "dim", 3: "italic", 4: "underline", 5: "blink", 7: "reverse", 8: "conceal",
    9: "strike", 53: "overline", 21: "underline",
}  # fmt: skip
ENDS: Final = {
    22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"}, 25: {"blink"}, 27: {"reverse"},
    28: {"conceal"}, 29: {"strike"}, 55: {"overline"},
}  # fmt: skip
TOKENS = re.compile(r"\x1b\[([0-9;:]*)m|([\x0e\x0f])|(.)", re.S)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is seen; the second cell of a wide character has an empty text."""

    text: str = " "
    foreground: Color = None
    background: Color = None
    attributes: frozenset[str] = frozenset()

    def seen(self) -> Cell:
        """Return the cell without what nobody can see of it."""
        drawn = self.attributes & {"underline", "reverse", "strike", "overline"}
        if self.text == " " and not drawn:
            return Cell(" ", None, self.background)
        return self


@dataclass
class _Pen:
    foreground: Color = None
    background: Color = None
    attributes: set[str] = field(default_factory=set[str])

    def take(self, parameters: str) -> None:
        words = iter([part.split(":") for part in parameters.split(";")])
        for group in words:
            code = int(group[0] or 0)
            if code in (38, 48, 58):
                self._color(code, [int(x or 0) for x in group[1:]] or _rest(words))
            else:
                self._plain(code, group)

    def _plain(self, code: int, group: list[str]) -> None:
        if code == 0:
            self.foreground, self.background, self.attributes = None, None, set()
        elif code == 4 and group[1:] == ["0"]:
            self.attributes.discard("underline")
        elif group == ["5", "3"]:  # how tmux up to 3.3 writes 53
            self.attributes.add("overline")
        elif code in ATTRIBUTES:
            self.attributes.add(ATTRIBUTES[code])
        elif code in ENDS:
            self.attributes -= ENDS[code]
        elif code == 39:
            self.foreground = None
        elif code == 49:
            self.background = None
        elif 30 <= code <= 37 or 90 <= code <= 97:
            self.foreground = code - 30 if code < 90 else code - 82
        elif 40 <= code <= 47 or 100 <= code <= 107:
            self.background = code - 40 if code < 100 else code - 92
        elif code != 59:
            raise AssertionError(f"tmux printed SGR {code}")

    def _color(self, code: int, numbers: list[int]) -> None:
        value: Color
        if numbers[0] == 5:
            value = from_256(numbers[1])
        else:
            red, green, blue = numbers[-3:]
            value = red, green, blue
        if code == 38:
            self.foreground = value
        elif code == 48:
            self.background = value

    def cell(self, text: str) -> Cell:
        return Cell(text, self.foreground, self.background, frozenset(self.attributes))


def _rest(words: Iterator[list[str]]) -> list[int]:
    """Return what follows 38 or 48 where it is written with semicolons."""
    kind = int(next(words)[0])
    return [kind, *(int(next(words)[0]) for _ in range(1 if kind == 5 else 3))]


def from_256(number: int) -> Color:
    """Return a colour of the 256: one of the sixteen, of the 6x6x6 cube, or of the greys."""
    if number < 16:
        return number
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    cube = number - 16
    return steps[cube // 36], steps[cube // 6 % 6], steps[cube % 6]


def parse_page(text: str, columns: int, rows: int) -> list[list[Cell]]:
    """Return the cells of what `capture-pane -e` printed; a row may be short of cells at its end.

    Attributes go on from one line to the next.
    """
    pen = _Pen()
    return [_parse_line(line, columns, pen) for line in text.split("\n")[:rows]]


def _parse_line(line: str, columns: int, pen: _Pen) -> list[Cell]:
    cells, drawing = list[Cell](), False
    tokens: list[tuple[str, str, str]] = TOKENS.findall(line)
    for parameters, shift, character in tokens:
        if shift:
            drawing = shift == "\x0e"
        elif not character:
            pen.take(parameters)
        elif cell_len(character) == 0:
            last = max(i for i, cell in enumerate(cells) if cell.text)
            cells[last] = pen.cell(cells[last].text + character)
        else:
            text: str = ACS.get(character, character) if drawing else character
            cells += [pen.cell(text), *[pen.cell("")] * (cell_len(text) - 1)]
    assert len(cells) <= columns, (len(cells), line)
    return cells


def _joined(first: list[Cell], whole: list[Cell], columns: int) -> list[Cell]:
    """Return a row of which `first` lacks erased cells at the end, and `whole` the last cell."""
    if len(first) == columns:
        return first
    row = [*first, *whole[len(first) : columns - 1]]
    return [*row, Cell(" ", None, row[-1].background)]


@dataclass(frozen=True, slots=True)
class Shown:
    """A page and where its cursor is (None: hidden)."""

    rows: list[list[Cell]]
    cursor: tuple[int, int] | None

    def differences(self, other: Shown) -> list[str]:
        """Say which cells look different."""
        found = [
            f"{x},{y}: {mine} / {theirs}"
            for y, rows in enumerate(zip(self.rows, other.rows, strict=True))
            for x, (mine, theirs) in enumerate(zip(*rows, strict=True))
            if mine.seen() != theirs.seen()
        ]
        if self.cursor != other.cursor:
            found.append(f"cursor: {self.cursor} / {other.cursor}")
        return found


def _titled(title: str) -> bytes:
    return b"\x1b]2;%s\x1b\\" % title.encode()


CURSOR: Final = "#{cursor_x} #{cursor_y} #{cursor_flag}"


class Replay:
    """A tmux of its own that prints what it is given; a context manager that ends it."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self._name = f"cloche-replay-{uuid4().hex[:8]}"
        self._folder, self.columns, self.rows = folder, columns, rows
        self._number = 0
        self._file = folder / self._name

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        done = subprocess.run(
            ["tmux", "-u", "-f", os.devnull, "-L", self._name, *words],
            env=environment, check=check, capture_output=True, text=True, timeout=20,
        )  # fmt: skip
        return done.stdout

    def show(self, data: bytes) -> Shown:
        """Return what a fresh terminal of tmux shows after `data`."""
        self._number += 1
        mark = f"end-{self._number}"
        self._file.write_bytes(data + _titled(f"{mark} "))
        # tmux prints no erased cells at a row's end unless something stands behind them
        ends = b"".join(b"\x1b[%d;%dHX" % (y, self.columns) for y in range(1, self.rows + 1))
        after = self._file.with_suffix(".ends")
        after.write_bytes(b"\x1b[?6l\x1b[4l\x1b(B\x0f\x1b[m" + ends + _titled(f"{mark}-ends "))
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        script = f"stty raw -echo; cat {self._file}; read -r x; cat {after}; exec cat >{os.devnull}"
        self._tmux("new-session", "-d", "-s", mark, *size, "--", "sh", "-c", script)
        try:
            self._until_titled(mark)
            first = self._captured(mark)
            place = self._tmux("display-message", "-t", mark, "-p", CURSOR).split()
            self._tmux("send-keys", "-t", mark, "-H", "0a")
            self._until_titled(mark, "-ends")
            whole = self._captured(mark)
        finally:
            self._tmux("kill-session", "-t", mark, check=False)
        rows = [_joined(*pair, self.columns) for pair in zip(first, whole, strict=True)]
        cursor = (int(place[0]), int(place[1])) if place[2] == "1" else None
        return Shown(rows, cursor)

    def _captured(self, mark: str) -> list[list[Cell]]:
        text = self._tmux("capture-pane", "-t", mark, "-e", "-N", "-p")
        return parse_page(text, self.columns, self.rows)

    def _until_titled(self, mark: str, suffix: str = "") -> None:
        deadline = time.monotonic() + DEADLINE_S
        wanted = f"{mark}{suffix} {self.columns}x{self.rows}"
        while True:
            found = self._tmux(
                "display-message", "-t", mark, "-p",
                "#{pane_title}#{pane_width}x#{pane_height}",
            ).strip()  # fmt: skip
            if found == wanted:
                return
            assert time.monotonic() < deadline, (found, wanted)
