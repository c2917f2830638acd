"""What the gateway does not pass on: counted, and told to the log with a reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.egress.kinds import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.kinds import Log

DROPS: Final = {
    "ipv6": "IPv6 does not leave the machine.",
    "icmp": "ICMP does not leave the machine.",
    "quic": "QUIC is not passed on; clients fall back to TCP.",
    "foreign-dns": "Names are answered by the gateway alone.",
    "dot": "Names are answered by the gateway alone.",
    "udp": "UDP does not leave the machine.",
    "dhcp": "The address is given by the host, not by DHCP.",
    "spoofed-mac": "A frame came from a hardware address that is not the guest's.",
    "spoofed-address": "A packet came from an address that is not the guest's.",
    "spoofed-gateway": "The guest claimed to be the gateway.",
    "unknown-name": "No name of this session has that address.",
    "gateway-port": "The gateway answers names only.",
    "too-many-connections": "The guest has as many connections as it may.",
    "too-many-questions": "As many connections as may already wait for an answer.",
    "half-open": "As many connections as may are just being made; the guest tries again.",
}
MALFORMED: Final = "A frame was not as it must be."
"""Why of all codes that a `BadFrame` has."""
UDP_CODES: Final = {53: "foreign-dns", 67: "dhcp", 80: "quic", 443: "quic", 853: "dot"}


@dataclass(slots=True)
class Bucket:
    """Allows so many a second."""

    rate: int
    left: float = 0.0
    at: float = float("-inf")

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        self.left = min(self.rate, self.left + max(now - self.at, 0.0) * self.rate)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Drops:
    """Counts by code in `counts`, and writes entries into `log`."""

    def __init__(self, log: Log, wall: Callable[[], float]) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._wall = wall

    def drop(self, code: str, protocol: str, address: str = "", port: int | None = None) -> None:
        """Count one of DROPS, and tell of it."""
        self._tell(code, DROPS[code], protocol, address, port)

    def malformed(self, code: str) -> None:
        """Count a frame that is none of those, by the code of its `BadFrame`, and tell of it."""
        self._tell(code, MALFORMED, "other", "", None)

    def _tell(self, code: str, reason: str, protocol: str, address: str, port: int | None) -> None:
        self.counts[code] += 1
        entry = Entry(
            at=self._wall(),
            kind="drop",
            host=address,
            port=port,
            verdict="deny",
            level="absolute",
            code=code,
            reason=reason,
            address=address,
            protocol=protocol,
        )
        self._log(entry)
