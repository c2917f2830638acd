"""Our binding of libghostty-vt: every call that we make, wrapped once, with its types.

cffi checks nothing behind a `void *`: a wrong type there corrupts memory. So the raw `lib` is used
in this module, in the modules `ghostty_*` and in `keys` only, and each option and datum has
one function with one type.

One `Ghostty` serves a process. Its callbacks are made once, for making one needs executable memory,
which the sandbox takes away; they find their terminal by the handle that the engine passes along.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, cast

from vm.errors import HostLacks
from vm.terminal import abi
from vm.terminal.cell_text import CELL_BITS

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.1.0-dev"
"""The library version that the pinned pyghostty 0.1.3 carries."""

SUCCESS, NO_SPACE = 0, -3
"""GHOSTTY_SUCCESS and GHOSTTY_OUT_OF_SPACE."""

CELL_WIDTH, CELL_HEIGHT = 8, 16
"""Nominal pixels of a cell, for guests that ask; nothing here is drawn in pixels."""

STRUCTS = (
    "GhosttyStyle",
    "GhosttyStyleColor",
    "GhosttyRenderStateCursor",
    "GhosttyRenderStateColors",
    "GhosttyCellsView",
    "GhosttyBuffer",
    "GhosttyString",
    "GhosttyGridRef",
    "GhosttySelection",
    "GhosttyTerminalSelectionFormatOptions",
    "GhosttyTerminalModeConfig",
    "GhosttyTerminalScrollbar",
    "GhosttyTerminalScrollViewport",
    "GhosttyMouseEncoderSize",
    "GhosttySizeReportSize",
    "GhosttyTerminalDesktopNotification",
    "GhosttyTerminalProgressReport",
    "GhosttyClipboardWrite",
    "GhosttyClipboardContent",
    "GhosttyPoint",
    "GhosttyPointCoordinate",
    "GhosttySelectionBuffer",
    "GhosttyTerminalSelectWordOptions",
    "GhosttyTerminalSelectLineOptions",
)
"""Structs that we read or write; each must have the size and offsets that the library reports."""


class EngineFailed(HostLacks):
    """A call into the engine did not do what it always does."""

    code = "terminal-engine"

    def __init__(self, what: str, result: int) -> None:
        super().__init__(
            f"The terminal engine refused {what} (result {result}).",
            "Run: uv sync --reinstall-package pyghostty",
        )


class Owner(Protocol):
    """Who is told what the guest does; the methods run inside `feed`."""

    def on_reply(self, data: bytes) -> None:
        """Take an answer to a query of the guest."""

    def on_bell(self) -> None:
        """Be told of the bell."""

    def on_title(self) -> None:
        """Be told that the title changed."""

    def on_folder(self) -> None:
        """Be told that the guest reported its folder (OSC 7)."""

    def on_hold(self, held: bool) -> None:
        """Be told that a synchronised update began or ended."""

    def on_clipboard(self, data: bytes) -> None:
        """Take what the guest wants on the clipboard."""

    def on_notification(self, title: bytes, body: bytes) -> None:
        """Take a desktop notification."""

    def on_progress(self, state: int, value: int) -> None:
        """Take a progress report (OSC 9;4)."""

    def cells(self) -> tuple[int, int]:
        """Return columns and rows, for size queries."""
        ...

    def dark(self) -> bool:
        """Return whether the colours are dark, for colour scheme queries."""
        ...


class Ghostty:
    """The loaded library, checked, with its callbacks."""

    def __init__(self, cache: Path | None = None) -> None:
        """Load and check the engine; raises EngineMissing when it is not the one that we know."""
        self.ffi, self.lib = abi.load(cache)
        self._check_layout()
        self.cast_point = self.ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, ClochePoint, GhosttyGridRef*)",
            self.ffi.addressof(self.lib, "ghostty_terminal_grid_ref"),
        )
        self.cast_track = self.ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, ClochePoint, GhosttyTrackedGridRef*)",
            self.ffi.addressof(self.lib, "ghostty_terminal_grid_ref_track"),
        )
        self.cast_scroll = self.ffi.cast(
            "void(*)(GhosttyTerminal, ClocheScroll)",
            self.ffi.addressof(self.lib, "ghostty_terminal_scroll_viewport"),
        )
        self.callbacks = self._make_callbacks()

    # -- the layout check --------------------------------------------------------------------

    def _check_layout(self) -> None:
        """Compare what we assume with what the library says of itself."""
        raw = self.ffi.string(self.lib.ghostty_type_json())
        told = json.loads(raw)
        if told["library_version"] != VERSION:
            raise abi.EngineMissing(
                f"The terminal engine is {told['library_version']!r}, not {VERSION!r}."
            )
        for name in STRUCTS:
            self._check_struct(name, told["types"][name])
        bits = told["types"]["GhosttyCell"]["bits"]
        for name, (first, width) in CELL_BITS.items():
            if (bits[name]["lsb"], bits[name]["width"]) != (first, width):
                raise abi.EngineMissing("The terminal engine packs its cells in another way.")

    def _check_struct(self, name: str, told: dict[str, Any]) -> None:
        ours = self.ffi.typeof(name)
        offsets = {field: info.offset for field, info in ours.fields}
        theirs = {field: info["offset"] for field, info in told.get("fields", {}).items()}
        same = all(theirs.get(field, offset) == offset for field, offset in offsets.items())
        if self.ffi.sizeof(name) != told["size"] or not same:
            raise abi.EngineMissing(f"The terminal engine lays {name} out in another way.")

    # -- callbacks ---------------------------------------------------------------------------

    def _make_callbacks(self) -> dict[str, Any]:
        """Make every C callback; an option's name (after GHOSTTY_TERMINAL_OPT_) maps to it."""
        callback, owner = self.ffi.callback, self._owner

        def hold(_t: Any, user: Any, held: bool) -> None:
            owner(user).on_hold(bool(held))

        def reply(_t: Any, user: Any, data: Any, size: int) -> None:
            owner(user).on_reply(bytes(self.ffi.buffer(data, size)))

        def note(_t: Any, user: Any, it: Any) -> None:
            owner(user).on_notification(self.string(it.title), self.string(it.body))

        def progress(_t: Any, user: Any, it: Any) -> None:
            owner(user).on_progress(int(it.state), int(it.progress))

        def bell(_t: Any, user: Any) -> None:
            owner(user).on_bell()

        def title(_t: Any, user: Any) -> None:
            owner(user).on_title()

        def folder(_t: Any, user: Any) -> None:
            owner(user).on_folder()

        return {
            "WRITE_PTY": callback("GhosttyTerminalWritePtyFn", reply),
            "BELL": callback("GhosttyTerminalBellFn", bell),
            "TITLE_CHANGED": callback("GhosttyTerminalTitleChangedFn", title),
            "PWD_CHANGED": callback("GhosttyTerminalPwdChangedFn", folder),
            "RENDER_HOLD": callback("GhosttyTerminalRenderHoldFn", hold),
            "CLIPBOARD_WRITE": callback("GhosttyTerminalClipboardWriteFn", self._clipboard),
            "DESKTOP_NOTIFICATION": callback("GhosttyTerminalDesktopNotificationFn", note),
            "PROGRESS_REPORT": callback("GhosttyTerminalProgressReportFn", progress),
            "SIZE": callback("GhosttyTerminalSizeFn", self._size),
            "COLOR_SCHEME": callback("GhosttyTerminalColorSchemeFn", self._scheme),
        }

    def _owner(self, user: Any) -> Owner:
        return cast("Owner", self.ffi.from_handle(user))

    def _clipboard(self, _terminal: Any, user: Any, write: Any) -> None:
        """Take the first text of a clipboard write; the guest is told that it was denied.

        The answer never depends on what the user decides later, so it says nothing about them.
        """
        if write.contents_len:
            self._owner(user).on_clipboard(self.string(write.contents[0].data))
        if write.reply:
            answer = self.ffi.new("GhosttyClipboardWriteReply*")
            answer.size = self.ffi.sizeof("GhosttyClipboardWriteReply")
            answer.result = self.lib.GHOSTTY_CLIPBOARD_WRITE_RESULT_DENIED
            write.reply(write, answer)

    def _size(self, _terminal: Any, user: Any, out: Any) -> bool:
        out.columns, out.rows = self._owner(user).cells()
        out.cell_width, out.cell_height = CELL_WIDTH, CELL_HEIGHT
        return True

    def _scheme(self, _terminal: Any, user: Any, out: Any) -> bool:
        dark = self._owner(user).dark()
        out[0] = self.lib.GHOSTTY_COLOR_SCHEME_DARK if dark else self.lib.GHOSTTY_COLOR_SCHEME_LIGHT
        return True

    # -- small helpers -----------------------------------------------------------------------

    def string(self, it: Any) -> bytes:
        """Copy a GhosttyString (borrowed by the library) out."""
        return bytes(self.ffi.buffer(it.ptr, it.len)) if it.len else b""

    def sized(self, name: str) -> Any:
        """Return a new struct whose `size` fields, nested ones too, are filled in."""
        pointer = self.ffi.new(f"{name}*")
        self._fill_sizes(pointer)
        return pointer

    def _fill_sizes(self, pointer: Any) -> None:
        kind = self.ffi.typeof(pointer).item
        for name, field in kind.fields:
            if name == "size":
                pointer.size = self.ffi.sizeof(kind)
            elif field.type.kind == "struct":
                self._fill_sizes(self.ffi.addressof(pointer[0], name))

    def check(self, result: int, what: str) -> None:
        """Raise EngineFailed unless `result` is success."""
        if result != SUCCESS:
            raise EngineFailed(what, int(result))

    def make(self, kind: str, function: str) -> Any:
        """Make one of the library's objects (`GhosttyX` by `ghostty_x_new`)."""
        out = self.ffi.new(f"{kind}*")
        self.check(getattr(self.lib, function)(self.ffi.NULL, out), function)
        return out[0]
