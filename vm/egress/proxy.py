"""The HTTP proxy of this host's environment, as data: which connections go through it. Pure.

`HTTP_PROXY` is for port 80, `HTTPS_PROXY` for every other port, `ALL_PROXY` for what has none of
its own, `NO_PROXY` for what goes straight; small letters win, as with curl. Only `http://` proxies
are spoken to. A variable that names another kind closes the way it is for: going straight instead
would show where the user goes to whom the proxy hides it from.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from vm.egress.names import BadName, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
"""In either case of letters."""
HTTP_PORT: Final = 80
DEFAULT_PORT: Final = 1080
"""Where a proxy listens whose address names no port (curl's default)."""
MAX_VALUE: Final = 16_384


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy. `authorization` is the value of its header, empty without credentials."""

    host: str
    """A canonical name, or an address."""
    port: int
    authorization: str = field(default="", repr=False)
    fault: str = ""
    """Why it cannot be used, as a sentence without the address; empty: it can."""

    @property
    def place(self) -> str:
        """Where it is, for people: never its credentials."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Straight:
    """One entry of `NO_PROXY`: a name with all below it, an address, or a network."""

    host: str
    port: int = 0
    """0: every port."""

    def means(self, host: str, port: int) -> bool:
        """Tell whether a connection goes straight because of it."""
        if self.port and self.port != port:
            return False
        if self.host == "*":
            return True
        try:
            return ip_address(host) in ip_network(self.host, strict=False)
        except ValueError:
            return host == self.host or host.endswith(f".{self.host}")


@dataclass(frozen=True, slots=True)
class Proxies:
    """What the environment says."""

    http: Proxy | None = None
    https: Proxy | None = None
    without: tuple[Straight, ...] = ()

    def of(self, host: str, port: int) -> Proxy | None:
        """Return the proxy of a connection; None: it goes straight."""
        proxy = self.http if port == HTTP_PORT else self.https
        if proxy is None or any(one.means(host, port) for one in self.without):
            return None
        return proxy

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with them, a sentence each."""
        return tuple(dict.fromkeys(p.fault for p in (self.http, self.https) if p and p.fault))


def from_environment(env: Mapping[str, str]) -> Proxies:
    """Return what an environment says; a fault closes what it is about, and raises nothing."""
    every = _proxy(env, "all_proxy")
    return Proxies(
        _proxy(env, "http_proxy") or every,
        _proxy(env, "https_proxy") or every,
        exceptions(_variable(env, "no_proxy")),
    )


def _variable(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _proxy(env: Mapping[str, str], name: str) -> Proxy | None:
    text = _variable(env, name)
    if not text:
        return None
    shown = name.upper()
    if len(text) > MAX_VALUE:
        return Proxy("", 0, fault=f"{shown} is too long.")
    return _read(text if "://" in text else f"http://{text}", shown)


def _read(text: str, name: str) -> Proxy:
    try:
        parts = urlsplit(text)
        port = parts.port or DEFAULT_PORT
        host = _host(parts.hostname or "")
    except ValueError:
        return Proxy("", 0, fault=f"{name} is no address of a proxy.")
    if parts.scheme.lower() != "http":
        reason = f"{name} names a proxy of a kind that Cloche does not speak: http:// only."
        return Proxy("", 0, fault=reason)
    if parts.username is None:
        return Proxy(host, port)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(host, port, "Basic " + base64.b64encode(pair.encode()).decode("ascii"))


def _host(text: str) -> str:
    """Return a proxy's host as it is looked up. Raises ValueError."""
    try:
        return str(ip_address(text))
    except ValueError:
        return canonical(text)


def exceptions(text: str) -> tuple[Straight, ...]:
    """Read `NO_PROXY`: `*`, `name`, `.name`, `*.name`, an address, a network, each with `:port`.

    A leading dot or `*.` changes nothing: a name means itself and all below it. What is none of
    these is passed over, so that it goes through the proxy.
    """
    words = text[:MAX_VALUE].replace(",", " ").split()
    found = (_exception(word) for word in words)
    return tuple(one for one in found if one is not None)


def _exception(word: str) -> Straight | None:
    if word == "*":
        return Straight("*")
    try:
        return Straight(str(ip_network(word.strip("[]"), strict=False)))
    except ValueError:
        pass  # a name, or something with a port
    host, colon, port = word.rpartition(":")
    if not colon:
        host, port = word, "0"
    if not port.isascii() or not port.isdigit() or not 0 <= int(port[:6]) <= 65_535:
        return None
    try:
        return Straight(str(ip_network(host.strip("[]"), strict=False)), int(port))
    except ValueError:
        pass
    try:
        return Straight(canonical(host.removeprefix("*").removeprefix(".")), int(port))
    except BadName:
        return None
