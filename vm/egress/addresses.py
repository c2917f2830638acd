"""Which addresses the host may connect to for a guest: one table, judged after every resolution.

*Absolute* blocks hold whatever a rule says: this machine, the link, cloud metadata, multicast, what
is reserved, and IPv6 forms that carry an IPv4 address around the check. *Private* addresses open
only to a rule of the user that says `private: true`.

Sources: IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates), RFC 6598
(CGNAT), 6052 and 8215 (NAT64), 3056 and 7526 (6to4), 4380 (Teredo), 5214 (ISATAP); metadata: the
documentation of the clouds named below.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PRIVATE: Final = frozenset(("private-address", "cgnat-address", "documentation-address"))
"""Codes that a user's rule with `private: true` lifts; every other one is absolute."""

WORDS: Final = {
    "loopback-address": "this machine's own loopback",
    "link-local-address": "a link-local address",
    "metadata-address": "a cloud's metadata service",
    "multicast-address": "a multicast address",
    "reserved-address": "a reserved address, which no host has",
    "documentation-address": "an address for documentation, which only a private network has",
    "transition-address": "an IPv6 form of an IPv4 address",
    "gateway-address": "an address of Cloche's own gateway",
    "own-address": "an address of this machine",
    "private-address": "a private address",
    "cgnat-address": "a carrier's private address (CGNAT)",
}
"""What each code means, to end a sentence with."""

METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # AWS, credentials of containers
        "169.254.170.23",  # AWS, credentials of pods
        "fd00:ec2::254",  # AWS over IPv6
        "fd00:ec2::23",  # AWS over IPv6, pods
        "fd20:ce::254",  # Google over IPv6
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure, public by its number
        "192.0.0.192",  # Oracle, formerly
    )
)

POOL: Final = (IPv4Network("198.18.0.0/15"),)
"""The synthetic addresses that names get in a guest, and the gateway's own."""


@dataclass(frozen=True, slots=True)
class Own:
    """What belongs to this side: never a guest's to reach."""

    host: frozenset[Address] = frozenset()
    """Every address of this machine, as `vm.egress.own` reads them."""
    gateway: tuple[Network, ...] = POOL


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why an address is refused."""

    code: str
    """One of WORDS."""
    address: Address

    @property
    def reason(self) -> str:
        """The same as part of a sentence."""
        return f"{self.address} is {WORDS[self.code]}"

    @property
    def absolute(self) -> bool:
        """Whether no rule can lift it."""
        return self.code not in PRIVATE


def _networks(code: str, *texts: str) -> tuple[tuple[Network, str], ...]:
    return tuple((ipaddress.ip_network(text), code) for text in texts)


_TABLE: Final = (
    *_networks("loopback-address", "127.0.0.0/8", "::1/128"),
    *_networks("link-local-address", "169.254.0.0/16", "fe80::/10"),
    *_networks("multicast-address", "224.0.0.0/4", "ff00::/8"),
    *_networks("reserved-address", "0.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24"),
    *_networks("reserved-address", "198.18.0.0/15", "240.0.0.0/4", "::/128", "100::/64"),
    *_networks("reserved-address", "5f00::/16"),
    *_networks("transition-address", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96"),
    *_networks("transition-address", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
    *_networks("reserved-address", "2001::/23"),
    *_networks("private-address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    *_networks("private-address", "fc00::/7", "fec0::/10"),
    *_networks("cgnat-address", "100.64.0.0/10"),
    *_networks("documentation-address", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    *_networks("documentation-address", "2001:db8::/32", "3fff::/20"),
)
"""In the order that decides: a smaller block before one that holds it."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


def blocked(address: Address, own: Own) -> Blocked | None:
    """Return why an address is refused to every rule or to most, None for a public one.

    A NAT64 form is judged by the address in it, since on a network with only IPv6 every name has
    one. All other forms that carry an IPv4 address are refused: nobody needs them.
    """
    code = _code(address, own)
    return None if code is None else Blocked(code, address)


def check(address: Address, private: bool, own: Own) -> Blocked | None:
    """Return why an address is refused, given whether the deciding rule lifts private ones."""
    found = blocked(address, own)
    return None if found is None or (private and not found.absolute) else found


def check_all(addresses: Iterable[Address], private: bool, own: Own) -> Blocked | None:
    """Return why one of a name's addresses is refused; then the whole name is.

    An absolute block is named before one that a rule could lift.
    """
    found = [one for address in addresses if (one := check(address, private, own)) is not None]
    return min(found, key=lambda one: not one.absolute, default=None)


def never_reachable(network: Network, own: Own) -> Blocked | None:
    """Return the block that holds a whole network, so that no rule for it can take effect.

    A code out of PRIVATE means: only with `private: true`.
    """
    for held, code in (*((held, "gateway-address") for held in own.gateway), *_TABLE):
        if _inside(network, held):
            return Blocked(code, network.network_address)
    single = network.num_addresses == 1
    return blocked(network.network_address, own) if single else None


def _code(address: Address, own: Own) -> str | None:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:  # fe80::1%eth0 is the same address
            return _code(IPv6Address(int(address)), own)
        if address in _NAT64:
            return _code(IPv4Address(int(address) & 0xFFFFFFFF), own)
    if address in METADATA:
        return "metadata-address"
    for networks in own.gateway:
        if address in networks:
            return "gateway-address"
    listed = next((code for network, code in _TABLE if address in network), None)
    if listed is None or listed in PRIVATE:
        if address in own.host:
            return "own-address"
        if _is_isatap(address):
            return "transition-address"
    return listed


def _is_isatap(address: Address) -> bool:
    return isinstance(address, IPv6Address) and int(address) >> 32 & 0xFFFFFFFF in _ISATAP


def _inside(network: Network, held: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(held, IPv4Network) and network.subnet_of(held)
    return isinstance(held, IPv6Network) and network.subnet_of(held)


def literal(text: str) -> Address | None:
    """Return the address that a text is in its usual notation (`[…]` around IPv6 or not)."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None
