"""Names that a merge makes in a workspace for a moment, and how the rest of Cloche knows them."""

from __future__ import annotations

import re
from typing import Final

TEMP_PREFIX: Final = b".cloche-"
"""Begins every temporary name in a workspace."""

BACKUP: Final = b".old"
"""Ends the second temporary name of a swap by hard link."""

_NAME: Final = re.compile(rb"\.cloche-\d{8}-\d{6}-[0-9a-f]{8}(?:-undo)?-\d+(?:\.old)?")


def temp_name(merge: str, number: int) -> bytes:
    """Return the temporary name of a merge's step."""
    return TEMP_PREFIX + f"{merge}-{number}".encode()


def is_temp_name(name: bytes) -> bool:
    """Return whether a merge made this name: only an interrupted one leaves it in a workspace.

    The whole form counts, not its beginning, so no file of the user's is taken for one.
    """
    return name.startswith(TEMP_PREFIX) and _NAME.fullmatch(name) is not None
