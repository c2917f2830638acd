"""Both sides of a changed file as files of their own, and the programs that show them.

What an agent wrote is opened by nobody unless the user says so: a program that reads hostile bytes
may have faults. The files lie in a folder that only the user can enter, cannot be executed, and go
when the workstation ends, or at the next start if it was killed. Which program a desktop takes is
decided by a file's name, and some kinds of files are run by theirs (`.desktop`, `.exe`, `.jar`),
executable or not. So a desktop gets names that end as the contents ask for, and only contents that
are looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.services.owned_folders import OwnedFolder, sweep
from snapshot.content_kind import kind_of
from snapshot.lines import BINARY_WINDOW, is_binary

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDES: Final = ("snapshot", "agent")
"""What the two sides are called, in file names too."""

FOLDERS: Final = "cloche-sides-"
"""How the names of these folders begin in the temporary directory."""

MAX_NAME: Final = 80
"""Characters of a path that become part of a name; the end of it, with its extension."""

START_S: Final = 30.0
"""Seconds within which a program is begun; it then goes on alone."""

TEXT: Final = ".txt"
ENDINGS: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/bmp": ".bmp",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "image/heic": ".heic",
    "application/pdf": ".pdf",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "video/mp4": ".mp4",
    "video/x-msvideo": ".avi",
}
"""How the names end of what desktops show and never run."""

_STRANGE: Final = re.compile(r"[^A-Za-z0-9._-]+")

_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


class Outside:
    """Writes sides of files and opens them. `command` is what the user configured, else empty."""

    def __init__(self, command: Sequence[str] = ()) -> None:
        self._command = tuple(command)
        self._folder: OwnedFolder | None = None

    @staticmethod
    def sweep() -> None:
        """Remove the folders of workstations that were killed."""
        sweep(FOLDERS)

    @property
    def program(self) -> str:
        """The program that would open files; empty where there is none."""
        if self._command:
            return self._command[0]
        has_screen = any(os.environ.get(name) for name in _SCREENS)
        return "xdg-open" if has_screen and shutil.which("xdg-open") else ""

    def save(self, path: str, contents: Sequence[bytes | None]) -> list[Path]:
        """Write the sides that there are, in the order of SIDES; the files cannot be changed.

        Raises OSError, as for a full disk.
        """
        place = self._place()
        return [
            _written(place / f"{side}-{plain_name(path)}", content)
            for side, content in zip(SIDES, contents, strict=True)
            if content is not None
        ]

    def keep(self, name: str, content: bytes) -> Path:
        """Write one file of our own under its name. Raises OSError."""
        return _written(self._place() / name, content)

    def _place(self) -> Path:
        """Return a new folder, so that no name meets one that is there."""
        if self._folder is None:
            self._folder = OwnedFolder(FOLDERS)
        return Path(tempfile.mkdtemp(dir=self._folder.path))

    def open(self, files: Sequence[Path]) -> None:
        """Open files: with the user's command at once, else one after the other.

        Raises AppError `not-found` where the program is not there, `refused` where the desktop
        might run one of them, and OSError. Blocks for a moment.
        """
        if self._command:
            argvs = [[*self._command, *map(str, files)]]
        else:
            argvs = [["xdg-open", str(_for_desktop(file))] for file in files]
        for argv in argvs:
            self._start(argv)

    def _start(self, argv: list[str]) -> None:
        """Start a program that is nobody's child: `setsid` forks and is gone at once."""
        if shutil.which(argv[0]) is None:
            text = f"There is no program {argv[0]}."
            hint = "Name another one in config.yaml: ui: {open_with: [PROGRAM]}"
            raise AppError("not-found", text, hint)
        try:
            subprocess.run(
                ["setsid", "--fork", *argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                timeout=START_S,
                check=True,
            )
        except subprocess.SubprocessError as error:
            raise AppError(
                "not-found", f"{argv[0]} does not start.", "Try it in a shell"
            ) from error

    def close(self) -> None:
        """Remove the files; programs that show them go on."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def _written(target: Path, content: bytes) -> Path:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o400), "wb") as file:
        file.write(content)
    return target


def _for_desktop(file: Path) -> Path:
    """Return a name of a file that ends as its content asks for. Raises AppError, OSError."""
    with file.open("rb") as opened:
        ending = desktop_ending(opened.read(BINARY_WINDOW))
    if not ending:
        raise AppError(
            "refused",
            f"{file.name} is nothing that a desktop only shows; it is saved in {file.parent}.",
            "Name a program for it in config.yaml: ui: {open_with: [PROGRAM]}",
        )
    if file.name.endswith(ending):
        return file
    named = file.with_name(file.name + ending)
    os.link(file, named)
    return named


def desktop_ending(data: bytes) -> str:
    """Return the ending for a content by its beginning; empty where a desktop might run it."""
    kind = kind_of(data)
    if is_binary(data) or kind == "application/pdf":
        return ENDINGS.get(kind, "")
    return TEXT


def plain_name(path: str) -> str:
    """Return the last part of a path as a name of plain letters, with its extension."""
    plain = _STRANGE.sub("_", path.rpartition("/")[2]).lstrip(".-") or "file"
    return plain[-MAX_NAME:]
