"""How the host reaches a name where it has to go through an HTTP proxy.

Port 80 by plain requests in absolute form (`dial_forward`), every other port by CONNECT.

The proxy looks names up and reaches what it likes, so which address a name has is its affair: bare
addresses and names of one label are refused, and the log says that no address was checked. The
proxy itself is the user's own choice and is reached wherever it is.
"""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING, Final

from vm.egress.dial import connect_first, refused, resolved
from vm.egress.dial_forward import Forwarding
from vm.egress.kinds import Dialled, DialRefused
from vm.egress.proxy import HTTP_PORT
from vm.egress.rules import is_literal

if TYPE_CHECKING:
    from vm.egress.dial import Resolve
    from vm.egress.kinds import Dialer, Judge, Request, Verdict
    from vm.egress.proxy import Proxies, Proxy

NOTE: Final = "address not checked: proxy"
MAX_HEAD: Final = 16_384
"""Bytes of a proxy's answer to CONNECT."""
ANSWER_S: Final = 15.0
"""Less than a dial may take in all, so that the error says who did not answer."""

_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r|\n)")


class ProxyDialer:
    """Takes each connection through the proxy that it has, or leaves it to `direct`."""

    def __init__(
        self,
        proxies: Proxies,
        direct: Dialer,
        judge: Judge,
        resolve: Resolve,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._proxies, self._direct = proxies, direct
        self._judge, self._resolve = judge, resolve
        self._answer_s = answer_s
        self._forwarding = Forwarding()

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        """Connect. Raises DialRefused."""
        proxy = self._proxies.of(request.host, request.port or 0)
        if proxy is None:
            return await self._direct.dial(request, verdict)
        _check(request, proxy)
        again = self._judge.check(request, verdict)
        if again.action != "allow":
            raise DialRefused(again.code, again.reason)
        sock = await self._reach(proxy)
        if verdict.inspect == "http" and request.port == HTTP_PORT:
            joined = self._forwarding.begin(sock, request, proxy)
            return Dialled(joined, f"proxy {proxy.place}", NOTE)
        try:
            async with asyncio.timeout(self._answer_s):
                await _tunnel(sock, request, proxy)
        except TimeoutError:
            sock.close()
            raise DialRefused("proxy-timeout", "The proxy did not answer in time.") from None
        except OSError:
            sock.close()
            raise DialRefused("proxy-lost", "The connection to the proxy broke.") from None
        except BaseException:  # refused or cancelled: no descriptor is left behind either
            sock.close()
            raise
        return Dialled(sock, f"proxy {proxy.place}", NOTE)

    async def _reach(self, proxy: Proxy) -> socket.socket:
        """Connect to the proxy itself, wherever it is: the user named it."""
        try:
            addresses = await resolved(self._resolve, proxy.host)
            return (await connect_first(addresses, proxy.port)).socket
        except DialRefused as error:
            raise DialRefused("proxy-unreachable", f"The proxy: {error.reason}") from None
        except OSError as error:
            reason = f"The proxy: {refused(error).reason}"
            raise DialRefused("proxy-unreachable", reason) from None


def _check(request: Request, proxy: Proxy) -> None:
    """Refuse what a proxy must not be asked for. Raises DialRefused."""
    if proxy.fault:
        raise DialRefused("proxy-unusable", proxy.fault)
    if is_literal(request.host):
        reason = f"{request.host} is a bare address, which no proxy is asked for."
        raise DialRefused("proxy-literal", reason)
    if "." not in request.host:
        reason = f"{request.host} is a name nearby, which no proxy is asked for."
        raise DialRefused("proxy-local-name", reason)


async def _tunnel(sock: socket.socket, request: Request, proxy: Proxy) -> None:
    """Have the proxy connect (RFC 9110, 9.3.6). Raises DialRefused, OSError."""
    place = f"{request.host}:{request.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    await asyncio.get_running_loop().sock_sendall(sock, "\r\n".join((*lines, "", "")).encode())
    match = _STATUS.match(await _head(sock))
    if match is None:
        raise DialRefused("proxy-garbage", "The proxy does not answer in HTTP/1.")
    status = int(match[1])
    if status == 407:
        raise DialRefused("proxy-auth", "The proxy wants credentials, or other ones (407).")
    if not 200 <= status < 300:
        raise DialRefused("proxy-refused", f"The proxy refused {place} ({status}).")


async def _head(sock: socket.socket) -> bytes:
    """Take the answer's head off the connection and not a byte more: what follows is the host's.

    Raises DialRefused, OSError.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) >= MAX_HEAD:
            raise DialRefused("proxy-garbage", "The proxy's answer is longer than any.")
        seen = await _peek(sock, MAX_HEAD - len(head))
        if not seen:
            raise DialRefused("proxy-lost", "The proxy hung up instead of answering.")
        end = (head + seen).find(b"\r\n\r\n")
        head += sock.recv(len(seen) if end < 0 else end + 4 - len(head))
        if not b"HTTP/1.".startswith(head[:7]) and not head.startswith(b"HTTP/1."):
            break  # it need not be read to its end
    return head


async def _peek(sock: socket.socket, most: int) -> bytes:
    """Wait until there is something to read, and return it without taking it."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        while True:
            try:
                return sock.recv(most, socket.MSG_PEEK)
            except BlockingIOError:
                readable.clear()
                await readable.wait()
    finally:
        loop.remove_reader(sock)
