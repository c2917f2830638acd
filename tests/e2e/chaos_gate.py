"""The listener of `vm.steps`: holds whoever reaches one named step until the test lets go."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

HELD_S = 120.0
"""Longest wait for a step: a cold boot on a busy host lies before some of them."""


@dataclass(frozen=True)
class Held:
    """A process that stands at a step."""

    pid: int
    step: str
    line: socket.socket

    def release(self) -> None:
        """Let it go on, if it still lives."""
        with contextlib.suppress(OSError):
            self.line.send(b".")
        self.line.close()


class Gate:
    """Answers every step at once, but for the one that `hold` names: that one once."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(64)
        self._news = threading.Condition()
        self._wanted = ""
        self._held: Held | None = None
        self.seen: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._socket.close()

    def hold(self, step: str) -> None:
        """Hold the next process that reaches this step."""
        with self._news:
            self._wanted, self._held = step, None

    def held(self, seconds: float = HELD_S) -> Held | None:
        """Wait until somebody stands at the step; None when nobody came in time."""
        with self._news:
            return self._news.wait_for(lambda: self._held, seconds)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                self._take(line)

    def _take(self, line: socket.socket) -> None:
        line.settimeout(10)
        try:
            pid, step = line.recv(256).decode().split()
        except (OSError, ValueError):
            line.close()
            return
        with self._news:
            self.seen.append(step)
            if step != self._wanted or self._held is not None:
                Held(int(pid), step, line).release()
                return
            self._held = Held(int(pid), step, line)
            self._news.notify_all()
