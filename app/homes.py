"""Every state home whose sessions stand on one store, so that nobody removes what another needs.

Sockets, orphans and removals never leave their own state home. Images are shared by all of them: a
home is noted beside the store when its first session begins, and asked when an image shall go.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.files import read_regular, write_atomic
from app.paths import private_folder

if TYPE_CHECKING:
    from app.paths import Paths

FOLDER: Final = "homes"
MAX_PATH: Final = 4096
"""Longest path in bytes that the kernel takes (PATH_MAX)."""


def note_home(paths: Paths) -> None:
    """Note that this state home has sessions on this store; quick once it is noted.

    Raises OSError and AppError as files and folders do.
    """
    place = os.fsencode(paths.sessions)
    note = paths.data / FOLDER / hashlib.sha256(place).hexdigest()[:16]
    if not note.is_file():
        private_folder(note.parent)
        write_atomic(note, place)


def session_folders(paths: Paths) -> list[Path]:
    """Return the sessions of all state homes: this one's first, then those that were noted.

    A home that is not there, gone or not mounted, has none. Raises AppError `unreadable`.
    """
    try:
        notes = sorted((paths.data / FOLDER).iterdir())
    except FileNotFoundError:
        notes = []
    noted = [Path(os.fsdecode(read_regular(note, MAX_PATH))) for note in notes if note.is_file()]
    others = [place for place in noted if place.is_absolute() and place != paths.sessions]
    return [paths.sessions, *others]
