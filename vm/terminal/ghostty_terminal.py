"""One terminal of the engine: its options, data and actions, each wrapped once with its types."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from vm.terminal.ghostty import CELL_HEIGHT, CELL_WIDTH, NO_SPACE, SUCCESS, EngineFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.terminal.ghostty import Ghostty, Owner
    from vm.terminal.palette import RGB, TerminalPalette


class Terminal:
    """One `GhosttyTerminal` and the options and data of it that we use."""

    def __init__(self, ghostty: Ghostty, handle: Any) -> None:
        """Take a terminal of the library, which `close` frees."""
        self.ghostty = ghostty
        self.ffi, self.lib = ghostty.ffi, ghostty.lib
        self.handle = handle
        self._user: Any = None
        self._mode = self.ffi.new("GhosttyTerminalModeConfig*")
        self._text = self.ffi.new("GhosttyString*")
        self._u16 = self.ffi.new("uint16_t*")
        self._int = self.ffi.new("int*")
        self._bool = self.ffi.new("bool*")
        self._byte = self.ffi.new("uint8_t*")
        self._bar = self.ffi.new("GhosttyTerminalScrollbar*")

    @classmethod
    def new(cls, ghostty: Ghostty, columns: int, rows: int) -> Terminal:
        """Return an empty terminal that tells nobody anything."""
        out = ghostty.ffi.new("GhosttyTerminal*")
        made = ghostty.lib.ghostty_terminal_new(ghostty.ffi.NULL, out, columns, rows)
        ghostty.check(made, "a terminal")
        return cls(ghostty, out[0])

    def listen(self, owner: Owner) -> None:
        """Tell `owner` what the guest does."""
        self._user = self.ffi.new_handle(owner)  # kept: the library holds it as a bare pointer
        self._set("USERDATA", self._user)
        for option, callback in self.ghostty.callbacks.items():
            self._set(option, callback)

    def become(self, other: Terminal) -> None:
        """Free this terminal and be another one, which must not be used afterwards."""
        self.close()
        self.handle, other.handle = other.handle, self.ffi.NULL

    def close(self) -> None:
        """Free the terminal."""
        self.lib.ghostty_terminal_free(self.handle)
        self.handle = self.ffi.NULL

    # -- options -----------------------------------------------------------------------------

    def _set(self, option: str, value: Any) -> None:
        number = getattr(self.lib, f"GHOSTTY_TERMINAL_OPT_{option}")
        result = self.lib.ghostty_terminal_set(self.handle, number, value)
        self.ghostty.check(result, f"the option {option}")

    def set_size_option(self, option: str, value: int | None) -> None:
        """Set an option of type size_t; None means without limit."""
        pointer = self.ffi.NULL if value is None else self.ffi.new("size_t*", value)
        self._set(option, pointer)

    def set_image_limit(self, value: int) -> None:
        """Bound the storage for pictures in bytes; 0 switches the graphics protocol off."""
        self._set("KITTY_IMAGE_STORAGE_LIMIT", self.ffi.new("uint64_t*", value))

    def set_flag(self, option: str, value: bool) -> None:
        """Set an option of type bool."""
        self._set(option, self.ffi.new("bool*", value))

    def set_mode_default(self, mode: int, value: bool) -> None:
        """Say what a DEC private mode is after a reset."""
        config = self.ffi.new("GhosttyTerminalModeConfig*")
        config.mode, config.value = mode, value
        self._set("MODE_DEFAULT", config)

    def set_colors(self, palette: TerminalPalette, all_256: tuple[RGB, ...]) -> None:
        """Set the default colours that queries are answered from."""
        for option, rgb in (
            ("COLOR_FOREGROUND", palette.foreground),
            ("COLOR_BACKGROUND", palette.background),
            ("COLOR_CURSOR", palette.cursor),
        ):
            self._set(option, self.ffi.new("GhosttyColorRgb*", list(rgb)))
        self._set("COLOR_PALETTE", self.ffi.new("GhosttyColorRgb[256]", [list(c) for c in all_256]))

    # -- data --------------------------------------------------------------------------------

    def _get(self, datum: str, out: Any) -> Any:
        number = getattr(self.lib, f"GHOSTTY_TERMINAL_DATA_{datum}")
        result = self.lib.ghostty_terminal_get(self.handle, number, out)
        self.ghostty.check(result, f"the datum {datum}")
        return out

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""
        columns = int(self._get("COLS", self._u16)[0])
        return columns, int(self._get("ROWS", self._u16)[0])

    def cursor(self) -> tuple[int, int]:
        """Return the cursor's column and row on the active screen, from 0."""
        column = int(self._get("CURSOR_X", self._u16)[0])
        return column, int(self._get("CURSOR_Y", self._u16)[0])

    def pending_wrap(self) -> bool:
        """Tell whether the next character goes to the next row."""
        return bool(self._get("CURSOR_PENDING_WRAP", self._bool)[0])

    def ground(self) -> bool:
        """Tell whether the parser is within no sequence and no character."""
        return bool(self._get("VT_GROUND", self._bool)[0])

    def mode(self, number: int) -> bool:
        """Tell whether a DEC private mode is set."""
        self._mode.mode = number
        return bool(self._get("MODE", self._mode).value)

    def alternate(self) -> bool:
        """Tell whether the alternate screen is shown."""
        return bool(self._get("ACTIVE_SCREEN", self._int)[0])

    def kitty_flags(self) -> int:
        """Return the kitty keyboard flags that the guest pushed."""
        return int(self._get("KITTY_KEYBOARD_FLAGS", self._byte)[0])

    def title(self) -> bytes:
        """Return the title."""
        return self.ghostty.string(self._get("TITLE", self._text))

    def folder(self) -> bytes:
        """Return the folder that the guest reported (a file: address)."""
        return self.ghostty.string(self._get("PWD", self._text))

    def scrollbar(self) -> tuple[int, int, int]:
        """Return all rows, rows above the page, rows of the page."""
        bar = self._get("SCROLLBAR", self._bar)
        return int(bar.total), int(bar.offset), int(bar.len)

    # -- doing -------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Feed the guest's output."""
        self.lib.ghostty_terminal_vt_write(self.handle, data, len(data))

    def resize(self, columns: int, rows: int) -> None:
        """Resize and reflow; an engine out of memory keeps its size."""
        self.lib.ghostty_terminal_resize(self.handle, columns, rows, CELL_WIDTH, CELL_HEIGHT)
        total, offset, length = self.scrollbar()
        if offset + length > total:
            # scrolled back, the engine can leave the page hanging over the end: rows of old text
            self.scroll(None)

    def scroll_to(self, row: int) -> None:
        """Let the visible page begin at a row, counted from the oldest."""
        where = self.ffi.new("ClocheScroll*")
        where.tag = self.lib.GHOSTTY_SCROLL_VIEWPORT_ROW
        where.value.delta = row  # a size_t in this place of the union, which is never negative here
        self.ghostty.cast_scroll(self.handle, where[0])

    def scroll(self, lines: int | None) -> None:
        """Move the visible page by lines, or to the end when None."""
        where = self.ffi.new("ClocheScroll*")
        if lines is None:
            where.tag = self.lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM
        else:
            where.tag = self.lib.GHOSTTY_SCROLL_VIEWPORT_DELTA
            where.value.delta = lines
        self.ghostty.cast_scroll(self.handle, where[0])

    def snapshot(self) -> bytes:
        """Return the engine's serialised state."""
        call = functools.partial(self.lib.ghostty_snapshot_encode_buf, self.handle)
        return self.filled(call, "a snapshot")

    def filled(self, call: Callable[[Any, int, Any], int], what: str) -> bytes:
        """Ask `call(buffer, size, written)` for its size, then for its bytes."""
        written = self.ffi.new("size_t*")
        result = call(self.ffi.NULL, 0, written)
        if result == SUCCESS and not written[0]:
            return b""
        if result not in (SUCCESS, NO_SPACE):
            raise EngineFailed(what, int(result))
        buffer = self.ffi.new("uint8_t[]", int(written[0]))
        self.ghostty.check(call(buffer, len(buffer), written), what)
        return bytes(self.ffi.buffer(buffer, written[0]))
