"""Keys, pastes, mouse and focus as the bytes that a guest expects.

The engine's encoder follows the guest's modes by itself: application cursor keys, keypad,
modifyOtherKeys and the kitty flags. Two things are ours. Keys come as Textual names them, which
must be taken apart. And for a guest that asked for nothing the engine answers some keys with
sequences that such a guest never meant to get; there the plain keyboard's bytes are sent.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from vm.terminal.ghostty import CELL_HEIGHT, CELL_WIDTH
from vm.terminal.screen import MOUSE_MODES, Mode, Modifier, MouseAction

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import MouseEvent

NAMED = {
    "up": "ARROW_UP", "down": "ARROW_DOWN", "left": "ARROW_LEFT", "right": "ARROW_RIGHT",
    "home": "HOME", "end": "END", "pageup": "PAGE_UP", "pagedown": "PAGE_DOWN",
    "insert": "INSERT", "delete": "DELETE", "enter": "ENTER", "return": "ENTER", "tab": "TAB",
    "escape": "ESCAPE", "backspace": "BACKSPACE", "space": "SPACE",
    **{f"f{number}": f"F{number}" for number in range(1, 26)},
}  # fmt: skip
"""Textual's names of keys without a character, and the engine's."""

CHARACTERS = {
    "exclamation_mark": "!", "quotation_mark": '"', "number_sign": "#", "dollar_sign": "$",
    "percent_sign": "%", "ampersand": "&", "apostrophe": "'", "left_parenthesis": "(",
    "right_parenthesis": ")", "asterisk": "*", "plus": "+", "plus_sign": "+", "comma": ",",
    "minus": "-", "hyphen_minus": "-", "full_stop": ".", "slash": "/", "solidus": "/",
    "colon": ":", "semicolon": ";", "less_than_sign": "<", "equals_sign": "=",
    "greater_than_sign": ">", "question_mark": "?", "at": "@", "commercial_at": "@",
    "left_square_bracket": "[", "backslash": "\\", "reverse_solidus": "\\",
    "right_square_bracket": "]", "circumflex_accent": "^", "underscore": "_", "low_line": "_",
    "grave_accent": "`", "left_curly_bracket": "{", "vertical_line": "|",
    "right_curly_bracket": "}", "tilde": "~",
}  # fmt: skip
"""Textual's names of characters (Unicode's, shortened here and there)."""

PHYSICAL = {
    "[": "BRACKET_LEFT", "]": "BRACKET_RIGHT", "\\": "BACKSLASH", "/": "SLASH", "-": "MINUS",
    "=": "EQUAL", ",": "COMMA", ".": "PERIOD", ";": "SEMICOLON", "'": "QUOTE", "`": "BACKQUOTE",
}  # fmt: skip
"""Characters of an American keyboard and the engine's names of their keys."""

MODIFIERS = {
    "shift": Modifier.SHIFT,
    "ctrl": Modifier.CTRL,
    "alt": Modifier.ALT,
    "meta": Modifier.ALT,
    "super": Modifier.SUPER,
}

LONG = re.compile(rb"\x1b\[(?:27;\d+;\d+~|\d+;\d+u)\Z")
"""A key as xterm's modifyOtherKeys or as kitty sends it."""

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What no paste may hold: a guest would take it for a key or for the end of the paste."""

MAX_KEY = 64
"""Longest name of a key, in characters."""

MAX_CHARACTER = 32
"""Longest text of one key (an emoji with all its parts), in characters."""

PASTE_MODE, FOCUS_MODE = 2004, 1004


class Key(NamedTuple):
    """One key for the encoder."""

    code: str
    """The engine's name after GHOSTTY_KEY_."""
    modifiers: Modifier
    text: str
    unshifted: int
    """The character of the key without Shift, 0 for keys without one."""


