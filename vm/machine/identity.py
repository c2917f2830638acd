"""The secrets of one session: its keys, the guest's host key and the token of the links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import asyncssh


@dataclass(frozen=True, slots=True)
class Identity:
    """One session's secrets. `token` is 32 hex digits, known to the host and to PID 1 only."""

    token: str
    client_key: asyncssh.SSHKey
    host_key: asyncssh.SSHKey

    @classmethod
    def new(cls) -> Identity:
        """Make fresh ed25519 keys and a token."""
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the secrets to a new file of mode 0600, atomically."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: Path) -> Identity:
        """Read what `save` wrote; refuse a file that others can read."""
        raise NotImplementedError

    def session_files(self, hostname: str, now: float) -> dict[str, bytes]:
        """Return `config`, `host_key` and `authorized_keys` of the session cpio."""
        raise NotImplementedError
