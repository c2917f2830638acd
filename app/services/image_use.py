"""Which sessions need which versions of images, from disk alone."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.errors import AppError
from app.files import read_regular
from app.homes import session_folders
from app.records import IMAGE_DIGEST, read_session, valid_id

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths
    from vm.image.removal import Version

_DIGEST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Needs:
    """Sessions by what they stand on."""

    digests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Sessions that were made on this version, and boot from it for ever."""
    names: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Sessions that were not made yet, and may take any version of this name."""

    def of(self, version: Version) -> tuple[str, ...]:
        """Return the sessions that need a version, in order of age."""
        waiting = (self.names.get(name, []) for name in {*version.names, version.recipe})
        made = self.digests.get(version.digest, [])
        return tuple(sorted({*made, *(session for some in waiting for session in some)}))


def needs(paths: Paths) -> Needs:
    """Return what all sessions on this store need, those of other state homes too.

    One that cannot be read needs nothing. Raises AppError `unreadable` where a session may need
    something but cannot be asked.
    """
    found = Needs()
    for home in session_folders(paths):
        try:
            sessions = sorted(os.listdir(home))
        except FileNotFoundError:
            continue
        for session in filter(valid_id, sessions):
            _note(home / session, found)
    return found


def _note(folder: Path, found: Needs) -> None:
    try:
        digest = read_regular(folder / IMAGE_DIGEST, _DIGEST_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        _note_waiting(folder, found)
    else:
        found.digests[digest.strip()].append(folder.name)


def _note_waiting(folder: Path, found: Needs) -> None:
    try:
        found.names[read_session(folder).image].append(folder.name)
    except FileNotFoundError:
        return  # gone, or not yet begun
    except AppError as error:
        if error.code != "damaged":
            raise
