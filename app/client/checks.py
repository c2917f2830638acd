"""What is checked before a session is made: every fault is one sentence and its exact fix.

Nothing is written here, so a refused `run` leaves no trace.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.forwarding import HOST, MAX_FORWARDS, check_forward, not_bound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.paths import Paths
    from app.protocol import Forward
    from vm.image import ImageSet

MIN_FREE: Final = 512 << 20
"""Bytes that must be free where sessions are kept."""

MAX_SOCKET: Final = 107
"""Longest path of a Unix socket on Linux in bytes (unix(7))."""

LONGEST_SOCKET: Final = "vm/port-control.sock"

PACKAGES: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mksquashfs": "squashfs-tools",
    "unsquashfs": "squashfs-tools",
    "prlimit": "util-linux",
}
"""Programs without which no session starts, and the packages that hold them."""


def check_workspace(paths: Paths, workspace: Path) -> Path:
    """Return the workspace's real path, or say why it cannot be one."""
    try:
        real = workspace.resolve(strict=True)
    except FileNotFoundError:
        raise AppError(
            "not-found", f"There is no folder {workspace}.", f"Make it: mkdir -p '{workspace}'"
        ) from None
    except OSError as error:
        raise AppError("workspace-refused", f"{workspace} is refused: {error.strerror}.") from None
    if not stat.S_ISDIR(real.stat().st_mode):
        raise AppError(
            "workspace-refused",
            f"{workspace} is not a folder.",
            f"Give the folder that holds it: --workspace '{real.parent}'",
        )
    if not os.access(real, os.R_OK | os.X_OK):
        raise AppError(
            "workspace-refused", f"{workspace} cannot be read.", f"Run: chmod u+rx '{real}'"
        )
    _check_outside(paths, real)
    return real


def _check_outside(paths: Paths, workspace: Path) -> None:
    for own in (paths.state, paths.data, paths.runtime):
        folder = own.resolve()
        if workspace == folder or folder in workspace.parents:
            raise AppError(
                "workspace-refused",
                f"{workspace} lies inside Cloche's own folder {folder}.",
                "Give the project's folder: cloche run AGENT --workspace DIR",
            )


def check_programs() -> None:
    """Raise AppError `host-lacks` when a program that every session needs is not installed."""
    missing = [name for name in PACKAGES if shutil.which(name) is None]
    if missing:
        packages = sorted({PACKAGES[name] for name in missing})
        raise AppError(
            "host-lacks",
            f"This host lacks {', '.join(missing)}.",
            f"Install: sudo apt-get install {' '.join(packages)}",
        )


async def check_qemu() -> None:
    """Raise HostLacks when QEMU is missing or too old."""
    from vm.machine import accel

    await accel.qemu_version()


async def check_jail(paths: Paths, wish: str) -> None:
    """Raise NoJail when a jail for QEMU is demanded and this host cannot make one."""
    from vm.machine import jail_check

    await jail_check.choose(wish, paths.cache)


def check_sockets(paths: Paths, session_id: str) -> None:
    """Raise AppError `host-lacks` when a socket's path would be longer than Linux allows."""
    path = paths.sockets(session_id) / LONGEST_SOCKET
    length = len(os.fsencode(path))
    if length > MAX_SOCKET:
        raise AppError(
            "host-lacks",
            f"The socket path {path} has {length} bytes, Linux allows {MAX_SOCKET}.",
            "Use a shorter folder: export XDG_RUNTIME_DIR=/run/user/$(id -u)",
        )


def check_ports(forwards: Sequence[Forward]) -> None:
    """Raise AppError for ports that cannot be forwarded, or that somebody has taken."""
    if len(forwards) > MAX_FORWARDS:
        text = f"A session has at most {MAX_FORWARDS} forwarded ports."
        raise AppError("usage", text, "Give fewer: --port HOST:GUEST")
    for forward in forwards:
        check_forward(forward)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, forward.host_port))
            except OSError as error:
                raise not_bound(forward.host_port, error) from error


def check_space(paths: Paths) -> None:
    """Raise AppError `host-lacks` when less than MIN_FREE bytes are left for sessions."""
    folder = paths.state
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE:
        raise AppError(
            "host-lacks",
            f"Only {free >> 20} MiB are free at {folder}, a session needs {MIN_FREE >> 20}.",
            f"Free some space, or choose another disk: export XDG_STATE_HOME=DIR (now {folder})",
        )


def check_image(paths: Paths, name: str = "base") -> ImageSet:
    """Return the image that a session shall boot.

    Raises ImageMissing with the command that brings it, AppError `not-found` where none does.
    """
    from app.services.recipes import load_recipes
    from vm.errors import ImageMissing
    from vm.image import find_image, store

    try:
        return find_image(paths.store, name)
    except ImageMissing as error:
        if name in store.names(paths.store):
            raise  # it is there, but damaged: the error names its remedy
        if name not in load_recipes(paths.config):
            text = f"There is no image called '{name}'."
            raise AppError("not-found", text, "See them: cloche image list") from error
        raise ImageMissing(error.message, f"cloche image build {name}") from error
