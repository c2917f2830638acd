"""The secrets of one session: its keys, the guest's host key and the token of the links."""

from __future__ import annotations

import json
import os
import secrets
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import asyncssh

from vm.errors import VMError

if TYPE_CHECKING:
    from pathlib import Path

TOKEN_BYTES = 16
_MAX_FILE = 16384
"""Two ed25519 keys and a token take under 1 KiB."""


class BadIdentity(VMError):
    """A session's file of secrets is missing, damaged or open to others."""

    code = "bad-identity"
    way_out = "Merge what is worth keeping, then: cloche rm ID"


@dataclass(frozen=True, slots=True)
class Identity:
    """One session's secrets. `token` is 32 hex digits, known to the host and to PID 1 only."""

    token: str
    client_key: asyncssh.SSHKey
    host_key: asyncssh.SSHKey

    @classmethod
    def new(cls) -> Identity:
        """Make fresh ed25519 keys and a token."""
        return cls(
            token=secrets.token_hex(TOKEN_BYTES),
            client_key=new_key(),
            host_key=new_key(),
        )

    @property
    def host_key_file(self) -> bytes:
        """The guest's host key as sshd reads it (OpenSSH private key)."""
        return self.host_key.export_private_key("openssh")

    @property
    def authorized_keys(self) -> bytes:
        """The `authorized_keys` line of the client key; what it opens is the guest's loopback."""
        return b'restrict,pty,port-forwarding,permitopen="127.0.0.1:*" ' + (
            self.client_key.export_public_key("openssh")
        )

    def save(self, path: Path) -> None:
        """Write the secrets to `path` with mode 0600, replacing it atomically."""
        text = json.dumps(
            {
                "token": self.token,
                "client_key": self.client_key.export_private_key("openssh").decode(),
                "host_key": self.host_key_file.decode(),
            }
        )
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(handle)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path) -> Identity:
        """Read what `save` wrote. Raises BadIdentity, also for a file that others can read."""
        fields = _fields(_read_private(path), path)
        try:
            return cls(
                token=_token(fields["token"]),
                client_key=asyncssh.import_private_key(fields["client_key"]),
                host_key=asyncssh.import_private_key(fields["host_key"]),
            )
        except (KeyError, ValueError) as error:
            raise BadIdentity(f"{path} is damaged: {error}.") from error


def new_key() -> asyncssh.SSHKey:
    """Make an ed25519 key."""
    return asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]


def _token(text: str) -> str:
    if len(text) != 2 * TOKEN_BYTES or len(bytes.fromhex(text)) != TOKEN_BYTES:
        raise ValueError("the token has a wrong length")
    return text


def _read_private(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise BadIdentity(f"{path} is open to others.", f"Run: chmod 600 '{path}'")
            return file.read(_MAX_FILE)
    except OSError as error:
        raise BadIdentity(f"{path} cannot be read: {error.strerror}.") from error


def _fields(data: bytes, path: Path) -> dict[str, str]:
    try:
        found: object = json.loads(data)
    except ValueError as error:
        raise BadIdentity(f"{path} is damaged.") from error
    if not isinstance(found, dict):
        raise BadIdentity(f"{path} is damaged.")
    values = cast("dict[str, object]", found)
    return {key: value for key, value in values.items() if isinstance(value, str)}
