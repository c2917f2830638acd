"""Starting a session's keeper: detached, with a clean environment, exactly one at a time.

The client that finds nobody holding `keeper.lock` takes the lock itself and hands the locked
descriptor to the new keeper, so there is no moment in which a second client could start another.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from app.broker.handover import hand_over
from app.errors import AppError
from app.records import read_session
from vm import steps
from vm.egress.proxy import VARIABLES as PROXIES

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

KEPT_VARIABLES: Final = (
    "HOME",
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "CLOCHE_ACCEL",
    "CLOCHE_JAIL",
    steps.VARIABLE,
    *(spelt for name in PROXIES for spelt in (name, name.upper())),
)
"""Everything that a keeper needs of its starter's environment."""

START_S: Final = 15.0
"""Seconds that the keeper's first process may take until it has detached itself."""

LOG_LIMIT: Final = 1 << 20
"""Size in bytes at which `keeper.log` is begun anew."""


def launcher() -> Path:
    """Return the path of `cloche.py`: beside our packages, or above them in a wheel."""
    packages = Path(__file__).resolve().parent.parent.parent
    beside = packages / "cloche.py"
    return beside if beside.is_file() else packages.parent / "cloche.py"


def role_command(role: str, *arguments: str) -> list[str]:
    """Return the argument vector of one of our own processes."""
    return [sys.executable, "-P", str(launcher()), "_role", role, *arguments]


def clean_environment() -> dict[str, str]:
    """Return what of our environment a keeper may see."""
    return {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}


def take_lock(folder: Path) -> int | None:
    """Return a descriptor that holds the keeper's lock, or None when a keeper holds it.

    Raises AppError `not-found` when somebody else removed the session.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    path = folder / "keeper.lock"
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError as error:
        raise gone(folder.name) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    try:
        # whoever held it before may have removed the session with it
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    except FileNotFoundError:
        pass
    os.close(descriptor)
    raise gone(folder.name)


def gone(session: str) -> AppError:
    """Return the error of a session that is not there, or no longer."""
    return AppError("not-found", f"There is no session '{session}'.", "See them: cloche ps")


def spawn_keeper(folder: Path, lock: int, arguments: Sequence[str] = ()) -> None:
    """Start the keeper of `folder` with the held `lock`; returns when it is on its own.

    Blocks for a moment; closes `lock` here (the keeper has inherited it). What of this process's
    environment the session's broker needs goes along in memory.
    """
    command = role_command("keeper", str(folder), "--lock", str(lock), *arguments)
    try:
        with _handed_over(folder) as variables:
            named = [word for one in variables for word in ("--variables", str(one))]
            status = _detached(folder, [*command, *named], (lock, *variables))
    finally:
        os.close(lock)
    if status != 0:
        raise _not_started(folder)


@contextmanager
def _handed_over(folder: Path) -> Generator[tuple[int, ...]]:
    """Hold the variables that the session's broker looks for, in a memory file, if it has one."""
    names = _variables(folder)
    held = () if names is None else (hand_over(os.environ, names),)
    try:
        yield held
    finally:
        for one in held:
            os.close(one)


def _detached(folder: Path, command: Sequence[str], passed: Sequence[int]) -> int:
    """Run what detaches itself; return the exit status of its first process.

    Raises AppError `keeper-lost` when it does not come back, `not-found` without the folder.
    """
    try:
        with _log(folder) as log:
            done = subprocess.run(
                command,
                cwd=folder,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=passed,
                start_new_session=True,
                timeout=START_S,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise _not_started(folder) from error
    except FileNotFoundError as error:
        raise gone(folder.name) from error
    return done.returncode


def _variables(folder: Path) -> tuple[str, ...] | None:
    """Return the variables that the session's broker looks for; None: it has no broker."""
    try:
        broker = read_session(folder).broker
    except (AppError, FileNotFoundError):
        return None  # the keeper says what is wrong with it
    return tuple(broker.variables()) if broker.services else None


def _log(folder: Path) -> BinaryIO:
    path = folder / "keeper.log"
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        os.replace(path, folder / "keeper.log.old")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _not_started(folder: Path) -> AppError:
    return AppError(
        "keeper-lost", "The session's keeper did not start.", f"Read: cloche logs {folder.name}"
    )


async def ensure_keeper(folder: Path, deadline: float, arguments: Sequence[str] = ()) -> bool:
    """Start a keeper unless one runs; True when this call started it."""
    lock = take_lock(folder)
    if lock is None:
        return False
    if time.monotonic() > deadline:
        os.close(lock)
        raise _not_started(folder)
    await asyncio.to_thread(spawn_keeper, folder, lock, arguments)
    return True