def parse(key: str, character: str | None) -> Key | str:
    """Return the key that Textual's name says, or the text to send when it is no such key."""
    modifiers, base = _split(key)
    if base in NAMED:
        space = base == "space"
        return Key(NAMED[base], modifiers, " " if space else "", 32 if space else 0)
    symbol = CHARACTERS.get(base, base)
    if len(symbol) != 1 or not symbol.isprintable():
        # a character that Textual knows by its Unicode name only, such as grinning_face
        return _printable(character)
    return _symbol_key(symbol, modifiers, character)


def _split(key: str) -> tuple[Modifier, str]:
    *names, base = key[:MAX_KEY].split("+")
    if not base and names:  # the plus key itself
        names, base = [name for name in names if name], "+"
    found = Modifier(0)
    for name in names:
        found |= MODIFIERS.get(name, Modifier(0))
    return found, base


def _printable(character: str | None) -> str:
    text = (character or "")[:MAX_CHARACTER]
    return text if text.isprintable() or "\u200d" in text else ""


def _symbol_key(symbol: str, modifiers: Modifier, character: str | None) -> Key | str:
    lower = symbol.lower()
    if len(lower) != 1:
        return _printable(character)
    if symbol != lower:
        modifiers |= Modifier.SHIFT
    text = _printable(character)
    if not text:
        text = symbol.upper() if modifiers & Modifier.SHIFT and symbol.isalpha() else symbol
    return Key(_code(lower), modifiers, text, ord(lower))


def _code(lower: str) -> str:
    if lower.isascii() and lower.isalpha():
        return lower.upper()
    if lower.isascii() and lower.isdigit():
        return f"DIGIT_{lower}"
    return PHYSICAL.get(lower, "UNIDENTIFIED")


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

    def close(self) -> None:
        """Free the engine's objects."""
        self.lib.ghostty_key_event_free(self._event)
        self.lib.ghostty_key_encoder_free(self._encoder)
        self.lib.ghostty_mouse_event_free(self._mouse_event)
        self.lib.ghostty_mouse_encoder_free(self._mouse)

    # -- keys --------------------------------------------------------------------------------

    def key(self, name: str, character: str | None) -> bytes:
        """Return what the key sends now."""
        key = parse(name, character)
        if isinstance(key, str):
            return key.encode()
        self.lib.ghostty_key_encoder_setopt_from_terminal(self._encoder, self.terminal.handle)
        sent = self._encode(key)
        return self._plain(key) if LONG.match(sent) and self._asked_for_nothing() else sent

    def _encode(self, key: Key) -> bytes:
        lib, event = self.lib, self._event
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

    def _asked_for_nothing(self) -> bool:
        """Tell whether the guest wants the plain keyboard: no kitty flags, no modifyOtherKeys."""
        if self.terminal.kitty_flags():
            return False
        return not LONG.match(self._encode(Key("A", Modifier.SHIFT, "A", ord("a"))))

    def _plain(self, key: Key) -> bytes:
        """Return what a keyboard without extensions sends for this key."""
        prefix = b"\x1b" if key.modifiers & Modifier.ALT else b""
        if key.code in ("ENTER", "TAB", "ESCAPE", "BACKSPACE"):
            return prefix + {"ENTER": b"\r", "TAB": b"\t", "ESCAPE": b"\x1b"}.get(key.code, b"\x7f")
        point = key.unshifted
        if key.modifiers & Modifier.CTRL and 0x40 <= (point & 0x5F) <= 0x5F and point < 0x80:
            return prefix + bytes([point & 0x1F])
        return prefix + key.text.encode()

    # -- paste, focus, mouse -----------------------------------------------------------------

    def paste(self, text: str) -> bytes:
        """Return a paste: line ends as Enter, no other control characters, marks if wanted."""
        bracketed = self.terminal.mode(PASTE_MODE)
        data = CONTROLS.sub(" ", text.replace("\r\n", "\n")).encode("utf-8", "replace")
        if not data:
            return b""
        source = self.ffi.new("char[]", data)  # the engine changes it in place
        call = functools.partial(self.lib.ghostty_paste_encode, source, len(data), bracketed)
        return self.terminal.filled(call, "a paste")

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
            return self.key("up" if up else "down", None) * 3
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
