"""Named moments in the lives of machines and sessions, at which tests kill what they like.

`reached` does nothing at all unless the environment of our own process names a socket of the same
user; nothing that a guest, a workspace or a configuration says can put it there. It then says where
we are and waits for one byte, so that a test may end us, or a machine, at exactly that moment. It
takes nothing else in, and no answer changes what we do. Every wait ends by itself.
"""

from __future__ import annotations

import os
import socket
import stat
from typing import Final

VARIABLE: Final = "CLOCHE_STEPS"
"""Path of the socket that wants to know; only tests set it."""

WAIT_S: Final = 120.0
"""Longest stay at one step, for a listener that forgets us."""


def reached(name: str) -> None:
    """Say that a step is reached, to whoever the environment names; blocks only then."""
    place = os.environ.get(VARIABLE)
    if place:
        _tell(place, name)


def _tell(place: str, name: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as line:
        line.settimeout(WAIT_S)
        try:
            found = os.lstat(place)
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
                return
            line.connect(place)
            line.sendall(f"{os.getpid()} {name}\n".encode())
            line.recv(1)
        except OSError:
            return  # nobody listens (any more): whatever went on would go on without it, too
