"""The user's own terminal, as a program sees it: a PTY that is drained, answers and counts.

It says that it knows synchronised updates, so Textual marks each screen update; an update counts
when something stands between its marks. Everything is bounded in time, and leaving the context ends
the program and whatever it started in its process group.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


READ: Final = 1 << 20
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
ASKED, ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
ESCAPES = re.compile(
    rb"\x1b(?:\[[0-9;?<>=$ ]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])"
)
END_S: Final = 5.0


class OuterTerminal:
    """Runs a program on a PTY of a size."""

    def __init__(
        self,
        argv: Sequence[str],
        columns: int,
        rows: int,
        environment: Mapping[str, str],
        *,
        cwd: Path | None = None,
    ) -> None:
        self.updates = 0
        self.bytes = 0
        self.open = True
        self._rest: bytes = b""
        self._asked = False
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        for name in ("COLUMNS", "LINES"):
            env.pop(name, None)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(OSError):
                if cwd is not None:
                    os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(argv[0], list(argv), env)
            os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sent)
            if self._reaped(END_S):
                break
        os.close(self._fd)

    def _reaped(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return True
            self.read(0.02)
        return False

    def send(self, data: bytes) -> None:
        """Type."""
        os.write(self._fd, data)

    def read(self, seconds: float) -> bytes:
        """Return what the program printed, b"" when nothing came within `seconds`."""
        if not self.open:
            time.sleep(min(seconds, 0.05))
            return b""
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return b""
        try:
            data = os.read(self._fd, READ)
        except OSError:
            data = b""
        if not data:
            self.open = False
        self._note(data)
        return data

    def _note(self, data: bytes) -> None:
        """Count updates; what stands after the last end mark waits for the next read."""
        self.bytes += len(data)
        seen = self._rest + data
        if not self._asked and ASKED in seen:
            self._asked = True
            self.send(ANSWER)
        *whole, self._rest = seen.split(END)
        for update in whole:
            begin = update.rfind(BEGIN)
            if begin >= 0 and len(update) > begin + len(BEGIN):
                self.updates += 1
        if BEGIN not in self._rest:  # nothing of it is needed but a mark that is cut
            self._rest = self._rest[-len(BEGIN) :]

    def drain(self, seconds: float) -> bytes:
        """Take everything that comes within `seconds`."""
        end, found = time.monotonic() + seconds, bytearray()
        while (left := end - time.monotonic()) > 0:
            found += self.read(left)
        return bytes(found)

    def until(self, condition: Callable[[bytes], bool], seconds: float) -> bytes:
        """Take what comes until `condition` holds of it all; TimeoutError after `seconds`."""
        end, found = time.monotonic() + seconds, bytearray()
        while not condition(bytes(found)):
            left = end - time.monotonic()
            if left <= 0 or not self.open:
                raise TimeoutError(plain(bytes(found[-4000:])).decode("utf-8", "replace"))
            found += self.read(left)
        return bytes(found)


def plain(data: bytes) -> bytes:
    """Return the text that is left without escape sequences."""
    return ESCAPES.sub(b"", data)
