"""What the user's own terminal sends, made into Textual's events without losing any of it.

Textual's parser loses keys of terminals without the kitty protocol: Alt with Enter, Backspace,
digits or most symbols, ctrl+alt, modified F3; a lone Escape waits up to 0.2 s. On terminals with
the protocol a release or a field that it does not know ends its thread. A paste that holds an
Escape, or whose end comes in two pieces, is typed as keys or swallows all that follows. So it gets
a parser of ours: pastes are taken out first, then whole sequences are cut off, and only what ends
in the middle waits for more.
"""

from __future__ import annotations

import codecs
import functools
import os
import re
import select
import sys
import termios
from typing import TYPE_CHECKING, Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver

from widgets.outer_keys import ESCAPE, alt_key, keys_of, with_alt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.message import Message

ESCAPE_DELAY: Final = 0.015
"""Seconds that a lone Escape waits: a sequence comes in one write, the next key much later."""

PART_DELAY: Final = 0.5
"""Seconds that a sequence waits that has begun for certain; nobody types one by hand."""

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"

OTHER_KEYS_ON, OTHER_KEYS_OFF = "\x1b[>4;1m", "\x1b[>4m"
"""Ask xterm and tmux for keys that have no character of their own, such as shift+enter."""

MAX_PASTE: Final = 32 << 20
"""Characters of a paste that are kept; what comes beyond them is dropped."""

MAX_PART: Final = 4096
"""Characters of a sequence that has no end; then it is dropped."""

KITTY_TEXT: Final = 16 | 4
"""Kitty flags in the place of Textual's 16: associated text, and alternate keys besides."""

WHOLE: Final = re.compile(
    r"\x1b(?:"
    r"\[<[-\d;]*[mM]"  # mouse
    r"|\[M[\s\S]{3}"  # mouse of old terminals
    r"|\[\[[A-E]"  # F1 … F5 of the Linux console
    r"|\[\d{1,2}\$(?!y)"  # rxvt's keys with Shift
    r"|\[(?![\[M<])[0-?]*[ -/]*[@-~]"
    r"|O[\d;]{0,4}[A-Za-z]"
    r"|\]\d+;[^\x07\x1b]*(?:\x07|\x1b\\)"  # answers, which nobody asked for
    r"|P[\d;]*[$+>!][^\x1b]*\x1b\\"
    r"|_G[^\x1b]*\x1b\\"
    r")"
)
PART: Final = re.compile(
    r"\x1b(?:\x1b?(?:\[(?:<[-\d;]*|M[\s\S]{0,2}|\[|[0-?]*[ -/]*)?|O[\d;]{0,4})?"
    r"|\](?:\d{1,4}(?:;[^\x07\x1b]*\x1b?)?)?"
    r"|P(?:[\d;]{1,8}|[\d;]*[$+>!][^\x1b]*\x1b?)?"
    r"|_(?:G[^\x1b]*\x1b?)?)\Z"
)
"""What may become a whole sequence when more comes."""

CUT_OFF: Final = re.compile(r"\x1b(?:\[.|\]\d+;|P[\d;]*[$+>!]|_G)", re.DOTALL)
"""How an answer of the terminal begins whose end never came; nobody typed that."""

REPORT: Final = re.compile(r"\x1b\[(?:\?\d+;\d\$y|48;[\d:;]+t|(?!1;(?:[2-9]|1[0-6])R)\d+;\d+R)")
"""Answers that Textual asked for. `CSI 1 ; 2 R` is F3 with Shift: nobody asks for the cursor."""


