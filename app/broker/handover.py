"""How values of the user's environment reach the broker: in memory, past everybody else.

The command that starts a keeper puts the variables that its session's services name into a memory
file (memfd_create(2)) and hands the keeper the descriptor. The keeper never reads it; it passes it
on to each broker that it starts. So no value is in a file, an argument or the environment of any
process that speaks with the guest, nor in the keeper's memory.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HELPERS: Final = (
    *("HOME", "PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "TMPDIR"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "GNUPGHOME", "GPG_TTY"),
    *("SSH_AUTH_SOCK", "PASSWORD_STORE_DIR", "SSL_CERT_FILE"),
)
"""What keyrings and password managers need, and the user's own authorities."""

MAX_BYTES: Final = 1 << 20
SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def hand_over(env: Mapping[str, str], names: Iterable[str]) -> int:
    """Return a descriptor of a sealed memory file with these variables and the helpers."""
    wanted = {name: env[name] for name in (*HELPERS, *names) if name in env}
    data = msgspec.json.encode(
        {name: value.encode("utf-8", "surrogateescape").hex() for name, value in wanted.items()}
    )
    if len(data) > MAX_BYTES:
        raise AppError("usage", "The environment's variables are too long.", "env | wc -c")
    descriptor = os.memfd_create("cloche", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(descriptor, data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def take_over(descriptor: int) -> dict[str, str]:
    """Read the variables; the descriptor's place does not matter, for others read it, too."""
    data = os.pread(descriptor, MAX_BYTES, 0)
    raw = msgspec.json.decode(data, type=dict[str, str])
    return {name: os.fsdecode(bytes.fromhex(value)) for name, value in raw.items()}
