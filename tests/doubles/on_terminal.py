"""A program on a terminal of its own, and all the bytes that it writes there until it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

WAIT_S = 90.0
"""A program that has said nothing for so long, or not ended by then, never will."""


def written(program: str, size: tuple[int, int], environment: dict[str, str]) -> bytes:
    """Run a Python program of this folder on a terminal of some columns and rows."""
    inside, outside = pty.openpty()
    columns, rows = size
    fcntl.ioctl(outside, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LC_ALL") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name(program))],
        stdin=outside, stdout=outside, stderr=outside, env={**keep, **environment},
    )  # fmt: skip
    os.close(outside)
    data = bytearray()
    try:
        while chunk := _read(inside, data):
            data += chunk
        assert process.wait(WAIT_S) == 0, bytes(data[-3000:])
    finally:
        process.kill()
        process.wait(WAIT_S)
        os.close(inside)
    return bytes(data)


def _read(descriptor: int, before: bytearray) -> bytes:
    ready, _, _ = select.select([descriptor], [], [], WAIT_S)
    assert ready, f"the program says no more and does not end: {bytes(before[-3000:])!r}"
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the last end of the terminal was closed
        return b""
