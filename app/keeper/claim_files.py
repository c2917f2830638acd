"""Where claims on memory are kept: a small file in the folder of each session's sockets.

So a claim goes with its session. Which of them count is never believed but seen: a claim is alive
as long as its machine's process, before that as long as its keeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import socket
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError
from app.files import read_regular
from app.memory_claims import Claim
from app.paths import private_folder

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

log = logging.getLogger(__name__)

CLAIM: Final = "memory.json"
LOCK: Final = "memory.lock"

LOCK_S: Final = 10.0
"""Longest wait for the lock, which is held for some milliseconds."""

MAX_CLAIM: Final = 4096
"""Bytes of a claim's file; a longer one is damage."""

_RETRY_S: Final = 0.01
_FOLDER: Final = re.compile(r"[0-9a-f]{8}\Z")


@contextlib.contextmanager
def locked(runtime: Path) -> Generator[None]:
    """Keep all others from deciding about memory. Raises AppError `busy` when somebody hangs."""
    path = private_folder(runtime) / LOCK
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    until = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                hint = f"See who holds it: fuser -v '{path}'"
                raise AppError("busy", f"Somebody holds {path} all the time.", hint) from None
            time.sleep(_RETRY_S)
        else:
            return


def living(runtime: Path) -> dict[Path, Claim]:
    """Return the claims that are alive, by the folders of sockets they lie in."""
    found: dict[Path, Claim] = {}
    with os.scandir(runtime) as folders:
        for entry in folders:
            if _FOLDER.match(entry.name) and entry.is_dir(follow_symlinks=False):
                folder = runtime / entry.name
                claim = read(folder)
                if claim is not None and _alive(folder, claim):
                    found[folder] = claim
    return found


def read(folder: Path) -> Claim | None:
    """Return the claim in a folder of sockets, if there is one; a damaged one is none."""
    try:
        return msgspec.json.decode(read_regular(folder / CLAIM, MAX_CLAIM), type=Claim)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.MsgspecError, AppError) as error:
        log.warning("a claim on memory cannot be read: %s", error)
        return None


def _alive(folder: Path, claim: Claim) -> bool:
    if claim.machine is not None:
        return claim.machine.alive
    # a keeper that was killed just now may have started a machine that nobody wrote down yet
    return claim.keeper.alive or (claim.granted and _listens(folder / "vm" / "qmp.sock"))


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # its queue is full, so somebody is there
        except OSError:
            return False
    return True
