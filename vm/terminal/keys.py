"""Keys, mouse and focus as the bytes that a guest expects (pastes: `paste`).

Three encoders share the work. A guest that pushed kitty flags gets what the engine's encoder says;
so does any guest for keys whose sequences are the same everywhere (arrows, function keys). For a
guest with a plain keyboard, or with xterm's modifyOtherKeys, text and the keys with a control
character of their own are encoded by `key_plain`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from vm.terminal.ghostty import CELL_HEIGHT, CELL_WIDTH
from vm.terminal.key_names import SILENT, Key, parse, xterm_bits
from vm.terminal.key_plain import Plain, plain
from vm.terminal.screen import MOUSE_MODES, WHEEL_LINES, Mode, Modifier, MouseAction

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import MouseEvent

LONG = re.compile(rb"\x1b\[27;\d+;\d+~\Z")
"""A key as the engine sends it to a guest with modifyOtherKeys at level 2."""

LEVEL_ASK = b"\x1b[>4"
LEVEL = re.compile(rb"\x1b\[>4(?:;(\d))?([mn])")
"""How a guest asks for a level of modifyOtherKeys; without a number it takes it back."""

LEVEL_TAIL = 6
"""Bytes of an output's end that the next one may complete to such an asking."""

RESETS = (b"\x1bc", b"\x1b[!p")
"""What takes every such wish back."""

MODIFIED = re.compile(rb";(\d+)")

FOCUS_MODE = 1004
ALT_MODE, BACKSPACE_MODE, CURSOR_MODE = 1036, 67, 1


