"""The initramfs of one session: the image's toolkit followed by a small cpio of secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.store import ImageSet


def session_cpio(
    *, token: str, hostname: str, host_key: bytes, authorized_keys: bytes, now: int
) -> bytes:
    """Return the uncompressed newc archive with `/session/{config,host_key,authorized_keys}`.

    `token` is the links' secret, 32 lower-case hex digits; `host_key` an OpenSSH private key;
    `authorized_keys` lines as sshd reads them; `now` unix seconds. Raises ValueError for anything
    that could not be one `key=value` line.
    """
    raise NotImplementedError


def write_initrd(
    image: ImageSet,
    dest: Path,
    *,
    token: str,
    hostname: str,
    host_key: bytes,
    authorized_keys: bytes,
    now: int,
) -> None:
    """Write toolkit plus session cpio to `dest` (mode 0600), replacing it atomically."""
    raise NotImplementedError
