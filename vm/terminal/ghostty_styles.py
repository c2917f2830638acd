"""Styles and default colours of one terminal, packed as frames carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vm.terminal.cell_text import FILL_INDEX
from vm.terminal.screen import (
    COLOR_PALETTE,
    COLOR_RGB,
    STYLE,
    UNDERLINE_MASK,
    UNDERLINE_SHIFT,
    Attribute,
)

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.palette import RGB

MAX_STYLES = 65_536
"""Styles kept packed; a guest that makes up more only loses the shortcut."""

BY_INDEX, BY_RGB = 1, 2
"""GHOSTTY_STYLE_COLOR_PALETTE and _RGB: how a style names a colour."""

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
        if color.tag == BY_INDEX:
            index = int(color.value.palette)
            return self.palette.get(index, COLOR_PALETTE | index)
        if color.tag == BY_RGB:
            rgb = color.value.rgb
            return int(COLOR_RGB | rgb.r << 16 | rgb.g << 8 | rgb.b)
        return default


class Styles:
    """Reads the render state's colours and styles, and packs each style once."""

    def __init__(self, ghostty: Ghostty, state: Any) -> None:
        self.ffi, self.lib = ghostty.ffi, ghostty.lib
        self._state = state
        self._style = ghostty.sized("GhosttyStyle")
        self._style_bytes = self.ffi.buffer(self._style)
        self._colors = ghostty.sized("GhosttyRenderStateColors")
        self._color_bytes = self.ffi.buffer(self._colors)
        self._packed: dict[bytes, bytes] = {}
        self._defaults: tuple[int, ...] = ()
        self.colors = Colors()

    def set_defaults(self, foreground: RGB, background: RGB, palette: tuple[RGB, ...]) -> None:
        """Say which colours are the defaults; only what differs from them is sent as a colour."""
        self._defaults = tuple(
            COLOR_RGB | r << 16 | g << 8 | b for r, g, b in (foreground, background, *palette)
        )
        self.colors.seen = b""

    def changed(self) -> bool:
        """Notice that the guest changed its default colours; packed styles are then stale."""
        self.lib.ghostty_render_state_get(
            self._state, self.lib.GHOSTTY_RENDER_STATE_DATA_COLORS, self._colors
        )
        seen = bytes(self._color_bytes)
        if seen == self.colors.seen:
            return False
        fresh = self.colors = Colors()
        fresh.seen = seen
        now = self._values()
        base = self._defaults or now
        fresh.foreground = now[0] if now[0] != base[0] else 0
        fresh.background = now[1] if now[1] != base[1] else 0
        pairs = zip(now[2:], base[2:], strict=True)
        fresh.palette = {i: is_ for i, (is_, was) in enumerate(pairs) if is_ != was}
        self._packed.clear()
        return True

    def _values(self) -> tuple[int, ...]:
        it = self._colors
        parts = [it.foreground, it.background, *it.palette]
        return tuple(COLOR_RGB | c.r << 16 | c.g << 8 | c.b for c in parts)

    def read(self, cells: Any, x: int) -> bytes:
        """Return the packed style of cell `x` of the row that `cells` stands on."""
        self.lib.ghostty_render_state_row_cells_select(cells, x)
        self.lib.ghostty_render_state_row_cells_get(
            cells, self.lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_STYLE, self._style
        )
        key = bytes(self._style_bytes)
        packed = self._packed.get(key)
        if packed is None:
            if len(self._packed) >= MAX_STYLES:
                self._packed.clear()
            packed = self._packed[key] = self._pack(self._style)
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

    def fill(self, tag: int, content: int) -> bytes:
        """Return the style of a cell that holds a background colour only."""
        if tag == FILL_INDEX:
            index = content & 0xFF
            color = self.colors.palette.get(index, COLOR_PALETTE | index)
        else:
            color = COLOR_RGB | (content & 0xFF) << 16 | content & 0xFF00 | content >> 16
        return STYLE.pack(0, self.colors.foreground, color, 0)
