"""A lock for changes of a file that several processes make: held for milliseconds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

LOCK_WAIT_S: Final = 10.0
"""How long somebody else may hold it; a hundred times what a change takes."""

RETRY_S: Final = 0.01


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock at `path`, which is made where there is none.

    Raises AppError `busy` when somebody else holds it for long.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        end = time.monotonic() + LOCK_WAIT_S
        while not _try_lock(descriptor):
            if time.monotonic() > end:
                hint = f"See who holds it: fuser -v '{path}'"
                raise AppError("busy", f"Somebody holds {path} all the time.", hint)
            time.sleep(RETRY_S)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
