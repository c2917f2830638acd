"""The gateway's process without what it does not need: it passes TLS through and speaks none.

asyncio, hashlib and msgspec each do without the library named here where it cannot be imported.
That is 6 MB less for every session, and no OpenSSL in the process that reads a guest's frames.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

UNUSED: Final = ("ssl", "_hashlib", "typing_extensions")


def run(arguments: Sequence[str]) -> int:
    """Serve one link (see `app.gateway.role`) in a process that has loaded none of `UNUSED`."""
    modules = cast("dict[str, object]", sys.modules)
    for name in UNUSED:
        modules.setdefault(name, None)  # "import" then raises ModuleNotFoundError
    from app.gateway import role

    return role.run(arguments)