class Encoder:
    """The engine's encoders for one terminal."""

    def __init__(self, ghostty: Ghostty, terminal: Terminal) -> None:
        self.ghostty, self.terminal = ghostty, terminal
        self.ffi, self.lib = ghostty.ffi, ghostty.lib
        self._encoder = ghostty.make("GhosttyKeyEncoder", "ghostty_key_encoder_new")
        self._event = ghostty.make("GhosttyKeyEvent", "ghostty_key_event_new")
        self._mouse = ghostty.make("GhosttyMouseEncoder", "ghostty_mouse_encoder_new")
        self._mouse_event = ghostty.make("GhosttyMouseEvent", "ghostty_mouse_event_new")
        self._out = self.ffi.new("char[]", 256)
        self._written = self.ffi.new("size_t*")
        self._pressed = 0
        self._level, self._tail = 0, b""

    def close(self) -> None:
        """Free the engine's objects."""
        self.lib.ghostty_key_event_free(self._event)
        self.lib.ghostty_key_encoder_free(self._encoder)
        self.lib.ghostty_mouse_event_free(self._mouse_event)
        self.lib.ghostty_mouse_encoder_free(self._mouse)

    # -- keys --------------------------------------------------------------------------------

    def watch(self, data: bytes) -> None:
        """See output of the guest before the engine does, for the level that it does not keep."""
        joined = self._tail + data if LEVEL_ASK[:1] in self._tail else data
        if LEVEL_ASK in joined:
            for found in LEVEL.finditer(joined):
                self._level = int(found[1] or 0) if found[2] == b"m" else 0
        if self._level and any(reset in joined for reset in RESETS):
            self._level = 0
        self._tail = joined[-LEVEL_TAIL:]

    def key(self, name: str, character: str | None) -> bytes:
        """Return what the key sends now."""
        key = parse(name, character)
        if isinstance(key, str):
            return key.encode()
        if self.terminal.kitty_flags():
            return self._kitty(key)
        sent = plain(key, self._plain_modes())
        return self._function(key) if sent is None else sent

    def _plain_modes(self) -> Plain:
        mode = self.terminal.mode
        return Plain(self._other_level(), mode(ALT_MODE), mode(BACKSPACE_MODE))

    def _other_level(self) -> int:
        """Return the guest's level of modifyOtherKeys; of 2 the engine knows best."""
        if LONG.match(self._encode(Key("A", Modifier.SHIFT, "A", ord("a")))):
            return 2
        return self._level if self._level == 1 else 0

    def _function(self, key: Key) -> bytes:
        """Return what a key without text sends to a guest without the kitty protocol."""
        if key.number:
            return b"\x1b[29~" if key.number == SILENT["menu"] else b""
        if key.code in ("F3", "NUMPAD_BEGIN") and (sent := self._by_letter(key)):
            return sent
        return self._encode(key)

    def _by_letter(self, key: Key) -> bytes:
        """Return xterm's bytes for keys that the engine sends otherwise, or not at all."""
        letter = b"R" if key.code == "F3" else b"E"
        if key.modifiers:
            return b"\x1b[1;%d%b" % (1 + xterm_bits(key.modifiers), letter)
        if key.code == "F3":
            return b"\x1bOR"
        return b"\x1bOE" if self.terminal.mode(CURSOR_MODE) else b"\x1b[E"

    def _kitty(self, key: Key) -> bytes:
        """Return what a guest with kitty flags gets."""
        bits = xterm_bits(key.modifiers) | key.rare
        if key.number:
            return b"\x1b[%d;%du" % (key.number, 1 + bits) if bits else b"\x1b[%du" % key.number
        if key.code == "NUMPAD_BEGIN":  # the engine gives it a number that the protocol has not
            return b"\x1b[1;%dE" % (1 + bits) if bits else b"\x1b[E"
        if not key.rare:
            return self._encode(key)
        # The engine cannot say hyper and meta: it is asked with super, whose bit is then replaced.
        sent = self._encode(key._replace(modifiers=key.modifiers | Modifier.SUPER))
        return MODIFIED.sub(b";%d" % (1 + bits), sent, count=1)

    def _encode(self, key: Key) -> bytes:
        lib, event = self.lib, self._event
        lib.ghostty_key_encoder_setopt_from_terminal(self._encoder, self.terminal.handle)
        text = key.text.encode()
        shifted = text and key.modifiers & Modifier.SHIFT and not key.modifiers & Modifier.CTRL
        lib.ghostty_key_event_set_action(event, lib.GHOSTTY_KEY_ACTION_PRESS)
        lib.ghostty_key_event_set_key(event, _key_number(lib, key.code))
        lib.ghostty_key_event_set_mods(event, int(key.modifiers))
        lib.ghostty_key_event_set_consumed_mods(event, int(Modifier.SHIFT) if shifted else 0)
        kept = self.ffi.from_buffer(text) if text else self.ffi.NULL
        lib.ghostty_key_event_set_utf8(event, kept, len(text))
        lib.ghostty_key_event_set_unshifted_codepoint(event, key.unshifted)
        done = lib.ghostty_key_encoder_encode(
            self._encoder, event, self._out, len(self._out), self._written
        )
        return self._taken(done)

    def _taken(self, done: int) -> bytes:
        return bytes(self.ffi.buffer(self._out, self._written[0])) if done == 0 else b""

    # -- focus, mouse ------------------------------------------------------------------------

    def focus(self, focused: bool) -> bytes:
        """Return the focus report, if the guest wants one."""
        if not self.terminal.mode(FOCUS_MODE):
            return b""
        return b"\x1b[I" if focused else b"\x1b[O"

    def mouse(self, event: MouseEvent, size: tuple[int, int]) -> bytes:
        """Return the mouse report, if the guest tracks such events."""
        self._track_buttons(event)
        lib, it = self.lib, self._mouse_event
        lib.ghostty_mouse_encoder_setopt_from_terminal(self._mouse, self.terminal.handle)
        self._mouse_options(size)
        lib.ghostty_mouse_event_set_action(it, _mouse_action(event))
        button = _mouse_button(lib, event)
        if button:
            lib.ghostty_mouse_event_set_button(it, button)
        else:
            lib.ghostty_mouse_event_clear_button(it)
        lib.ghostty_mouse_event_set_mods(it, int(event.modifiers))
        lib.ghostty_mouse_event_set_position(it, self._position(event))
        done = lib.ghostty_mouse_encoder_encode(
            self._mouse, it, self._out, len(self._out), self._written
        )
        return self._taken(done)

    def _track_buttons(self, event: MouseEvent) -> None:
        bit = 1 << event.button if 1 <= event.button <= 3 else 0
        if event.action is MouseAction.PRESS:
            self._pressed |= bit
        elif event.action is MouseAction.RELEASE:
            self._pressed &= ~bit

    def _mouse_options(self, size: tuple[int, int]) -> None:
        it = self.ghostty.sized("GhosttyMouseEncoderSize")
        it.screen_width, it.screen_height = size[0] * CELL_WIDTH, size[1] * CELL_HEIGHT
        it.cell_width, it.cell_height = CELL_WIDTH, CELL_HEIGHT
        set_option = self.lib.ghostty_mouse_encoder_setopt
        set_option(self._mouse, self.lib.GHOSTTY_MOUSE_ENCODER_OPT_SIZE, it)
        pressed = self.ffi.new("bool*", bool(self._pressed))
        set_option(self._mouse, self.lib.GHOSTTY_MOUSE_ENCODER_OPT_ANY_BUTTON_PRESSED, pressed)

    def _position(self, event: MouseEvent) -> Any:
        place = self.ffi.new("GhosttyMousePosition*")
        place.x = event.x * CELL_WIDTH + CELL_WIDTH / 2
        place.y = event.y * CELL_HEIGHT + CELL_HEIGHT / 2
        return place[0]

    def wheel(self, event: MouseEvent, size: tuple[int, int], modes: Mode) -> bytes | None:
        """Return what the wheel sends: a report, arrow keys, or None to move the page."""
        if modes & MOUSE_MODES:
            return self.mouse(event, size)
        if modes & Mode.ALTERNATE:
            if not modes & Mode.ALTERNATE_SCROLL:
                return b""
            up = event.action is MouseAction.SCROLL_UP
            return self.key("up" if up else "down", None) * WHEEL_LINES
        return None


@functools.cache
def _key_number(lib: Any, code: str) -> int:
    return int(getattr(lib, f"GHOSTTY_KEY_{code}"))


def _mouse_action(event: MouseEvent) -> int:
    return {MouseAction.RELEASE: 1, MouseAction.MOVE: 2}.get(event.action, 0)


def _mouse_button(lib: Any, event: MouseEvent) -> int:
    if event.action is MouseAction.SCROLL_UP:
        return int(lib.GHOSTTY_MOUSE_BUTTON_FOUR)
    if event.action is MouseAction.SCROLL_DOWN:
        return int(lib.GHOSTTY_MOUSE_BUTTON_FIVE)
    # the engine numbers left, right, middle; Textual left, middle, right
    return {1: 1, 2: 3, 3: 2}.get(event.button, 0)
