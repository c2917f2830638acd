"""Notices that a file with rules was edited by hand.

By looking, not by the system's notifications: those miss an edit of what `rules.yaml` is a link to,
and anything on a network file system. A file that is just being written is left alone until it
stays as it is from one look to the next: half of a file could be valid, and lack the denies.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from app.config import CONFIG_FILE, PROJECT_FILE
from app.egress.rules_file import FILE

if TYPE_CHECKING:
    from pathlib import Path

LOOK_S: Final = 1.0
"""How often is looked; three files that the system knows cost some microseconds."""

MISTAKE: Final = "Rules that you edited do not hold, those from before do:"
"""Begins the notice of a session that could not take an edit of a file."""

Print = tuple[tuple[int, int, int, int] | None, ...]
"""For each file inode, size and both times in nanoseconds; None where there is none."""


def fingerprint(config: Path, workspace: Path | None) -> Print:
    """Return what tells one state of all files that a policy is composed of from another."""
    files = [config / FILE, config / CONFIG_FILE]
    files += [] if workspace is None else [workspace / PROJECT_FILE]
    return tuple(map(_print_of, files))


def _print_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # reading it says why
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Edits:
    """Tells when the files are to be read: they differ from what was read, and rest."""

    def __init__(self) -> None:
        self._read: Print | None = None
        self._seen: Print | None = None

    def read(self, now: Print) -> None:
        """They are read as they are now, or were found to hold a mistake."""
        self._read = now

    def rests(self, now: Print) -> bool:
        """Take a look; True when an edit is complete."""
        seen, self._seen = self._seen, now
        return now == seen and now != self._read
