"""The memory of what was found out about this host: a small file of the user's own.

It only saves time. Whatever is wrong with it (damaged, a link, somebody else's, open to others for
writing, unreadable), it counts as empty, and the question is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import stat
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

MAX_FILE = 65536
MAX_VERDICTS = 32
"""Kernels and QEMUs that one host sees in a year; the oldest are forgotten."""

MAX_WHY = 600
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether guests run; if not, `why`: the end of a sentence that begins with "because"."""

    works: bool
    why: str = ""


def recall(path: Path, key: str) -> Verdict | None:
    """Return what is remembered under `key`, None when nothing is."""
    return _verdict(_all(path).get(key))


def remember(path: Path, key: str, verdict: Verdict) -> None:
    """Remember a verdict. One that cannot be kept is found out again next time."""
    known = _all(path)
    known.pop(key, None)
    known[key] = asdict(verdict)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(dict(list(known.items())[-MAX_VERDICTS:]), file)
        draft.replace(path)


@contextlib.asynccontextmanager
async def turn(path: Path, patience_s: float) -> AsyncGenerator[None]:
    """Let one process after the other find out, so that the second finds the first one's answer.

    Whoever waited for `patience_s`, or has no place for the lock, goes on without it.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
            stack.callback(os.close, lock)
            await _locked(lock, time.monotonic() + patience_s)
        yield


async def _locked(lock: int, until: float) -> bool:
    while time.monotonic() < until:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(POLL_S)
        else:
            return True
    return False


def _all(path: Path) -> dict[str, object]:
    try:
        found: object = json.loads(_own_bytes(path))
    except (OSError, ValueError, RecursionError):
        return {}  # never asked, or damaged
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _own_bytes(path: Path) -> bytes:
    """Return a file's bytes if it is a plain file that only this user can write."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            raise PermissionError(f"{path} is not a file of yours")
        if facts.st_mode & 0o022:
            raise PermissionError(f"{path} can be written by others")
        return os.read(handle, MAX_FILE)
    finally:
        os.close(handle)


def _verdict(value: object) -> Verdict | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    works, why = fields.get("works"), fields.get("why")
    if not isinstance(works, bool) or not isinstance(why, str) or len(why) > MAX_WHY:
        return None
    return Verdict(works, why)
