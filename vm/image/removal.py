"""Built versions of images, and how they are taken out of the store: whole, or not at all.

What is removed first loses its name and gets one that means nothing, in one rename; only then its
files go. A kill in between leaves rubbish that the next removal or build clears away, and never
half an image. Who needs a version is for the caller to know.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from vm.errors import VMError
from vm.image import store
from vm.image.tools import one_sentence

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

BLOCK: Final = 512
"""The unit of st_blocks (stat(2)), whatever the file system's own is."""


@dataclass(frozen=True, slots=True)
class Version:
    """One built version: a folder of `images/.built`."""

    digest: str
    folder: Path
    names: tuple[str, ...]
    """The names that mean this version now; none for an older one."""
    recipe: str
    """The name that it was built for; empty when its record cannot be read."""
    built: str
    """UTC, ISO 8601; empty when its record cannot be read."""


def versions(store_folder: Path) -> list[Version]:
    """Return every built version, damaged ones too, the newest first."""
    home = store_folder / "images" / store.BUILT
    named = {name: store.pointed(store_folder, name) for name in store.names(store_folder)}
    found = [
        _version(folder, named)
        for folder in (home.iterdir() if home.is_dir() else ())
        if store.is_digest(folder.name)
    ]
    return sorted(found, key=lambda one: (one.built, one.digest), reverse=True)


def _version(folder: Path, named: dict[str, str]) -> Version:
    names = tuple(name for name, digest in named.items() if digest == folder.name)
    try:
        record = store.decode_record(folder)
    except (OSError, msgspec.MsgspecError):
        return Version(folder.name, folder, names, "", "")
    return Version(folder.name, folder, names, record.name, record.built)


def size_of(folders: Iterable[Path]) -> int:
    """Return the bytes of disk that go free when all these folders go.

    Versions share a base system by hard links: it counts where no other folder has a link to it.
    """
    links: dict[tuple[int, int], list[os.stat_result]] = {}
    for folder in folders:
        for entry in os.scandir(folder):
            found = entry.stat(follow_symlinks=False)
            links.setdefault((found.st_dev, found.st_ino), []).append(found)
    return sum(
        files[0].st_blocks * BLOCK for files in links.values() if len(files) >= files[0].st_nlink
    )


@contextlib.contextmanager
def store_held(store_folder: Path) -> Generator[None]:
    """Hold the store's build lock: nothing is built meanwhile. VMError while somebody builds."""
    path = store_folder / "images" / ".lock"
    if not path.parent.is_dir():
        yield
        return
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise VMError(
                "An image is being built.", "Do it again when that is done: cloche image list"
            ) from error
        yield


def remove(store_folder: Path, names: Iterable[str], gone: Iterable[Version]) -> None:
    """Take names and versions out of the store; `store_held` must be held.

    Raises VMError when the system refuses; what was named in vain is passed over.
    """
    images = store_folder / "images"
    with one_sentence("Removing the image"):
        for name in names:
            _unname(images / name)
        for version in gone:
            with contextlib.suppress(FileNotFoundError):
                os.rename(version.folder, _doomed(images))
        for doomed in images.glob(f"{store.REMOVED}*"):
            shutil.rmtree(doomed)


def _unname(path: Path) -> None:
    """Remove a name; a name that is itself the image's folder goes with all that is in it."""
    try:
        path.unlink()
    except IsADirectoryError:
        os.rename(path, _doomed(path.parent))
    except FileNotFoundError:
        return


def _doomed(images: Path) -> Path:
    return images / f"{store.REMOVED}{secrets.token_hex(8)}"
