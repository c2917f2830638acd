"""Which addresses this machine has, read from the kernel: a guest must reach none of them."""

from __future__ import annotations

import contextlib
import re
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from vm.egress.addresses import Address, Own

V4: Final = Path("/proc/net/fib_trie")
V6: Final = Path("/proc/net/if_inet6")

MAX_TABLE: Final = 8 << 20
"""Most bytes that are read of a table; a machine with thousands of addresses needs a tenth."""

_LOCAL: Final = re.compile(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")


def read_own(v4: Path = V4, v6: Path = V6) -> Own:
    """Return this machine's addresses as they are now, in about a millisecond.

    Raises OSError where the kernel does not tell: then nothing may be let through. A kernel without
    IPv6 has no table of it, which is no error.
    """
    found: set[Address] = set(parse_fib_trie(_read(v4)))
    with contextlib.suppress(FileNotFoundError):
        found |= parse_if_inet6(_read(v6))
    return Own(frozenset(found))


def parse_fib_trie(text: str) -> set[IPv4Address]:
    """Return the local addresses in the kernel's table of IPv4 routes."""
    return {IPv4Address(one) for one in _LOCAL.findall(text)}


def parse_if_inet6(text: str) -> set[IPv6Address]:
    """Return the addresses in the kernel's table of IPv6 interfaces (32 hex digits a line)."""
    return {
        IPv6Address(int(fields[0], 16))
        for line in text.splitlines()
        if (fields := line.split()) and len(fields[0]) == 32
    }


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_TABLE + 1)
    if len(data) > MAX_TABLE:
        raise OSError(f"{path} is longer than {MAX_TABLE} bytes")
    return data.decode("ascii", "replace")
