"""Where claims on memory are kept: a small file in the folder of each session's sockets.

So a claim goes with its session. Which of them count is never believed but seen: a claim is alive
as long as its machine's process, before that as long as its keeper.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError
from app.files import read_regular
from app.locking import locked
from app.memory_claims import Claim
from app.paths import private_folder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

log = logging.getLogger(__name__)

CLAIM: Final = "memory.json"
LOCK: Final = "memory.lock"

MAX_CLAIM: Final = 4096
"""Bytes of a claim's file; a longer one is damage."""

_FOLDER: Final = re.compile(r"[0-9a-f]{8}\Z")


def deciding(runtime: Path) -> AbstractContextManager[None]:
    """Keep all others from deciding about memory. Raises AppError `busy` when somebody hangs."""
    return locked(private_folder(runtime) / LOCK)


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
