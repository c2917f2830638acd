"""What clients and keepers both know of forwarded ports: their file, their rules, their errors."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError
from app.files import read_regular, write_atomic
from app.protocol import Forward

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

log = logging.getLogger(__name__)

FILE: Final = "ports.json"
HOST: Final = "127.0.0.1"
MAX_FORWARDS: Final = 16
MAX_PORT: Final = 65535


def read_forwards(folder: Path) -> tuple[Forward, ...]:
    """Return the ports that a session remembers; none where the file says nothing of use."""
    try:
        return msgspec.json.decode(read_regular(folder / FILE), type=tuple[Forward, ...])
    except FileNotFoundError:
        return ()
    except msgspec.MsgspecError as error:
        log.warning("the session's ports cannot be read: %s", error)
        return ()


def write_forwards(folder: Path, forwards: Iterable[Forward]) -> None:
    """Remember ports. Raises OSError."""
    plain = [Forward(one.host_port, one.guest_port) for one in forwards]
    write_atomic(folder / FILE, msgspec.json.encode(plain))


def check_forward(forward: Forward) -> None:
    """Raise AppError `usage` for ports that there are not."""
    for port, least in ((forward.host_port, 0), (forward.guest_port, 1)):
        if not least <= port <= MAX_PORT:
            raise AppError("usage", f"{port} is no port.", "cloche port ID HOST:GUEST")


def not_bound(port: int, error: OSError) -> AppError:
    """Return the error of a port that could not be taken."""
    if error.errno == errno.EADDRINUSE:
        hint = "Take another, or 0 for a free one."
        return AppError("busy", f"Somebody listens on port {port} already.", hint)
    text = f"Port {port} cannot be taken: {error.strerror or error}."
    return AppError("system", text, "Take one from 1024 on, or 0 for a free one.")
