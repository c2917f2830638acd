"""The one function that makes SSH connections to a guest.

The guest is hostile: it may be any program that speaks SSH. So nothing is read from the user's
configuration, keys or agent, only the session's pinned host key is trusted, whatever the guest
opens is refused, and what it makes us send without reading it is bounded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import asyncssh

from vm.errors import LinkLost, NoAnswer
from vm.machine.link import ended_line, open_link

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from vm.machine.identity import Identity

MAX_UNSENT = 32 << 20
"""Bytes we hold for a guest that does not read; beyond it the connection ends.

Channel windows bound what we send of our own (OpenSSH grants 2 MiB a channel); answers to requests
that a hostile guest repeats have no other bound.
"""

WINDOW = 1 << 20
"""Bytes a channel may send us ahead of what was read."""

KEEPALIVE_S = 10.0
"""Seconds of silence after which the guest's sshd is asked whether it is there."""

KEEPALIVES = 5
"""Questions without an answer that end a connection. sshd answers them by itself; an emulated guest
whose memory is used up may take many seconds to."""

MAX_PACKET = 32768
"""Largest channel packet in bytes (RFC 4253, 6.1: the size that everyone must accept)."""


async def connect(
    path: Path, identity: Identity, deadline_s: float, username: str = "cloche"
) -> asyncssh.SSHClientConnection:
    """Open the control link at `path` and log in. Always ends in `deadline_s`.

    Raises NoAnswer where that was too short, and LinkLost where the guest refuses.
    """
    try:
        async with asyncio.timeout(deadline_s):
            port = await open_link(path, identity.token, deadline_s)
            return await log_in(port, identity, deadline_s, username)
    except TimeoutError as error:
        raise NoAnswer(f"The guest's SSH did not answer within {deadline_s:g} s.") from error


async def log_in(
    port: socket.socket, identity: Identity, deadline_s: float, username: str
) -> asyncssh.SSHClientConnection:
    """Speak SSH on an open stream that ends at one of the guest's sshds.

    The socket belongs to the connection, or is closed. Raises LinkLost.
    """
    try:
        return await asyncssh.connect(
            "guest",
            tunnel=_Port(port, ended_line(identity.token)),
            username=username,
            **_options(identity, deadline_s),
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise LinkLost("The guest did not show this session's host key.") from error
    except asyncssh.PermissionDenied as error:
        raise LinkLost("The guest refused this session's key.") from error
    except Exception as error:  # asyncssh hands on whatever its parsers trip over
        raise LinkLost(f"The guest's SSH failed: {str(error) or type(error).__name__}") from error
    finally:
        port.close()  # the connection works on a duplicate of its own


def _options(identity: Identity, deadline_s: float) -> dict[str, Any]:
    """Return the hardened options: each one closes a way in, or a file of the user's."""
    return {
        "config": None,
        "known_hosts": ([identity.host_key.convert_to_public()], [], []),
        "server_host_key_algs": ["ssh-ed25519"],
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
        "client_keys": [identity.client_key],
        "client_certs": [],
        "agent_path": None,
        "agent_identities": None,
        "agent_forwarding": False,
        "pkcs11_provider": None,
        "gss_host": None,
        "gss_kex": False,
        "gss_auth": False,
        "host_based_auth": False,
        "password_auth": False,
        "kbdint_auth": False,
        "preferred_auth": "publickey",
        "disable_trivial_auth": True,
        "x11_forwarding": False,
        "send_env": None,
        "env": None,
        "command": None,
        "proxy_command": None,
        "kex_algs": ["curve25519-sha256"],
        "encryption_algs": ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com"],
        "compression_algs": ["none"],
        "login_timeout": max(1.0, deadline_s),
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVES,
        "window": WINDOW,
        "max_pktsize": MAX_PACKET,
    }


class _Port:
    """What asyncssh calls a tunnel: it makes the transport on a socket that is already open."""

    def __init__(self, port: socket.socket, ended: bytes) -> None:
        self._port = port
        self._ended = ended

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[object, asyncio.Protocol]:
        """Start the protocol that `factory` makes, behind a bound on unsent bytes."""
        inner = factory()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _Bounded(inner, self._ended), sock=self._port.dup()
        )
        return transport, inner


class _Bounded(asyncio.Protocol):
    """Passes everything on, and ends the connection when MAX_UNSENT bytes wait to be sent.

    It also ends when PID 1 says that sshd has: `ended` bears the link's token, which nobody in the
    guest knows but PID 1.
    """

    def __init__(self, inner: asyncio.Protocol, ended: bytes) -> None:
        self._inner = inner
        self._ended = ended
        self._tail = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the bound and start the inner protocol."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=MAX_UNSENT)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what arrived, unless the end has come with it."""
        keep = len(self._ended) - 1
        if self._ended in data or self._ended in self._tail + data[:keep]:
            self._give_up()
            return
        self._tail = (self._tail + data[-keep:])[-keep:]
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on the end of the input."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end of the connection."""
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Give up on a guest that makes us answer and does not read."""
        self._give_up()

    def _give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()
