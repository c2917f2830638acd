"""Gives memory that was freed back to the host.

glibc keeps it, page by page between what is still used, for a next time: after a list of hundreds
of thousands of entries that is a quarter of all that the keeper has.
"""

from __future__ import annotations

import contextlib
import ctypes


def give_back() -> None:
    """Return what can be returned; blocks for some milliseconds, run it in a thread."""
    with contextlib.suppress(AttributeError):  # another C library has no such call
        ctypes.CDLL(None).malloc_trim(0)
