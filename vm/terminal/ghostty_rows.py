"""Reads the engine's changed rows as text and runs.

A row comes as packed 64-bit cells. A row without wide characters and clusters (nearly every one) is
taken apart with arithmetic on one big number, so no Python code runs for a single cell: 0.6 ms for
40 rows of 120 columns, where a loop over cells takes 6 ms.

Text is made safe for drawing here: each cluster becomes characters that every terminal draws in
exactly its cells (no joiners, variation selectors or skin tones; flags become letters), for outer
terminals disagree on the rest and one wrong width shifts everything to its right.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from vm.terminal.screen import (
    COLOR_PALETTE,
    COLOR_RGB,
    STYLE,
    UNDERLINE_MASK,
    UNDERLINE_SHIFT,
    Attribute,
    Cursor,
    CursorShape,
    Row,
    Run,
)

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.palette import RGB

MAX_STYLES = 65_536
"""Styles kept packed; a guest that makes up more only loses the shortcut."""

MAX_CLUSTER = 256
"""Bytes of one cluster that are looked at."""

ATTRIBUTES = (
    ("bold", Attribute.BOLD),
    ("faint", Attribute.FAINT),
    ("italic", Attribute.ITALIC),
    ("blink", Attribute.BLINK),
    ("inverse", Attribute.INVERSE),
    ("invisible", Attribute.INVISIBLE),
    ("strikethrough", Attribute.STRIKE),
    ("overline", Attribute.OVERLINE),
)
"""The engine's names of what a style can have."""

WIDE, TAIL = 1, 2
"""Cell kinds: first and second half of a wide character."""

FLAG_A, FLAG_Z = "\U0001f1e6", "\U0001f1ff"
SKIN_A, SKIN_Z = "\U0001f3fb", "\U0001f3ff"


class _Masks(NamedTuple):
    """Big numbers for one row width, a field of each cell."""

    special: int
    point: int
    style: int


@functools.cache
def _masks(width: int) -> _Masks:
    one = int.from_bytes(b"\1\0\0\0\0\0\0\0" * width, "little")
    return _Masks(one * 3 | one * (3 << 42), one * 0x1FFFFF, one * (0xFFFF << 26))


def _is_plumbing(character: str) -> bool:
    """Tell joiners, variation selectors, skin tones and other invisible parts of a cluster."""
    return (
        "\ufe00" <= character <= "\ufe0f"
        or SKIN_A <= character <= SKIN_Z
        or not character.isprintable()
    )


@functools.lru_cache(8192)
def safe_cluster(cluster: str, wide: bool) -> str:
    """Return a cluster without what outer terminals disagree on.

    A wide one keeps its first character (a flag its two letters); a narrow one its combining marks.
    """
    if FLAG_A <= cluster[0] <= FLAG_Z:
        letters = "".join(chr(ord(c) - 0x1F1A5) for c in cluster[:2] if FLAG_A <= c <= FLAG_Z)
        return letters.ljust(2) if wide else letters[:1]
    if wide:
        return cluster[0] if cluster[0].isprintable() else "\ufffd "
    return "".join(c for c in cluster if not _is_plumbing(c)) or "\ufffd"


class Colors:
    """Which default colours the guest changed (OSC 4, 10, 11) and what a style is then."""

    def __init__(self) -> None:
        self.seen = b""
        self.foreground = self.background = 0
        self.palette: dict[int, int] = {}

    def plain(self) -> bytes:
        """Return the style of unstyled text."""
        return STYLE.pack(0, self.foreground, self.background, 0)

    def of(self, color: Any, default: int) -> int:
        """Return a GhosttyStyleColor as a packed colour."""
        if color.tag == 1:
            index = int(color.value.palette)
            return self.palette.get(index, COLOR_PALETTE | index)
        if color.tag == 2:
            rgb = color.value.rgb
            return int(COLOR_RGB | rgb.r << 16 | rgb.g << 8 | rgb.b)
        return default


