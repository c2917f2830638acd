"""The synthetic addresses: each name of a session gets one, and keeps it for ever.

A guest connects to an address, and the gateway must know the name that is meant. So an address is
never given to a second name, in the session and in all that is forked from it: the table lies in
the journal and in every checkpoint. Pure; its owner hears of each new row and writes it down.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FIRST: Final = int(IPv4Address("198.18.0.1"))
LAST: Final = int(IPv4Address("198.19.254.255"))
"""Of the range for benchmarks (RFC 2544), less the last 256, where the link's own addresses lie."""
MAX_NAMES: Final = 20_000
NEW_PER_SECOND: Final = 50
"""Names that a guest may make up a second; each is a row for ever."""


class TableFull(Exception):
    """No address for this name: now (`code` too-fast), or at all (`code` too-many-names)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class BadTable(ValueError):
    """Rows that are no table: an address out of the range, or one given twice."""


class NameTable:
    """Names and addresses, one to one. `added` is called before a new address is given out."""

    def __init__(
        self,
        rows: Iterable[tuple[str, str]] = (),
        added: Callable[[str, str], None] = lambda name, address: None,
    ) -> None:
        """Begin with rows (name, dotted address) of `rows()`. Raises BadTable."""
        self._addresses: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._next = FIRST
        self._added = added
        self._allowance = float(NEW_PER_SECOND)
        self._counted = float("-inf")
        for name, address in rows:
            self._put(name, _parsed(address))

    def __len__(self) -> int:
        return len(self._names)

    def rows(self) -> list[tuple[str, str]]:
        """Return all rows, in the order in which they came."""
        return [(name, str(IPv4Address(at))) for name, at in self._addresses.items()]

    def bind(self, name: str, now: float) -> bytes:
        """Return the address of a name, four bytes. Raises TableFull."""
        known = self._addresses.get(name)
        if known is not None:
            return known.to_bytes(4, "big")
        if len(self._names) >= MAX_NAMES or self._next > LAST:
            raise TableFull("too-many-names")
        self._spend(now)
        address = self._next
        self._added(name, str(IPv4Address(address)))
        self._put(name, address)
        return address.to_bytes(4, "big")

    def name_of(self, address: bytes) -> str | None:
        """Return the name that an address stands for."""
        return self._names.get(int.from_bytes(address, "big"))

    def _put(self, name: str, address: int) -> None:
        if not FIRST <= address <= LAST or address in self._names or name in self._addresses:
            raise BadTable(f"The row {name!r} = {IPv4Address(address)} fits no table of names.")
        if len(self._names) >= MAX_NAMES:
            raise BadTable(f"A table has at most {MAX_NAMES} names.")
        self._names[address] = name
        self._addresses[name] = address
        self._next = max(self._next, address + 1)

    def _spend(self, now: float) -> None:
        """Count a new name; the allowance fills up by the second."""
        gained = max(now - self._counted, 0.0) * NEW_PER_SECOND
        self._allowance = min(self._allowance + gained, NEW_PER_SECOND)
        self._counted = now
        if self._allowance < 1:
            raise TableFull("too-fast")
        self._allowance -= 1


def is_synthetic(address: bytes) -> bool:
    """Tell whether an address is of the range that names get theirs from."""
    return FIRST - 1 <= int.from_bytes(address, "big") <= LAST + 256


def _parsed(address: str) -> int:
    try:
        return int(IPv4Address(address))
    except ValueError:
        raise BadTable(f"{address!r} is no address.") from None
