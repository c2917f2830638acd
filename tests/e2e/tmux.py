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
        settings = [f"-e{key}={value}" for key, value in environment.items()]
        size = ["-x", str(columns), "-y", str(rows)]
        place = ["-c", str(cwd)]
        self._tmux("-f", os.devnull, "new-session", "-d", *size, *settings, *place, "--", *argv)
        self._tmux("pipe-pane", "-O", f"cat >{fifo}")

    def _tmux(self, *arguments: str) -> str:
        argv = ["tmux", "-L", self._name, *arguments]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=20)
        return done.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._output)
        argv = ["tmux", "-L", self._name, "kill-server"]
        subprocess.run(argv, check=False, capture_output=True, timeout=20)

    def screen(self) -> str:
        """Return what the terminal shows, one line a row."""
        return self._tmux("capture-pane", "-p")

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
        argv = ["tmux", "-L", self._name, "has-session"]
        return subprocess.run(argv, check=False, capture_output=True, timeout=20).returncode == 0

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
            if select.select([self._output], [], [], min(left, LOOK_AGAIN_S))[0]:
                os.read(self._output, 1 << 20)