class RowReader:
    """The render state of one terminal."""

    def __init__(self, ghostty: Ghostty, terminal: Terminal) -> None:
        self.ghostty, self.terminal = ghostty, terminal
        self.ffi, self.lib = ghostty.ffi, ghostty.lib
        new = self.ffi.new
        self.state = ghostty.make("GhosttyRenderState", "ghostty_render_state_new")
        self._rows = new("GhosttyRenderStateRowIterator*")
        ghostty.check(
            self.lib.ghostty_render_state_row_iterator_new(self.ffi.NULL, self._rows), "rows"
        )
        self._cells = new("GhosttyRenderStateRowCells*")
        ghostty.check(
            self.lib.ghostty_render_state_row_cells_new(self.ffi.NULL, self._cells), "cells"
        )
        self._view = new("GhosttyCellsView*")
        self._y = new("uint16_t*")
        self._dirty = new("int*")
        self._style = ghostty.sized("GhosttyStyle")
        self._style_bytes = self.ffi.buffer(self._style)
        self._cursor = ghostty.sized("GhosttyRenderStateCursor")
        self._colors = ghostty.sized("GhosttyRenderStateColors")
        self._color_bytes = self.ffi.buffer(self._colors)
        self._cluster = new("uint8_t[]", MAX_CLUSTER)
        self._cluster_out = new("GhosttyBuffer*")
        self._styles: dict[bytes, bytes] = {}
        self.defaults: tuple[int, ...] = ()
        self.colors = Colors()

    def set_defaults(self, foreground: RGB, background: RGB, palette: tuple[RGB, ...]) -> None:
        """Say which colours are the defaults; only what differs from them is sent as a colour."""
        self.defaults = tuple(
            COLOR_RGB | r << 16 | g << 8 | b for r, g, b in (foreground, background, *palette)
        )
        self.colors.seen = b""

    def close(self) -> None:
        """Free the engine's objects."""
        self.lib.ghostty_render_state_row_cells_free(self._cells[0])
        self.lib.ghostty_render_state_row_iterator_free(self._rows[0])
        self.lib.ghostty_render_state_free(self.state)

    def changed(self, *, full: bool) -> dict[int, Row]:
        """Return the rows that the engine marked since last time, or all rows."""
        lib = self.lib
        lib.ghostty_render_state_update(self.state, self.terminal.handle)
        lib.ghostty_render_state_get(self.state, lib.GHOSTTY_RENDER_STATE_DATA_DIRTY, self._dirty)
        full = self._colors_changed() or full or self._dirty[0] == 2
        if not full and not self._dirty[0]:
            return {}
        lib.ghostty_render_state_get(
            self.state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, self._rows
        )
        rows = self._all() if full else self._marked()
        lib.ghostty_render_state_clean(self.state)
        return rows

    def _all(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        step, rows = self.lib.ghostty_render_state_row_iterator_next, self._rows[0]
        while step(rows):
            found[len(found)] = self._row(rows)
        return found

    def _marked(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        step, rows, y = (
            self.lib.ghostty_render_state_row_iterator_next_dirty,
            self._rows[0],
            self._y,
        )
        while step(rows, y):
            found[int(y[0])] = self._row(rows)
        return found

    def cursor(self) -> Cursor | None:
        """Return the cursor as of the last `changed`, or None when it is not to be seen."""
        it = self._cursor
        self.lib.ghostty_render_state_get(self.state, self.lib.GHOSTTY_RENDER_STATE_DATA_CURSOR, it)
        if not (it.visible and it.viewport_has_value):
            return None
        x = int(it.viewport_x) - (1 if it.wide_tail and it.viewport_x else 0)
        shape = CursorShape(int(it.visual_style) if 0 <= it.visual_style <= 3 else 1)
        return Cursor(x, int(it.viewport_y), shape, bool(it.blinking), bool(it.wide_tail))

    # -- colours -----------------------------------------------------------------------------

    def _color_values(self) -> tuple[int, ...]:
        it = self._colors
        parts = [it.foreground, it.background, *it.palette]
        return tuple(COLOR_RGB | c.r << 16 | c.g << 8 | c.b for c in parts)

    def _colors_changed(self) -> bool:
        """Notice that the guest changed its default colours; packed styles are then stale."""
        self.lib.ghostty_render_state_get(
            self.state, self.lib.GHOSTTY_RENDER_STATE_DATA_COLORS, self._colors
        )
        seen = bytes(self._color_bytes)
        if seen == self.colors.seen:
            return False
        fresh = self.colors = Colors()
        fresh.seen = seen
        now = self._color_values()
        base = self.defaults or now
        fresh.foreground = now[0] if now[0] != base[0] else 0
        fresh.background = now[1] if now[1] != base[1] else 0
        pairs = zip(now[2:], base[2:], strict=True)
        fresh.palette = {i: is_ for i, (is_, was) in enumerate(pairs) if is_ != was}
        self._styles.clear()
        return True

    # -- one row -----------------------------------------------------------------------------

    def _row(self, rows: Any) -> Row:
        view = self._view
        self.lib.ghostty_render_state_row_get(
            rows, self.lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, view
        )
        width = int(view.len)
        raw = bytes(self.ffi.buffer(view.ptr, width * 8))
        number, masks = int.from_bytes(raw, "little"), _masks(width)
        if number & masks.special:
            return self._mixed_row(raw, rows)
        points = (number >> 2 & masks.point).to_bytes(width * 8, "little")
        text = points.decode("utf-32-le", "replace")[::2].replace("\0", " ")
        if not text.isprintable():
            return self._mixed_row(raw, rows)
        styles = number & masks.style
        if not styles:
            return Row(text, (Run(self.colors.plain(), width, width),))
        return Row(text, self._plain_runs(styles, width, rows))

    def _plain_runs(self, styles: int, width: int, rows: Any) -> tuple[Run, ...]:
        """Return the runs of a row in which each cell holds one narrow character."""
        ids = memoryview((styles >> 26).to_bytes(width * 8, "little")).cast("Q").tolist()
        pick = _StylePicker(self, rows)
        cuts = [x for x, (a, b) in enumerate(itertools.pairwise(ids), 1) if a != b]
        starts = [0, *cuts]
        return tuple(
            Run(pick(ids[start], start), end - start, end - start)
            for start, end in zip(starts, [*cuts, width], strict=True)
        )

    def _mixed_row(self, raw: bytes, rows: Any) -> Row:
        """Return a row that holds wide characters, clusters or cells with a colour only."""
        cells = memoryview(raw).cast("Q").tolist()
        pick = _StylePicker(self, rows)
        text: list[str] = []
        runs: list[Run] = []
        kinds = [cell >> 42 & 3 for cell in cells] + [0]
        skip = False
        for x, cell in enumerate(cells):
            if skip:
                skip = False  # the second half of the wide character before it
                continue
            # a sequence can leave one half of a wide character behind; alone it is one cell
            wide = skip = kinds[x] == WIDE and kinds[x + 1] == TAIL
            piece, style = self._piece(cell, x, wide, pick)
            text.append(piece)
            self._append(runs, style, 2 if wide else 1, len(piece))
        return Row("".join(text), tuple(runs))

    def _piece(self, cell: int, x: int, wide: bool, pick: _StylePicker) -> tuple[str, bytes]:
        tag = cell & 3
        if tag >= 2:
            return " ", self._fill_style(tag, cell >> 2 & 0xFFFFFF)
        style = pick(cell >> 26 & 0xFFFF, x)
        if tag == 1:
            return safe_cluster(pick.cluster(x), wide), style
        point = cell >> 2 & 0x1FFFFF
        if not point:
            return ("  " if wide else " "), style
        return _character(point, wide), style

    def _append(self, runs: list[Run], style: bytes, cells: int, characters: int) -> None:
        """Add a piece; pieces of one character each and of one width share a run."""
        if runs and characters == 1:
            last = runs[-1]
            if last.style == style and last.cells == last.characters * cells:
                runs[-1] = Run(style, last.cells + cells, last.characters + 1)
                return
        runs.append(Run(style, cells, characters))

    def _fill_style(self, tag: int, content: int) -> bytes:
        if tag == 2:
            index = content & 0xFF
            color = self.colors.palette.get(index, COLOR_PALETTE | index)
        else:
            color = COLOR_RGB | (content & 0xFF) << 16 | content & 0xFF00 | content >> 16
        return STYLE.pack(0, self.colors.foreground, color, 0)

    def pack_style(self) -> bytes:
        """Return the style that was just read, packed."""
        key = bytes(self._style_bytes)
        packed = self._styles.get(key)
        if packed is None:
            if len(self._styles) >= MAX_STYLES:
                self._styles.clear()
            packed = self._styles[key] = self._pack(self._style)
        return packed

    def _pack(self, it: Any) -> bytes:
        bits = (int(it.underline) & UNDERLINE_MASK) << UNDERLINE_SHIFT
        bits |= sum(int(bit) for name, bit in ATTRIBUTES if getattr(it, name))
        return STYLE.pack(
            bits,
            self.colors.of(it.fg_color, self.colors.foreground),
            self.colors.of(it.bg_color, self.colors.background),
            self.colors.of(it.underline_color, 0),
        )

    def read_style(self, x: int) -> bytes:
        """Return the packed style of cell `x` of the row that was selected."""
        cells = self._cells[0]
        self.lib.ghostty_render_state_row_cells_select(cells, x)
        self.lib.ghostty_render_state_row_cells_get(
            cells, self.lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_STYLE, self._style
        )
        return self.pack_style()

    def read_cluster(self, x: int) -> str:
        """Return the characters of cell `x` of the row that was selected."""
        cells, out = self._cells[0], self._cluster_out
        self.lib.ghostty_render_state_row_cells_select(cells, x)
        out.ptr, out.cap, out.len = self._cluster, MAX_CLUSTER, 0
        done = self.lib.ghostty_render_state_row_cells_get(
            cells, self.lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_UTF8, out
        )
        if done != 0 or not out.len:
            return "\ufffd"
        return bytes(self.ffi.buffer(self._cluster, out.len)).decode("utf-8", "replace")

    def select_row(self, rows: Any) -> None:
        """Make `read_style` and `read_cluster` speak of the iterator's row."""
        self.lib.ghostty_render_state_row_get(
            rows, self.lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS, self._cells
        )


@functools.lru_cache(8192)
def _character(point: int, wide: bool) -> str:
    character = chr(point)
    if character.isprintable():
        return character
    return "  " if wide else " " if character.isspace() else "\ufffd"


class _StylePicker:
    """Styles of one row: the engine's style ids mean something within a row only."""

    def __init__(self, reader: RowReader, rows: Any) -> None:
        self.reader, self.rows = reader, rows
        self.known: dict[int, bytes] = {0: reader.colors.plain()}
        self.selected = False

    def __call__(self, style: int, x: int) -> bytes:
        """Return the packed style with id `style`, which cell `x` has."""
        found = self.known.get(style)
        if found is None:
            self._select()
            found = self.known[style] = self.reader.read_style(x)
        return found

    def cluster(self, x: int) -> str:
        """Return the cluster of cell `x`."""
        self._select()
        return self.reader.read_cluster(x)

    def _select(self) -> None:
        if not self.selected:
            self.reader.select_row(self.rows)
            self.selected = True
