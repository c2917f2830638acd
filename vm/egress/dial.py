"""How the host reaches a name: it looks the name up, has every address checked, and connects.

What was checked is what is connected to: the name is never resolved a second time, so an answer
that changes in between (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vm.egress.kinds import Dialled, DialRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from vm.egress.kinds import Judge, Request, Verdict

    Address = IPv4Address | IPv6Address
    Resolve = Callable[[str], Awaitable[Sequence[Address]]]

RESOLVE_S: Final = 5.0
STAGGER_S: Final = 0.25
"""How long an address is tried alone before the next joins in (RFC 8305, section 5)."""
MAX_ADDRESSES: Final = 32
"""A name with more is refused, for all of them would have to be checked and tried."""
RESOLVERS: Final = 16
"""Threads that may wait for the host's resolver."""

HOSTS: Final = Path("/etc/hosts")

_WORDS: Final = {
    errno.ECONNREFUSED: ("refused", "The host refused the connection."),
    errno.ETIMEDOUT: ("timeout", "The host did not answer."),
    errno.ENETUNREACH: ("unreachable", "This machine has no way to that host's network."),
    errno.EHOSTUNREACH: ("unreachable", "The host cannot be reached."),
    errno.ECONNRESET: ("reset", "The host reset the connection."),
    errno.EMFILE: ("too-many-files", "The gateway has no file descriptor left."),
    errno.ENFILE: ("too-many-files", "This machine has no file descriptor left."),
}


class SystemResolver:
    """The host's own resolver, in threads of its own, for it cannot be interrupted."""

    def __init__(self, hosts: Path = HOSTS) -> None:
        self._threads = ThreadPoolExecutor(RESOLVERS, "resolve")
        self._hosts = hosts

    async def __call__(self, name: str) -> Sequence[Address]:
        """Return a name's addresses in the order to try them. Raises OSError, TimeoutError."""
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, self._lookup, name)
        return await asyncio.wait_for(call, RESOLVE_S)

    def _lookup(self, name: str) -> Sequence[Address]:
        """Look a name up as it is: the final dot keeps the host's search list out of it.

        With that dot the resolver does not find what stands in the host's file of names.
        """
        found = in_hosts(_text(self._hosts), name)
        if found:
            return found
        rows = socket.getaddrinfo(f"{name}.", None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(ip_address(str(row[4][0]).partition("%")[0]) for row in rows))

    def close(self) -> None:
        """Let the threads go, without waiting for those that hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def in_hosts(text: str, name: str) -> list[Address]:
    """Return the addresses that a file of names (hosts(5)) gives a name."""
    found: list[Address] = []
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if name in (other.lower() for other in names):
            with contextlib.suppress(ValueError):
                found.append(ip_address(address))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # a host without one


class DirectDialer:
    """Connects straight to a checked address of the name."""

    def __init__(self, judge: Judge, resolve: Resolve) -> None:
        self._judge = judge
        self._resolve = resolve

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        """Resolve, check, connect. Raises DialRefused."""
        addresses = await resolved(self._resolve, request.host)
        checked = self._judge.check(replace(request, addresses=tuple(addresses)), verdict)
        if checked.action != "allow":
            raise DialRefused(checked.code, checked.reason)
        try:
            return await connect_first(addresses, request.port or 0)
        except OSError as error:
            raise refused(error) from error


async def resolved(resolve: Resolve, host: str) -> Sequence[Address]:
    """Return the addresses of a name, or a literal as itself. Raises DialRefused."""
    try:
        return [ip_address(host)]
    except ValueError:
        pass  # a name, as nearly always
    try:
        found = await resolve(host)
    except TimeoutError:
        raise DialRefused("no-resolver", "The host's name server does not answer.") from None
    except OSError as error:
        raise _unresolved(host, error) from error
    if not 0 < len(found) <= MAX_ADDRESSES:
        raise DialRefused("no-address", f"{host} has {len(found)} addresses.")
    return found


def _unresolved(name: str, error: OSError) -> DialRefused:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return DialRefused("no-resolver", "The host's name server does not answer.")
    return DialRefused("no-address", f"The host's name server knows no address of {name}.")


def refused(error: OSError) -> DialRefused:
    """Say what the network said in stable words."""
    code, reason = _WORDS.get(error.errno or 0, ("network", ""))
    return DialRefused(code, reason or f"The network failed: {os.strerror(error.errno or 0)}.")


async def connect_first(addresses: Sequence[Address], port: int) -> Dialled:
    """Connect to the first address that answers. Raises OSError of the last that failed."""
    trying: set[asyncio.Task[Dialled]] = set()
    waiting = list(addresses)
    failure: OSError = OSError(errno.EHOSTUNREACH, "no address")
    try:
        while waiting or trying:
            if waiting:
                trying.add(asyncio.ensure_future(_connect(waiting.pop(0), port)))
            pause = STAGGER_S if waiting else None
            done, trying = await asyncio.wait(
                trying, timeout=pause, return_when=asyncio.FIRST_COMPLETED
            )
            good = [task.result() for task in done if task.exception() is None]
            for spare in good[1:]:
                spare.socket.close()
            if good:
                return good[0]
            failure = next((_os_error(task) for task in done), failure)
        raise failure
    finally:
        await _abandon(trying)


def _os_error(task: asyncio.Task[Dialled]) -> OSError:
    error = task.exception()
    return error if isinstance(error, OSError) else OSError(errno.EIO, str(error))


async def _abandon(trying: set[asyncio.Task[Dialled]]) -> None:
    """Cancel what is still being tried; close what was connected nevertheless."""
    for task in trying:
        task.cancel()
    for outcome in await asyncio.gather(*trying, return_exceptions=True):
        if isinstance(outcome, Dialled):
            outcome.socket.close()


async def _connect(address: Address, port: int) -> Dialled:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
    except BaseException:  # a cancelled attempt leaves no descriptor behind either
        sock.close()
        raise
    return Dialled(sock, str(address))
