"""What the screen tells the pane worker to do with one pane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import wire, wire_view
from vm.terminal.palette import PACKED_SIZE, TerminalPalette
from vm.terminal.screen import Modifier, MouseAction, MouseEvent
from vm.terminal.wire import Down, Rate, WireError
from vm.terminal.wire_view import Select

if TYPE_CHECKING:
    from vm.terminal.worker_pane import WorkerPane

INPUT_KINDS = (Down.KEY, Down.TEXT, Down.PASTE, Down.MOUSE)
"""Messages that are input, which is counted on its way (see `wire.PASSED`)."""

VIEW_KINDS = (Down.SELECT, Down.COPY_MODE, Down.MOVE, Down.MARK, Down.SEARCH, Down.FIND)
"""Messages about what the user does with the page."""


def perform(pane: WorkerPane, kind: int, payload: bytes) -> None:
    """Do what a message says to one pane. Raises WireError when it cannot be read."""
    if kind in INPUT_KINDS:
        pane.begin_message()
        _type(pane, kind, payload)
        pane.end_message()
    elif kind == Down.ACK:
        pane.ack(*wire.exactly(wire.NUMBER, payload))
    elif kind == Down.SCROLL:
        pane.scroll(*wire.exactly(wire.SIGNED, payload))
    elif kind in VIEW_KINDS:
        _look(pane, kind, payload)
    else:
        _configure(pane, kind, payload)


def _type(pane: WorkerPane, kind: int, payload: bytes) -> None:
    if kind == Down.KEY:
        key, character = wire.unpack_texts(payload, 2, 256)
        pane.typed(pane.engine.encode_key(key, character or None))
    elif kind == Down.TEXT:
        pane.typed(wire.unpack_texts(payload, 1, wire.MAX_TEXT)[0].encode())
    elif kind == Down.PASTE:
        pane.paste(*wire_view.unpack_paste(payload))
    else:
        pane.mouse(mouse_event(payload))


def _look(pane: WorkerPane, kind: int, payload: bytes) -> None:
    engine = pane.engine
    if kind == Down.SELECT:
        _select(pane, wire_view.unpack_select(payload))
    elif kind == Down.COPY_MODE:
        engine.copy_mode(_flag(payload))
    elif kind == Down.MOVE:
        engine.copy_move(*wire_view.unpack_move(payload))
    elif kind == Down.MARK:
        engine.copy_mark(wire_view.unpack_shape(payload))
    elif kind == Down.SEARCH:
        text, backwards = wire_view.unpack_search(payload)
        engine.search(text, backwards=backwards)
    else:
        engine.find(backwards=_flag(payload))
    pane.touch()


def _select(pane: WorkerPane, it: wire_view.Selecting) -> None:
    if it.action is Select.START:
        pane.engine.select(it.x, it.y, it.unit, block=it.block)
    elif it.action is Select.EXTEND:
        pane.engine.select_to(it.x, it.y)
    else:
        pane.engine.select_none()


def _flag(payload: bytes) -> bool:
    (value,) = wire.exactly(wire_view.BYTE, payload)
    return bool(value)


def _configure(pane: WorkerPane, kind: int, payload: bytes) -> None:
    if kind == Down.RESIZE:
        columns, rows = wire.exactly(wire.PAIR, payload)
        pane.resize(columns, rows)
    elif kind == Down.FOCUS:
        pane.focus(_flag(payload))
    elif kind == Down.ACTIVE:
        pane.set_active(_flag(payload))
    elif kind == Down.HOLD:
        (what,) = wire.exactly(wire_view.BYTE, payload)
        pane.hold(what)
    elif kind == Down.NAME:
        client, taken = wire.exactly(wire.NAME, payload)
        pane.name(client, taken)
    elif kind == Down.RATE:
        pane.rate = unpack_rate(*wire.exactly(wire_view.BYTE, payload))
    elif kind == Down.PALETTE:
        pane.engine.set_palette(unpack_palette(payload))
        pane.redraw()
    else:
        raise WireError(f"There is no message {kind}.")


def unpack_rate(value: int) -> Rate:
    """Read a rate; WireError when there is none of that number."""
    try:
        return Rate(value)
    except ValueError as error:
        raise WireError(f"There is no rate {value}.") from error


def unpack_palette(data: bytes) -> TerminalPalette:
    """Read a palette; WireError when it has another length."""
    if len(data) != PACKED_SIZE:
        raise WireError(f"A palette of {len(data)} bytes.")
    return TerminalPalette.unpack(data)


def mouse_event(payload: bytes) -> MouseEvent:
    """Read a MOUSE message."""
    action, x, y, button, modifiers = wire.exactly(wire.MOUSE, payload)
    if action > max(MouseAction):
        raise wire.WireError(f"A mouse event does {action}.")
    return MouseEvent(MouseAction(action), x, y, button, Modifier(modifiers & 15))
