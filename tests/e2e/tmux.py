"""A real terminal for tests: a program in its own tmux server, keys in, the screen out.

Waiting is on the program's output: tmux copies it into a FIFO, and only when something arrives is
the screen looked at again.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import TYPE_CHECKING, Final, Self
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

LOOK_AGAIN_S: Final = 2.0
"""A screen is looked at again after this long even without output: the last bytes may have been
read before tmux had drawn them."""


class TmuxTerminal:
    """One program on a terminal of `columns` × `rows`; a context manager that ends it."""

    def __init__(
        self,
        folder: Path,
        argv: Sequence[str],
        environment: Mapping[str, str],
        columns: int,
        rows: int,
        cwd: Path,
    ) -> None:
        self._name = f"cloche-test-{uuid4().hex[:8]}"
        fifo = folder / f"{self._name}.fifo"
        os.mkfifo(fifo)
        # Opened for both ways, so that opening does not wait and the end is never seen.
        self._output = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        # The test's own environment may hold COLUMNS and LINES, which programs believe.
        self._environment = {"TERM": "xterm-256color", **environment}
        size = ["-x", str(columns), "-y", str(rows)]
        place = ["-c", str(cwd)]
        self._tmux("-f", os.devnull, "new-session", "-d", *size, *place, "--", *argv)
        self._tmux("pipe-pane", "-O", f"cat >{fifo}")

    def _tmux(self, *arguments: str) -> str:
        return self._call(arguments, check=True).stdout

    def _call(
        self, arguments: Sequence[str], *, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmux", "-u", "-L", self._name, *arguments],
            env=self._environment,
            check=check,
            capture_output=True,
            text=True,
            timeout=20,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._output)
        self._call(["kill-server"])

    def screen(self) -> str:
        """Return what the terminal shows, one line a row."""
        return self._tmux("capture-pane", "-p")

    def process(self) -> int:
        """Return the pid of the program."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names, such as `Enter`, `C-g` or `j`."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type text literally."""
        self._tmux("send-keys", "-l", "--", text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def alive(self) -> bool:
        """Tell whether the program still runs."""
        return self._call(["has-session"]).returncode == 0

    def settled(self, quiet_s: float = 0.3) -> str:
        """Return the screen once the program has printed nothing for `quiet_s`."""
        while self._printed(quiet_s):
            pass
        return self.screen()

    def until_ended(self, within_s: float = 10) -> None:
        """Wait until the program has ended."""
        deadline = time.monotonic() + within_s
        while self.alive():
            assert time.monotonic() < deadline, self.screen()
            self._printed(0.1)

    def _printed(self, within_s: float) -> bool:
        """Wait for output and take it; False when there was none."""
        if not select.select([self._output], [], [], within_s)[0]:
            return False
        os.read(self._output, 1 << 20)
        return True

    def until(self, wanted: str | Callable[[str], bool], within_s: float = 30) -> str:
        """Return the screen as soon as it holds `wanted`; fail with the last one otherwise."""

        def found(text: str) -> bool:
            return wanted in text if isinstance(wanted, str) else wanted(text)

        deadline = time.monotonic() + within_s
        while True:
            screen = self.screen()
            if found(screen):
                return screen
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{wanted!r} not seen in {within_s} s:\n{screen}")
            self._printed(min(left, LOOK_AGAIN_S))
