"""Where Cloche keeps things: XDG folders, the session's folder, sockets short enough for Linux.

A Unix socket path holds at most 107 bytes, so sockets never lie under a home: they live in
`$XDG_RUNTIME_DIR/cloche/<8 hex>/`, else in a 0700 folder of the temporary directory.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import AppError

RUNTIME_NOTE: Final = "runtime"
"""The session's file that names the runtime folder of its last keeper."""

MAX_NOTE: Final = 4096


def _xdg(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / fallback


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one user (or of one test)."""

    state: Path
    data: Path
    config: Path
    cache: Path
    runtime: Path

    @classmethod
    def from_environment(cls) -> Paths:
        """Read the XDG variables; nothing is created."""
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        base = Path(runtime) if runtime.startswith("/") else None
        return cls(
            state=_xdg("XDG_STATE_HOME", ".local/state") / "cloche",
            data=_xdg("XDG_DATA_HOME", ".local/share") / "cloche",
            config=_xdg("XDG_CONFIG_HOME", ".config") / "cloche",
            cache=_xdg("XDG_CACHE_HOME", ".cache") / "cloche",
            runtime=base / "cloche" if base else fallback_runtime(),
        )

    @property
    def sessions(self) -> Path:
        """Every session's folder lies here."""
        return self.state / "sessions"

    @property
    def store(self) -> Path:
        """Shared, immutable artifacts: kernels, images, disks."""
        return self.data / "store"

    def session(self, session_id: str) -> Path:
        """Return the folder of one session."""
        return self.sessions / session_id

    def sockets(self, session_id: str, folder: Path | None = None) -> Path:
        """Return the folder of one session's sockets; the state home counts as well.

        It lies where its last keeper made it, for whoever asks may have another `XDG_RUNTIME_DIR`
        (cron, su). `folder` is the session's where that has another name.
        """
        digest = hashlib.sha256(os.fsencode(self.session(session_id))).hexdigest()[:8]
        return (noted_runtime(folder or self.session(session_id)) or self.runtime) / digest

    def machine_sockets(self, session_id: str) -> Path:
        """Return the folder of QEMU's own sockets.

        It is apart from the keeper's, for QEMU's jail holds it: a QEMU that a guest took over must
        find no way to the keeper.
        """
        return self.sockets(session_id) / "vm"


def fallback_runtime() -> Path:
    """Return where sockets lie when there is no `XDG_RUNTIME_DIR`."""
    return Path(tempfile.gettempdir()) / f"cloche-{os.getuid()}"


def noted_runtime(folder: Path) -> Path | None:
    """Return the runtime folder that a session's last keeper noted, if there was one."""
    try:
        with open(folder / RUNTIME_NOTE, "rb") as note:
            text = os.fsdecode(note.read(MAX_NOTE))
    except OSError:
        return None
    return Path(text) if text.startswith("/") and len(text) < MAX_NOTE else None


def private_folder(path: Path) -> Path:
    """Make `path` (and its parents) and return it, closed to others.

    A folder of yours that others could only look into is closed. One that others could write into
    is refused, for something of theirs may lie in it.

    Raises AppError when the folder is a link, belongs to somebody else or is open for writing.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    _refuse_unsafe(path, found)
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def check_sockets_private(sockets: Path) -> None:
    """Refuse a folder of sockets in which somebody else could be listening; nothing is made.

    Clients call it before they connect. The folder above counts as well, for whoever owns that can
    put another one in the place of this.

    Raises AppError `unsafe-folder`, and FileNotFoundError where no keeper made the folder yet.
    """
    for folder in (sockets.parent, sockets):
        _refuse_unsafe(folder, folder.lstat())


def _refuse_unsafe(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise AppError(
            "unsafe-folder",
            f"{path} is not a private folder of yours.",
            f"Look what is in it, then remove it, or run: chmod 700 '{path}'",
        )
