"""The initramfs of one session: the image's toolkit followed by a small cpio of secrets."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from vm.egress.kinds import GATEWAY, GUEST, MASK
from vm.image import cpio
from vm.image.tools import one_sentence

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.store import ImageSet

PROFILES = ("debug", "standard", "strict")
"""How much the guest's kernel refuses to the agent, least first; see vm/guest/harden.c."""

_TOKEN = re.compile(r"[0-9a-f]{32}")
_HOSTS = "127.0.0.1 localhost\n127.0.1.1 {}\n::1 localhost ip6-localhost\n"
_NET = b"%s %s %s\n" % tuple(str(IPv4Address(ip)).encode() for ip in (GUEST.ip, MASK, GATEWAY.ip))
"""`address mask gateway`: the guest's first process reads it."""
_HOSTNAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def session_cpio(
    *,
    token: str,
    hostname: str,
    host_key: bytes,
    authorized_keys: bytes,
    now: int,
    network: bool = False,
    authorities: bytes = b"",
    profile: str = "standard",
) -> bytes:
    """Return the uncompressed newc archive of `/session`: config, keys, hosts and hostname.

    With `network` also the address of the machine's network card, which it has then; with
    `authorities` the certificates (PEM) that its programs are to believe.

    `token` is the links' secret, 32 lower-case hex digits; `host_key` an OpenSSH private key;
    `authorized_keys` lines as sshd reads them; `now` unix seconds; `profile` one of PROFILES.
    Raises ValueError for anything that could not be one `key=value` line.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError("a link token is 32 lower-case hex digits")
    if not _HOSTNAME.fullmatch(hostname):
        raise ValueError(f"{hostname!r} is no host name")
    if now < 0:
        raise ValueError("the time of a session is after 1970")
    if profile not in PROFILES:
        raise ValueError(f"{profile!r} is no profile of the guest")
    config = f"token={token}\nhostname={hostname}\ntime={now}\nguest={profile}\n".encode()
    return cpio.archive(
        [
            # sshd reads the public keys as the user who logs in, so the folder can be passed
            cpio.folder("session", 0o711),
            cpio.file("session/config", config, 0o600),
            # laid over the world's own, which are the same for every session
            cpio.file("session/hostname", f"{hostname}\n".encode()),
            cpio.file("session/hosts", _HOSTS.format(hostname).encode()),
            cpio.file("session/host_key", host_key, 0o600),
            cpio.file("session/authorized_keys", authorized_keys, 0o644),
            *([cpio.file("session/net", _NET)] if network else []),
            *([cpio.file("session/ca.pem", authorities)] if authorities else []),
        ]
    )


def write_initrd(
    image: ImageSet,
    dest: Path,
    *,
    token: str,
    hostname: str,
    host_key: bytes,
    authorized_keys: bytes,
    now: int,
    network: bool = False,
    authorities: bytes = b"",
    profile: str = "standard",
) -> None:
    """Write toolkit plus session cpio to `dest` (mode 0600), replacing it atomically.

    Raises ValueError as `session_cpio` does, VMError when the disk is full.
    """
    secrets = session_cpio(
        token=token,
        hostname=hostname,
        host_key=host_key,
        authorized_keys=authorized_keys,
        now=now,
        network=network,
        authorities=authorities,
        profile=profile,
    )
    with one_sentence(f"Writing {dest}"):
        handle, name = tempfile.mkstemp(prefix=".initrd-", dir=dest.parent)
        try:
            with os.fdopen(handle, "wb") as out, image.initramfs.open("rb") as toolkit:
                os.fchmod(out.fileno(), stat.S_IRUSR | stat.S_IWUSR)
                shutil.copyfileobj(toolkit, out, 1 << 20)
                # the kernel takes a plain archive only at a multiple of four bytes
                out.write(b"\0" * (-out.tell() % 4) + secrets)
            os.replace(name, dest)
        except BaseException:
            os.unlink(name)
            raise
