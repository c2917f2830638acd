"""Copies of a terminal, for copy mode: the copy stays still while the guest writes on.

The engine's own snapshot, decoded into a second terminal, is exact: 20 ms for 10 MB of scrollback,
an unfinished sequence included as far as `CONTINUATION_BYTES` go. Where the engine refuses one, the
screen is written out as text with colours and fed to a new terminal: slower, without marks of
prompts and links, but the rows are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_grid import Grid
from vm.terminal.ghostty_terminal import Terminal

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty

CONTINUATION_BYTES = 65_536
"""Bytes of an unfinished sequence that the engine keeps, so that it can make a snapshot there."""


def clone(terminal: Terminal) -> Terminal:
    """Return a copy of a terminal: rows, scrollback, modes, colours. It tells nobody anything.

    Raises EngineFailed when the engine can make none.
    """
    try:
        return decoded(terminal.ghostty, terminal.snapshot())
    except EngineFailed:
        return rewritten(terminal)


def decoded(ghostty: Ghostty, snapshot: bytes) -> Terminal:
    """Return the terminal that a snapshot of this same process describes."""
    ffi, lib = ghostty.ffi, ghostty.lib
    decoder = ffi.new("GhosttySnapshotDecoder*")
    kept = ffi.from_buffer(snapshot)  # the decoder borrows the bytes
    made = lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, kept, len(snapshot))
    ghostty.check(made, "to read a snapshot")
    out = ffi.new("GhosttyTerminal*")
    try:
        done = lib.ghostty_snapshot_decoder_decode(decoder[0], out)
    finally:
        lib.ghostty_snapshot_decoder_free(decoder[0])
    ghostty.check(done, "a snapshot of its own")
    return Terminal(ghostty, out[0])


def rewritten(terminal: Terminal) -> Terminal:
    """Return a new terminal with the same rows, written anew."""
    grid, (columns, rows) = Grid(terminal), terminal.size()
    total = terminal.scrollbar()[0]
    everything = grid.selection("SCREEN", (0, 0), (columns - 1, total - 1), block=False)
    data = grid.formatted(everything, "VT", unwrap=True, trim=False)
    copy = Terminal.new(terminal.ghostty, columns, rows)
    copy.set_size_option("SCROLLBACK_MAX_LINES", None)
    copy.set_size_option("SCROLLBACK_MAX_BYTES", len(data) * 8 + (1 << 20))
    copy.set_image_limit(0)
    copy.write(b"\x1b[?2027h" + data + b"\x1b[m")
    missing = total - copy.scrollbar()[0]
    if missing > 0:
        # rows at the end that are empty may not be written out
        copy.write(b"\n" * (missing + rows - 1 - copy.cursor()[1]))
    return copy
