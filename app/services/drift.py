"""Notices when somebody changes what a review is about in the real workspace.

Only the folders of changed paths are watched, not what is below them, so that a workspace of
hundreds of thousands of files costs no more than a small one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from pathlib import Path

MAX_FOLDERS: Final = 1024
"""Folders that are watched for one review; the system allows some 8,000 watches to a user."""

CALM_MS: Final = 200
"""Changes within so many milliseconds are told once."""


def folders_of(workspace: Path, paths: Iterable[str]) -> frozenset[Path]:
    """Return the folders to watch: each changed path's own, or the first above it that is there."""
    found: set[Path] = set()
    for folder in {os.path.dirname(path) for path in paths}:
        place = workspace / folder
        while not place.is_dir() and place != workspace and workspace in place.parents:
            place = place.parent
        if len(found) < MAX_FOLDERS and place.is_dir():
            found.add(place)
    return frozenset(found)


async def moves(folders: frozenset[Path]) -> AsyncGenerator[frozenset[str]]:
    """Yield names in the folders each time that some changed; ends when there is no folder."""
    if not folders:
        return
    watching = awatch(
        *folders,
        watch_filter=None,
        debounce=CALM_MS,
        recursive=False,
        ignore_permission_denied=True,
    )
    async for changes in watching:
        yield frozenset(os.path.basename(path) for _, path in changes)
