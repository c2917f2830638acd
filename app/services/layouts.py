"""How the user left the fleet screen, by workspace: remembered from one run to the next.

One small file for each workspace, `$XDG_STATE_HOME/cloche/layouts/<hash of its path>.json`. Nothing
depends on it: a file that is missing, damaged or hostile counts as none, and what a read one says
is only a wish (`app.ui.grid` decides what fits). Reading and writing happen in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from app.errors import AppError
from app.files import read_regular, write_atomic
from app.paths import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
"""Version of the file; another one counts as no file."""

MAX_BYTES = 16 << 10
"""A layout is some hundred bytes long; more than this is damage."""

KEPT = 200
"""Workspaces that are remembered; of more the oldest are dropped."""

MAX_LISTED = 5000
"""Names in the folder that are looked at when the oldest are dropped."""

WRITE_SECONDS = 0.5
"""How long changes are gathered before they are written."""

ShortText = Annotated[str, msgspec.Meta(max_length=64)]
PaneCount = Annotated[int, msgspec.Meta(ge=1, le=9)]


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is remembered of the fleet screen."""

    panes: PaneCount = 2
    """Wished panes on a screen with room for a rail."""
    panes_low: PaneCount = 1
    """Wished panes on a small screen."""
    zoomed: bool = False
    places: Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=9)] = ()
    """Session ids in the order of their places; empty where a place is free."""
    order: ShortText = ""
    """How the rail lists sessions; empty for the usual order."""
    current: ShortText = ""
    """The session under the cursor."""
    format: int = FORMAT


class LayoutsPort(Protocol):
    """Where the fleet screen keeps its layout."""

    async def load(self, workspace: str) -> Layout:
        """Return what is remembered of a workspace, or the usual layout."""
        ...

    def remember(self, workspace: str, layout: Layout) -> None:
        """Keep a layout, soon; returns at once."""
        ...

    async def close(self) -> None:
        """Write what is not written yet."""
        ...


class NoLayouts:
    """Remembers nothing."""

    async def load(self, workspace: str) -> Layout:
        """Return the usual layout."""
        return Layout()

    def remember(self, workspace: str, layout: Layout) -> None:
        """Forget it."""

    async def close(self) -> None:
        """Have nothing to write."""


class Layouts:
    """Layouts in files. A write that fails loses a layout and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[str, Layout] = {}
        self._closing = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    async def load(self, workspace: str) -> Layout:
        """Return what is remembered of a workspace, or the usual layout."""
        return await asyncio.to_thread(read_layout, self._folder, workspace)

    def remember(self, workspace: str, layout: Layout) -> None:
        """Write a layout soon; of several in short order only the last one."""
        self._waiting[workspace] = layout
        if self._writer is None:
            self._writer = asyncio.create_task(self._write(), name="layouts")

    async def _write(self) -> None:
        try:
            while self._waiting:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), WRITE_SECONDS)
                waiting, self._waiting = self._waiting, {}
                for workspace, layout in waiting.items():
                    await asyncio.to_thread(write_layout, self._folder, workspace, layout)
        finally:
            self._writer = None

    async def close(self) -> None:
        """Write what is not written yet."""
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])


def layout_file(folder: Path, workspace: str) -> Path:
    """Return the file of a workspace; its path may hold any bytes that a file system takes."""
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    return folder / f"{digest}.json"


def read_layout(folder: Path, workspace: str) -> Layout:
    """Return what is remembered of a workspace; the usual layout when nothing readable is."""
    try:
        data = read_regular(layout_file(folder, workspace), MAX_BYTES)
        found = msgspec.json.decode(data, type=Layout)
    except (AppError, OSError, ValueError, RecursionError):
        return Layout()  # no file, no layout's file, or one by another version
    return found if found.format == FORMAT else Layout()


def write_layout(folder: Path, workspace: str, layout: Layout) -> bool:
    """Write a layout and drop the oldest ones; False when that cannot be done."""
    try:
        private_folder(folder)
        write_atomic(layout_file(folder, workspace), msgspec.json.encode(layout))
        _drop_oldest(folder)
    except (AppError, OSError, ValueError):
        return False  # a full disk, a folder that is not ours: the next run begins as usual
    return True


def _drop_oldest(folder: Path) -> None:
    """Keep the newest layouts, and no file that a write left behind."""
    found = sorted(_listed(folder), reverse=True)
    for _, path in found[KEPT:]:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _listed(folder: Path) -> Iterator[tuple[float, Path]]:
    """Yield regular files with their times; a bounded number, also of a folder somebody filled."""
    with os.scandir(folder) as entries:
        for _, entry in zip(range(MAX_LISTED), entries, strict=False):
            if entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)
