"""Operations on one engine, picked at random, and what must hold after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tests.conformance.guest_noise import stream
from tests.doubles.engines import engine
from vm.terminal import wire_frame
from vm.terminal.drawable import drawable
from vm.terminal.palette import TerminalPalette
from vm.terminal.screen import (
    Modifier,
    Motion,
    MouseAction,
    MouseEvent,
    Shape,
    Unit,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from vm.terminal.ghostty_engine import GhosttyEngine
    from vm.terminal.screen import Frame, Row

Operation: TypeAlias = "Callable[[random.Random], None]"

KEYS = ("a", "enter", "up", "f5", "ctrl+c", "alt+enter", "ctrl+shift+up", "é", "escape", "home")
WORDS = ("a", "word", "漢", "x", "E", "\u200d", "", "  ", "👍", "def", "say", "no such thing")


class Player:
    """Plays operations to an engine and checks every frame of it."""

    def __init__(self, seed: random.Random, *, tiny: bool = False) -> None:
        self.tiny = tiny
        self.engine: GhosttyEngine = engine(*self._size(seed))
        self.shown: dict[int, Row] = {}
        self.number = 0
        self._operations: list[tuple[float, Operation]] = [
            (0.55, self.feed),
            (0.12, self.resize),
            (0.10, self.scroll),
            (0.03, self.read),
            (0.03, self.type),
            (0.07, self.select),
            (0.06, self.copy),
            (0.02, self.search),
            (0.01, self.color),
            (0.01, self.snapshot),
        ]

    def pick(self, seed: random.Random) -> Operation:
        """Choose an operation."""
        (chosen,) = seed.choices(
            [what for _, what in self._operations], [weight for weight, _ in self._operations]
        )
        return chosen

    def step(self, chosen: Operation, seed: random.Random) -> None:
        """Do an operation, perhaps draw."""
        chosen(seed)
        if seed.random() < 0.5:
            self.draw(self.engine.frame(full=seed.random() < 0.1))
        if seed.random() < 0.1:
            self.compare()

    def _size(self, seed: random.Random) -> tuple[int, int]:
        if self.tiny or seed.random() < 0.3:
            return seed.randrange(-1, 30), seed.randrange(-1, 9)
        return seed.randrange(20, 220), seed.randrange(5, 70)

    # -- operations --------------------------------------------------------------------------

    def feed(self, seed: random.Random) -> None:
        """Print something, at once or in pieces."""
        data = stream(seed, seed.choice((5, 100, 900, 900, 4000)))
        step = seed.choice((len(data), len(data), 7, 1)) if len(data) < 1000 else len(data)
        for at in range(0, len(data), step):
            self.engine.feed(data[at : at + step])
        assert len(self.engine.take_replies()) <= 65_536
        self.engine.take_happenings()

    def resize(self, seed: random.Random) -> None:
        """Take another size, now and then many in a row."""
        for _ in range(seed.choice((1, 1, 1, 5))):
            self.engine.resize(*self._size(seed))

    def scroll(self, seed: random.Random) -> None:
        """Move the page."""
        if seed.random() < 0.3:
            self.engine.scroll_to_end()
        else:
            self.engine.scroll(seed.choice((-1, 1, -5, 40, -1000, 1 << 30, -(1 << 30))))

    def read(self, seed: random.Random) -> None:
        """Take text out."""
        self.engine.text(scrollback=seed.random() < 0.2)
        # what an operation drew that is gone: without it, seeds that found faults play others
        columns, rows = self.engine.size
        for _ in range(2):
            seed.randrange(-3, columns + 3)
            seed.randrange(-3, rows + 3)
        seed.random()

    def type(self, seed: random.Random) -> None:
        """Press keys, paste, move the mouse."""
        columns, rows = self.engine.size
        key = seed.choice(KEYS)
        self.engine.encode_key(key, key if len(key) == 1 else None)
        self.engine.encode_paste(seed.choice(("", "a\nb", "\x1b[201~", "漢" * 500)))
        self.engine.encode_focus(seed.random() < 0.5)
        event = MouseEvent(
            seed.choice(list(MouseAction)), seed.randrange(0, columns + 5),
            seed.randrange(0, rows + 5), seed.randrange(0, 4), Modifier(seed.randrange(0, 16)),
        )  # fmt: skip
        self.engine.encode_mouse(event)
        self.engine.encode_wheel(event)

    def select(self, seed: random.Random) -> None:
        """Select by the mouse."""
        columns, rows = self.engine.size
        if seed.random() < 0.4:
            unit, block = seed.choice(list(Unit)), seed.random() < 0.2
            self.engine.select(seed.randrange(columns), seed.randrange(rows), unit, block=block)
        elif seed.random() < 0.8:
            self.engine.select_to(seed.randrange(-2, columns + 2), seed.randrange(-1, rows + 1))
        else:
            self.engine.select_none()
        self.engine.selected_text()

    def copy(self, seed: random.Random) -> None:
        """Enter, use or leave copy mode."""
        if seed.random() < 0.2:
            self.engine.copy_mode(seed.random() < 0.6)
        elif seed.random() < 0.8:
            count = seed.choice((None, 1, 2, 50, 65_535))
            self.engine.copy_move(seed.choice(list(Motion)), count)
        else:
            self.engine.copy_mark(seed.choice(list(Shape)))
            self.engine.selected_text()

    def search(self, seed: random.Random) -> None:
        """Search, go on searching."""
        if seed.random() < 0.5:
            self.engine.search(seed.choice(WORDS), backwards=seed.random() < 0.5)
        else:
            self.engine.find(backwards=seed.random() < 0.5)
        self.engine.work(0.005)

    def color(self, seed: random.Random) -> None:
        """Take other default colours."""
        level = seed.randrange(256)
        self.engine.set_palette(TerminalPalette((level, 1, 2), (3, level, 4)))

    def snapshot(self, seed: random.Random) -> None:
        """Serialise the engine, or ask for what it is."""
        if seed.random() < 0.7:
            self.engine.snapshot()
        assert self.engine.view is not None

    # -- what must hold ----------------------------------------------------------------------

    def draw(self, frame: Frame) -> None:
        """Check a frame and add it to what is shown."""
        assert (frame.columns, frame.height) == self.engine.size
        for y, row in frame.rows.items():
            assert 0 <= y < frame.height
            assert sum(run.cells for run in row.runs) == frame.columns, (y, row)
            assert sum(run.characters for run in row.runs) == len(row.text)
            assert drawable(row.text), row.text
        for marks in frame.marks.values():
            assert all(0 <= mark.start < mark.end <= frame.columns for mark in marks)
        if frame.cursor is not None:
            assert 0 <= frame.cursor.x < frame.columns
            assert 0 <= frame.cursor.y < frame.height
        self.number += 1
        assert wire_frame.unpack_frame(wire_frame.pack_frame(self.number, frame)) == (
            self.number,
            frame,
        )
        self.shown.update(frame.rows)
        for y in [y for y in self.shown if y >= frame.height]:
            del self.shown[y]

    def compare(self) -> None:
        """Check that the changed rows so far add up to the whole page."""
        self.draw(self.engine.frame())
        before = dict(self.shown)
        self.draw(self.engine.frame(full=True))
        assert before == self.shown
