"""What the parts of the egress gateway say to each other: plain values, and the three doors.

The gateway moves bytes. Whether it may is decided behind `Judge`, how a host is reached behind
`Dialer`, and everything that happened goes to one `Log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    import socket
    from ipaddress import IPv4Address, IPv6Address

Action = Literal["allow", "deny", "ask"]
Level = Literal[
    "absolute", "always", "workspace", "session", "project", "user", "profile", "private", "default"
]
Inspect = Literal["tls", "http", "none"]
"""What the gateway must see in the guest's first bytes (in HTTP: in every request)."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be decided."""

    host: str
    """A canonical name, or a literal address as text."""
    port: int | None = None
    """None: a DNS question, which names no port."""
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()
    """What the name resolved to; empty before it was looked up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided, and by what."""

    action: Action
    level: Level
    rule: str
    """The deciding rule's text; empty where none decided."""
    origin: str
    """Where that rule stands, as `rules.yaml:7` or `profile standard`."""
    code: str
    """Why, as a stable word with dashes."""
    reason: str
    """Why, as one printable sentence."""
    inspect: Inspect = "none"
    private: bool = False
    """The rule lets private and carrier-grade addresses through."""
    hidden: bool = True
    """Whether a ClientHello that hides its true name (ECH) may pass."""


class Judge(Protocol):
    """Who decides. Only `ask` may wait."""

    def decide(self, request: Request) -> Verdict:
        """Decide about a name (no port: `deny` means it gets no address) or a connection."""
        ...

    async def ask(self, flow: int, request: Request, verdict: Verdict) -> Verdict:
        """Have a connection decided about which the verdict is `ask`: it is held meanwhile.

        What is not `allow` then counts as `deny`. Cancelled when the guest's program gives up.
        """
        ...

    def check(self, request: Request, verdict: Verdict) -> Verdict:
        """Decide again with what the name resolved to. One forbidden address denies the name."""
        ...


class DialRefused(Exception):
    """A connection that the host must not or could not make."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Refused(Exception):
    """What the guest sent may not go on; `code` is a stable word with dashes."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


FAILURES: Final = frozenset(
    {
        "no-address",
        "no-resolver",
        "refused",
        "timeout",
        "unreachable",
        "reset",
        "network",
        "too-many-files",
        "proxy-timeout",
        "proxy-lost",
        "proxy-unreachable",
        "proxy-garbage",
        "proxy-auth",
        "broker-away",
    }
)
"""Codes of connections that were allowed and could not be made: nobody refused them."""


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connection that the host made."""

    socket: socket.socket
    """Connected and not blocking."""
    address: str
    """The numeric address that was checked and connected to, or what took its place."""
    note: str = ""
    """For the log, as `address not checked: proxy`."""


class Dialer(Protocol):
    """How the host reaches what was allowed."""

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        """Connect. Raises DialRefused, whatever the cause."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the egress log.

    `query`: a DNS question was answered. `open`: a connection was decided. `close`: it ended.
    `request`: the credential broker answered or refused one; `reason` has method, path and status.
    `drop`: something else was refused; those of one code and target are merged for a minute, and
    `count` says how many there were since the last entry. Names come from the guest: whoever shows
    them makes them printable.
    """

    at: float
    """Unix seconds."""
    kind: Literal["query", "open", "close", "request", "drop"]
    host: str
    port: int | None
    verdict: Action
    level: str = ""
    rule: str = ""
    origin: str = ""
    code: str = ""
    reason: str = ""
    address: str = ""
    """What the host connected to; for `drop` and literals the guest's target."""
    flow: int = 0
    """The connection's number, the same in `open` and `close`."""
    protocol: str = "tcp"
    """`tcp`, `udp`, `icmp`, `ipv6` or `other`."""
    up: int = 0
    """Bytes from the guest."""
    down: int = 0
    duration_ms: int = 0
    qtype: str = ""
    note: str = ""
    count: int = 1

    @property
    def failed(self) -> bool:
        """Whether it was allowed, and yet no connection came of it."""
        return self.kind == "open" and self.verdict == "allow" and self.code in FAILURES


class Log(Protocol):
    """Who keeps the entries."""

    def __call__(self, entry: Entry, /) -> None:
        """Take one; it must neither wait nor raise."""
        ...


@dataclass(frozen=True, slots=True)
class Station:
    """One end of the guest's link."""

    mac: bytes
    ip: bytes
    """Four bytes."""


GATEWAY = Station(bytes.fromhex("02c10c4e0001"), bytes((198, 19, 255, 1)))
GUEST = Station(bytes.fromhex("02c10c4e0002"), bytes((198, 19, 255, 2)))
"""The same in every session: the link is private, so a fork needs no new address. Out of the range
for benchmarks (RFC 2544), which no network that a guest wants to reach uses; the hardware addresses
are locally administered."""

MASK = bytes((255, 255, 255, 252))
"""Only the gateway is near; all else is behind it."""

MTU = 65_000
"""Bytes of an IP packet on the link; IPv4 ends at 65,535. Large, for the cost is by the packet."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one gateway. Times in seconds, sizes in bytes."""

    flows: int = 1024
    """Connections at once; a further one is refused with a reset."""
    half_open: int = 256
    """Connections that are being made; a further SYN is dropped, and the guest tries again."""
    held: int = 256
    """Connections that wait for a verdict; a further one is refused with a reset."""
    dials: int = 64
    """Connections that the host makes at once; others wait for their turn."""
    window: int = 1 << 20
    """What one flow may hold in each direction: bytes that the other end has not taken."""
    floor: int = 65_535
    """The same once `buffered` is used up."""
    buffered: int = 64 << 20
    """What all flows together may hold before each is held to `floor`."""
    handshake_s: float = 10.0
    dial_s: float = 20.0
    hello_s: float = 30.0
    """Time for a ClientHello, or for the head of a request that is to be refused. Python's programs
    read their authorities between connect and hello: 10 s in an emulated guest on a busy host."""
    ask_s: float = 60.0
    """How long a connection is held without a verdict."""
    idle_s: float = 7200.0
    """A connection without data either way is ended."""
    keepalive_s: float = 75.0
    keepalives: int = 9
    rto_s: float = 1.0
    rto_max_s: float = 30.0
    retries: int = 8
    time_wait_s: float = 2.0
    """Short, for nothing overtakes anything on a link of one wire."""
