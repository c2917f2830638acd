"""Sessions' folders as a whole: they come and go in one step, and what a kill left half done goes.

A new folder is filled under a name that no session has, and gets its own when it is complete; one
that is removed loses its own name first. Whoever does either holds `sessions.lock`, shared. So
whoever gets that lock alone knows that nobody is at work on such a folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import TYPE_CHECKING, Final

from app.files import sync_folder
from app.paths import private_folder
from app.records import valid_id
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from app.paths import Paths

NEW: Final = ".new-"
REMOVED: Final = ".removed-"
LOCK: Final = "sessions.lock"


@contextlib.contextmanager
def _locked(sessions: Path, how: int) -> Generator[bool]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(sessions.with_name(LOCK), flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_folder(paths: Paths, session_id: str) -> Generator[Path]:
    """Yield the folder of a session to be; it is there for everybody only after the block.

    An error in the block removes it.
    """
    private_folder(paths.state)
    private_folder(paths.sessions)
    draft = paths.sessions / f"{NEW}{session_id}"
    with _locked(paths.sessions, fcntl.LOCK_SH):
        draft.mkdir(mode=0o700)
        try:
            reached("run.folder")
            yield draft
            sync_folder(draft)
            reached("run.written")
            os.rename(draft, paths.session(session_id))
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(paths.sessions)


def delete_session(folder: Path, sockets: Path) -> None:
    """Remove a session's folder and its sockets'; whoever calls it holds the keeper's lock.

    Raises OSError as the system does.
    """
    with _locked(folder.parent, fcntl.LOCK_SH):
        # under a name that is no id it is gone for everybody at once, however long the rest takes
        doomed = folder.with_name(f"{REMOVED}{folder.name}")
        os.replace(folder, doomed)
        sync_folder(folder.parent)
        reached("remove.renamed")
        _delete(doomed, sockets)


def _delete(doomed: Path, sockets: Path) -> None:
    # the folder goes last: as long as it is there, somebody knows that there is something to do
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(sockets)
    reached("remove.sockets")
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(doomed)


def sweep(paths: Paths) -> tuple[str, ...]:
    """Remove what killed commands left of sessions; the ids of those that were being removed.

    Does nothing while another command makes or removes a session, and never waits for one.
    """
    if not any(map(_is_left, _names(paths.sessions))):
        return ()
    with _locked(paths.sessions, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        left = [name for name in _names(paths.sessions) if _is_left(name)] if alone else []
        for name in left:
            _delete(paths.sessions / name, paths.sockets(_id_in(name), paths.sessions / name))
    return tuple(_id_in(name) for name in left if name.startswith(REMOVED))


def _names(sessions: Path) -> list[str]:
    try:
        return os.listdir(sessions)
    except FileNotFoundError:
        return []


def _id_in(name: str) -> str:
    return name.removeprefix(NEW).removeprefix(REMOVED)


def _is_left(name: str) -> bool:
    return name.startswith((NEW, REMOVED)) and valid_id(_id_in(name))
