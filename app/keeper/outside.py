"""What a keeper was handed of its starter's environment besides its own variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vm.egress.proxy import Proxies

NO_PROXIES: Final = Proxies()


@dataclass(frozen=True, slots=True)
class Outside:
    """Ways out for the gateway, and the broker's variables."""

    proxies: Proxies = NO_PROXIES
    variables: int = -1
    """Descriptor of the memory file with the broker's variables; -1: the session has no broker."""