class OuterParser(XTermParser):
    """Textual's parser with the cutting into sequences, and the keys, done here."""

    erase: str = "\x7f"
    """What Backspace sends on this terminal; the other one of the two is ctrl+h."""

    def __init__(self, debug: bool = False) -> None:
        self._rest = ""
        self._pasted: list[str] | None = None
        self._pasted_size = 0
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of what the terminal sent; waits a little for a sequence's end."""
        if not data:
            yield from self._give_up()
            yield from super().feed(data)
            return
        self._rest += data
        yield from self._cut()
        if self._rest and self._pasted is None and not self._more(self._rest):
            yield from self._give_up()

    def tick(self) -> Iterable[Message]:
        """Yield nothing: what waits has waited in `feed`."""
        return ()

    def _more(self, part: str) -> bool:
        """Wait on the terminal for the end of a sequence; the input thread has nothing else."""
        terminal = sys.__stdin__
        if terminal is None or not terminal.isatty():
            return False
        delay = ESCAPE_DELAY if len(part) <= 2 else PART_DELAY
        return bool(select.select([terminal], [], [], delay)[0])

    # -- cutting -----------------------------------------------------------------------------

    def _cut(self) -> Iterator[Message]:
        """Take everything that is whole off the front of what came."""
        data, self._rest, at = self._rest, "", 0
        while at < len(data):
            before = at
            at, found = self._first(data, at)
            yield from found
            if at == before:
                break
        self._rest += data[at:] if len(data) - at <= MAX_PART else ""

    def _first(self, data: str, at: int) -> tuple[int, Iterable[Message]]:
        """Take what comes first; nothing when it is not whole."""
        if self._pasted is not None:
            return self._paste(data, at)
        if data[at] != ESCAPE:
            return at + 1, self._typed(data[at])
        if data.startswith(PASTE_BEGIN, at):
            self._pasted, self._pasted_size = [], 0
            return at + len(PASTE_BEGIN), ()
        if (found := WHOLE.match(data, at)) and (told := self._told(found[0])) is not None:
            return found.end(), told
        if PART.match(data, at):
            return at, ()
        if data.startswith(ESCAPE, at + 1):
            return self._doubled(data, at)
        return at + 2, self._alt(data[at + 1])

    def _paste(self, data: str, at: int) -> tuple[int, Iterable[Message]]:
        """Take a paste up to its end; what may be the begin of the end stays."""
        end = data.find(PASTE_END, at)
        if end < 0:
            kept = next((n for n in range(5, 0, -1) if data.endswith(PASTE_END[:n], at)), 0)
            self._keep(data[at : len(data) - kept])
            self._rest = data[len(data) - kept :]
            return len(data), ()
        self._keep(data[at:end])
        text, self._pasted = "".join(self._pasted or ()), None
        return end + len(PASTE_END), [events.Paste(_whole(text).replace("\0", ""))]

    def _keep(self, text: str) -> None:
        if self._pasted is not None and self._pasted_size + len(text) <= MAX_PASTE:
            self._pasted.append(text)
            self._pasted_size += len(text)

    def _doubled(self, data: str, at: int) -> tuple[int, Iterable[Message]]:
        """Take Escape twice: two keys, but before a key's sequence the first one is Alt."""
        found = WHOLE.match(data, at + 1)
        keys = keys_of(found[0]) if found else None
        if found and keys:
            return found.end(), with_alt(keys)
        return at + 1, [events.Key("escape", ESCAPE)]

    def _give_up(self) -> Iterator[Message]:
        """Take what waited in vain for keys: Escape, or Alt with the begin of a sequence."""
        part, self._rest = self._rest, ""
        while part.startswith(ESCAPE * 2) or part == ESCAPE:
            yield events.Key("escape", ESCAPE)
            part = part[1:]
        if part and not CUT_OFF.match(part):
            yield from self._alt(part[1])
            for character in part[2:]:
                yield from self._typed(character)

    # -- meaning -----------------------------------------------------------------------------

    def _told(self, sequence: str) -> list[Message] | None:
        """Return what a whole sequence says; nothing when unknown, None when it is none."""
        if sequence == "\x1b[I":
            return [events.AppFocus()]
        if sequence == "\x1b[O":
            return [events.AppBlur()]
        if sequence.startswith("\x1b[<"):
            mouse = self.parse_mouse_code(sequence)
            return [mouse] if mouse is not None else []
        if REPORT.fullmatch(sequence):
            return [*super().feed(sequence)]
        keys = keys_of(sequence)
        if keys is None:
            return None if sequence[1] == "O" else []
        return [*keys]

    def _typed(self, character: str) -> list[Message]:
        """Return the key of one character; bytes that are no text are no keys."""
        if "\x7f" < character < "\xa0" or "\ud800" <= character <= "\udfff":
            return []
        if character == "\0":
            return [events.Key("ctrl+space", None)]
        if character == "\b" != self.erase:
            return [events.Key("ctrl+h", None)]
        if character == self.erase:
            return [events.Key("backspace", "\x7f")]
        if character == "\x7f":
            return [events.Key("ctrl+backspace", None)]
        return [*self._sequence_to_key_events(character)]

    def _alt(self, character: str) -> list[Message]:
        typed = self._typed(character)
        return [alt_key("\x7f" if character == self.erase else character)] if typed else []


class OuterDriver(linux_driver.LinuxDriver):
    """Textual's driver; asks xterm and tmux for modifyOtherKeys besides kitty's protocol."""

    def start_application_mode(self) -> None:
        """Begin to use the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual's own
        if knows_other_keys(os.environ) and self._writer_thread is not None:
            self.write(OTHER_KEYS_ON)
            self.flush()

    def stop_application_mode(self) -> None:
        """Give the terminal back as it was."""
        if knows_other_keys(os.environ) and self._writer_thread is not None:
            self.write(OTHER_KEYS_OFF)
        super().stop_application_mode()


def knows_other_keys(environment: Mapping[str, str]) -> bool:
    """Tell whether the terminal is xterm or tmux; others may take the asking for a colour."""
    kind = environment.get("TERM", "")
    return kind.startswith(("tmux", "screen")) or "XTERM_VERSION" in environment


def _whole(text: str) -> str:
    """Return pasted text with the sign for what was no text in it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def mend_parser() -> None:
    """Let Textual's driver read this terminal by our parser.

    Call it before the app runs; a second call changes nothing. It replaces names of Textual's
    driver that are looked up when the app starts, so tests hold it to what it promises.
    """
    OuterParser.erase = _erase_character()
    setattr(linux_driver, "XTermParser", OuterParser)  # noqa: B010 - the name is not ours
    setattr(linux_driver, "KITTY_REPORT_ASSOCIATED_TEXT", KITTY_TEXT)  # noqa: B010 - the name is not ours
    setattr(linux_driver, "getincrementaldecoder", _lenient_decoder)  # noqa: B010 - the name is not ours


def _lenient_decoder(name: str) -> functools.partial[codecs.IncrementalDecoder]:
    """Return a decoder that marks what is no text; Textual's own ends the program."""
    return functools.partial(codecs.getincrementaldecoder(name), errors="surrogateescape")


def _erase_character() -> str:
    """Return what the terminal says that Backspace sends."""
    terminal = sys.__stdin__
    if terminal is None or not terminal.isatty():
        return "\x7f"
    erase: object = termios.tcgetattr(terminal)[6][termios.VERASE]
    return "\b" if erase == b"\b" else "\x7f"
