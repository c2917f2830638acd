"""Paths of a tree: bytes relative to its root, without a leading slash; b"" is the root itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def name_of(path: bytes) -> bytes:
    """Give the last part of a path."""
    return path[path.rfind(b"/") + 1 :]


def folder_of(path: bytes) -> bytes:
    """Give the folder that holds a path."""
    return path[: max(path.rfind(b"/"), 0)]


def join(folder: bytes, name: bytes) -> bytes:
    """Give the path of `name` in `folder`."""
    return folder + b"/" + name if folder else name


def folders_above(path: bytes) -> Iterator[bytes]:
    """Give the folders that hold a path, the nearest first, without the root."""
    cut = path.rfind(b"/")
    while cut > 0:
        yield path[:cut]
        cut = path.rfind(b"/", 0, cut)
