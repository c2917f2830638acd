"""The three standard descriptors: there when we begin, and written out when we end.

Whoever starts us may have closed some (`>&-`, a daemon). The next file that is opened would get the
number, and be read for input or have errors written into it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

PIPE: Final = 141
"""Exit status when nobody reads what we say any more: 128 + SIGPIPE."""

FAILED: Final = 1
_NAMES: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_standard() -> None:
    """Put the null device in the place of what is closed; call it before anything is opened."""
    for number in range(len(_NAMES)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
    for number, (name, mode) in enumerate(_NAMES):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays open for good


def finish(status: int) -> int:
    """Write out what still waits; the exit status, which says so where that was impossible."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = drop()
    except OSError as error:
        drop()
        with contextlib.suppress(OSError):
            sys.stderr.write(f"cloche: The answer could not be written: {error.strerror}.\n")
        status = status or FAILED
    with contextlib.suppress(OSError):
        sys.stderr.flush()
        return status
    _to_null(2)
    return status


def drop() -> int:
    """Drop what nobody reads, so that the interpreter's own flush at exit does not complain."""
    _to_null(1)
    return PIPE


def _to_null(number: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
