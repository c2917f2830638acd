"""What commands print: text for people, or exactly one JSON object for programs.

Whatever comes from a guest, a workspace or a repository goes through the sanitiser on its way to a
terminal; JSON escapes control characters by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from app.errors import AppError
from app.standard import drop
from snapshot.safe_text import safe_block, safe_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence


COLOURS: Final = {
    "green": "32",
    "red": "31",
    "amber": "33",
    "blue": "34",
    "grey": "90",
    "bold": "1",
}


UNWRITABLE: Final = "unwritable"


def unwritable(error: OSError) -> AppError:
    """Return the error of an answer that could not be written where stdout leads."""
    text = f"The answer could not be written: {error.strerror or 'stdout takes nothing'}."
    return AppError(UNWRITABLE, text, "Give another place to it, or look: df -h .")


class Output:
    """Where a command's answer goes; `json` says in which form."""

    def __init__(self, *, as_json: bool) -> None:
        self.json = as_json
        self._colour = not as_json and sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def result(self, value: Mapping[str, Any], human: Callable[[], None] | None = None) -> None:
        """Give the command's answer: the object with `ok`, or what `human` prints."""
        if self.json:
            self._write(json.dumps({"ok": True, **value}, ensure_ascii=True) + "\n")
        elif human is not None:
            human()

    def failure(self, error: AppError) -> None:
        """Say that Cloche could not do its part: one sentence and the next step."""
        if self.json and error.code != UNWRITABLE:
            body = {"code": error.code, "message": error.message, "hint": error.hint}
            self._write(json.dumps({"ok": False, "error": body}, ensure_ascii=True) + "\n")
            return
        self.note(f"cloche: {error.message}")
        if error.hint:
            self.note(f"  {error.hint}")

    def line(self, text: str = "") -> None:
        """Print one line for people."""
        self._write(safe_line(text).text + "\n")

    def block(self, text: str) -> None:
        """Print several lines for people."""
        self._write(safe_block(text).text + "\n")

    def painted(self, colour: str, text: str) -> str:
        """Return a marked-up text; only `styled` shows it."""
        safe = safe_line(text).text
        return f"\x1b[{COLOURS[colour]}m{safe}\x1b[0m" if self._colour else safe

    def styled(self, *parts: str) -> None:
        """Print one line made of `painted` and `plain` parts."""
        self._write("".join(parts) + "\n")

    @staticmethod
    def plain(text: str) -> str:
        """Return a text that is safe beside painted ones."""
        return safe_line(text).text

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Print rows with aligned columns."""
        safe = [[safe_line(cell).text for cell in row] for row in rows]
        if not safe:
            return
        widths = [max(len(row[i]) for row in safe) for i in range(len(safe[0]))]
        for row in safe:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self._write("  ".join(cells).rstrip() + "\n")

    @staticmethod
    def exact(data: bytes) -> None:
        """Write bytes as they are; never to a terminal, which could obey them."""
        with _written():
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    @staticmethod
    def note(text: str) -> None:
        """Say something beside the answer, on stderr; where nobody can hear it, nothing happens."""
        with contextlib.suppress(OSError):
            sys.stderr.write(safe_block(text).text + "\n")
            sys.stderr.flush()

    @staticmethod
    def _write(text: str) -> None:
        with _written():
            sys.stdout.write(text)
            sys.stdout.flush()


@contextlib.contextmanager
def _written() -> Generator[None]:
    """Say of an answer that cannot be written (a full disk) that it was not; a pipe says enough."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()
        raise unwritable(error) from error
