"""The one type that holds a credential, and the process that may hold it."""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Final, NoReturn

from vm.errors import BrokerRefused

MIN_BYTES: Final = 8
"""A shorter value would stand in answers by chance, so it could not be taken out of them."""
MAX_BYTES: Final = 16_384
"""Longer than any token; a header has to hold it."""

PR_GET_DUMPABLE: Final = 3
PR_SET_DUMPABLE: Final = 4
"""prctl(2), linux/prctl.h."""


class Secret:
    """A credential's value, which shows itself nowhere: not in text, not in a copy, not on disk."""

    __slots__ = ("__value",)

    def __init__(self, value: bytes, hint: str) -> None:
        """Take a value; BrokerRefused with `hint` where no header can carry it."""
        if not MIN_BYTES <= len(value) <= MAX_BYTES:
            raise BrokerRefused(
                f"A credential has {MIN_BYTES} to {MAX_BYTES} bytes, this one {len(value)}.", hint
            )
        if not all(0x21 <= byte <= 0x7E for byte in value):
            raise BrokerRefused("A credential is one word of visible ASCII; this one is not.", hint)
        self.__value = value

    def reveal(self) -> bytes:
        """Return the value. Only what writes the header or scrubs an answer calls this."""
        return self.__value

    def __repr__(self) -> str:
        return "<credential>"

    def __format__(self, spec: str) -> str:
        return "<credential>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a credential is neither copied nor written down")


def harden() -> None:
    """Have this process leave no core dump and be read by no other one of the user's.

    Raises BrokerRefused where the kernel does not do it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise BrokerRefused(f"This kernel would write core dumps with credentials: {reason}.")
