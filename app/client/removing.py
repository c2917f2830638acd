"""The end of a session: its machine is stopped, its keeper goes, its folder is deleted."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Final

from app import records
from app.client.fleet import ACTIVE, stop_session
from app.client.launch import gone, take_lock
from app.client.session import SessionClient
from app.errors import AppError
from app.folders import delete_session
from vm.steps import reached

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths

LOOK_S: Final = 0.1
"""Between two looks at whether the keeper has ended."""

DISMISS_S: Final = 30.0
"""Seconds in which an idle keeper that was asked to go must have gone."""


async def remove_session(paths: Paths, session_id: str, *, force: bool = False) -> None:
    """Delete a session's folder; refuses while it runs unless `force` (which stops it).

    Raises AppError, and NotStopped when its machine lives on.
    """
    folder = paths.session(session_id)
    info = records.one_session(folder)
    if info is None and not folder.is_dir():
        raise gone(session_id)
    if info is not None and info.state in ACTIVE:
        if not force:
            raise AppError(
                "busy",
                f"The session {session_id} is {info.state}.",
                f"Stop it first: cloche stop {session_id} (or: cloche rm --force {session_id})",
            )
        await stop_session(paths, session_id)
    lock = await _dismiss_keeper(folder, paths)
    try:
        reached("remove.locked")
        await _end_machine(folder, force=force)
        await asyncio.to_thread(delete_session, folder, paths.sockets(session_id))
    except FileNotFoundError as error:  # somebody else removed it in the same moment
        raise gone(session_id) from error
    finally:
        os.close(lock)


async def _dismiss_keeper(folder: Path, paths: Paths) -> int:
    """Return holding the keeper's lock: an idle keeper is asked to go, a new one cannot start."""
    deadline = time.monotonic() + DISMISS_S
    while (lock := take_lock(folder)) is None:
        try:
            # never starts one: it may have ended in this very moment
            async with await SessionClient.open(paths, folder.name, start=False) as client:
                await client.quit()
        except AppError as error:
            _refuse_used(error, folder)
        if time.monotonic() > deadline:
            raise AppError(
                "busy",
                f"The keeper of {folder.name} does not end.",
                f"Read: cloche logs {folder.name}",
            )
        await asyncio.sleep(LOOK_S)
    return lock


def _refuse_used(error: AppError, folder: Path) -> None:
    """Raise where a session that is to be removed is in use again; a keeper that goes is no error.

    Somebody may have resumed it since it was looked at.
    """
    info = records.one_session(folder) if error.code == "busy" else None
    if info is not None and info.state in ACTIVE:
        text = f"The session {folder.name} is {info.state} again: somebody else resumed it."
        raise AppError("busy", text, f"Remove it all the same: cloche rm --force {folder.name}")


async def _end_machine(folder: Path, *, force: bool) -> None:
    """See to it that no machine of a session runs, noted or not."""
    try:
        machine = records.read_state(folder).machine
    except AppError:
        machine = None  # a record that cannot be read is what `rm --force` is for
    if machine is None or not machine.alive:
        machine = await asyncio.to_thread(records.find_machine, folder)
    if machine is None:
        return
    if not force:
        raise AppError(
            "not-stopped",
            f"The session's machine still runs as process {machine.pid}.",
            f"End it with the session: cloche rm --force {folder.name}",
        )
    from vm.machine.signals import end_process

    await end_process(machine.pid, machine.start_time)
