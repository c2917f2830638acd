"""Which names of an agent may be written into a workspace, and where a link may point."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING, Final

from .safe_text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PATH: Final = 4095
"""PATH_MAX of Linux without its final NUL."""

MAX_NAME: Final = 255
"""NAME_MAX of the usual file systems."""

_IGNORED_BY_HFS: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Code points that HFS+ skips when it compares names."""

_SHORT_NAME: Final = re.compile(r"git~\d+")
"""Short names that NTFS makes for `.git`."""

_SHORT_STEM: Final = 8
_SHORT_ENDING: Final = 3
"""Longest parts of a name that NTFS needs not abbreviate."""

_LINK_FREE: Final = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap"})
"""Files that git must never read through a link."""


class NameRefused(ValueError):
    """A name that is not written; the message is one phrase that says why."""


def split_path(path: bytes) -> list[bytes]:
    """Return the components of a path below the workspace.

    Raises:
        NameRefused: the path is absolute, climbs, is too long or leads into a repository's `.git`.

    """
    parts = path.split(b"/")
    if path.startswith(b"/"):
        raise NameRefused("the path is absolute")
    if len(path) > MAX_PATH or any(len(part) > MAX_NAME for part in parts):
        raise NameRefused("the path is too long")
    for part in parts:
        if part in (b"", b".", b"..") or b"\0" in part:
            raise NameRefused("the path is not a plain path inside of the workspace")
        if is_git_dir(part):
            raise NameRefused("the path leads into .git or a name that some systems take for it")
    return parts


def is_git_dir(name: bytes) -> bool:
    """Return whether some file system takes this component for `.git`."""
    text = _IGNORED_BY_HFS.sub("", decode(name))
    return any(_is_git(plain_name(piece)) for piece in re.split(r"[\\/]", text))


def _is_git(plain: str) -> bool:
    return plain == ".git" or _SHORT_NAME.fullmatch(plain) is not None


def plain_name(name: str) -> str:
    """Return one component in the form in which careless file systems compare it.

    Case, Unicode form, what HFS+ skips, streams and final dots and blanks of Windows make no
    difference there.
    """
    seen = _IGNORED_BY_HFS.sub("", name).split(":", 1)[0]
    return unicodedata.normalize("NFKC", seen).casefold().rstrip(" .")


def short_names(names: Iterable[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return which names NTFS can abbreviate, by start and ending of their short form.

    The start is cut to each length that a number of one to five digits leaves for it: `makefi~1.am`
    is found under `("makefi", "am")`, `makef~12.am` under `("makef", "am")`.
    """
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for name in sorted(names):
        stem, _, ending = name.lstrip(".").rpartition(".")
        stem, ending = (stem, ending) if stem else (ending, "")
        fits = len(stem) <= _SHORT_STEM and len(ending) <= _SHORT_ENDING and "." not in stem
        if fits and not name.startswith("."):
            continue  # short as it is
        bare = re.sub(r"[. ]", "", stem)
        for length in range(2, 7):
            key = (bare[:length], ending[:_SHORT_ENDING])
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), name)))
    return found


def check_link(path: bytes, target: bytes) -> None:
    """Refuse a link that leads out of the workspace or into `.git`.

    Raises:
        NameRefused: it is absolute, climbs out, or git would be misled by it.

    """
    name = posixpath.basename(decode(path)).casefold()
    if name in _LINK_FREE:
        raise NameRefused("git must not read this file through a link")
    if not target or b"\0" in target or len(target) > MAX_PATH:
        raise NameRefused("the link's target is not a path")
    if target.startswith(b"/"):
        raise NameRefused("the link is absolute")
    if leaves(path, target):
        raise NameRefused("the link leads out of the workspace")
    if any(is_git_dir(part) for part in target.split(b"/") if part):
        raise NameRefused("the link leads into .git")


def leaves(path: bytes, target: bytes) -> bool:
    """Return whether a relative target climbs above the workspace, followed literally."""
    depth = path.count(b"/")
    for part in target.split(b"/"):
        if part == b"..":
            depth -= 1
        elif part not in (b"", b"."):
            depth += 1
        if depth < 0:
            return True
    return False


def alike(name: bytes) -> str:
    """Return what two names have in common that differ in case or Unicode form only."""
    return unicodedata.normalize("NFC", decode(name)).casefold()
