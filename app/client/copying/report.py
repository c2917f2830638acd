"""What a copy has done so far, and what it left out."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.copy_stream import error_text
from app.errors import AppError
from app.protocol import Skipped
from app.wire_text import to_text

if TYPE_CHECKING:
    from pathlib import Path

    from app.copy_stream import Record

MAX_ENTRIES: Final = 1_000_000
"""Files and folders of one copy; a guest could go on making up names for ever."""

MAX_SKIPPED: Final = 100
"""Names that are kept of what was left out; the rest is counted."""

FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM})
"""Errors of the guest that mean: the agent's user may not do this."""

AS_ROOT: Final = "As root of the agent's world: cloche cp --root SRC DST"


def forbidden(answer: Record) -> AppError:
    """Return the error of a copy that only the root of the agent's world could make."""
    about = f" about '{to_text(answer.path)}'" if answer.path else ""
    return AppError(
        "guest-error",
        f"The guest answered{about}: {error_text(answer)}.",
        AS_ROOT,
    )


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """What one copy may have; beyond it nothing is kept of it."""

    entries: int = MAX_ENTRIES
    size: int | None = None
    """Bytes of all files; None: as much as the disk has room for."""


LIMITS: Final = CopyLimits()
"""Of a copy that its user asked for."""


@dataclass(slots=True)
class CopyReport:
    """`target` is where the copy lies now; `skipped` names at most MAX_SKIPPED entries."""

    target: Path | str = ""
    files: int = 0
    folders: int = 0
    size: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    skipped_count: int = 0

    limits: CopyLimits = LIMITS

    def one_more(self) -> None:
        """Take note that another entry comes. Raises AppError `too-large`."""
        if self.files + self.folders + self.skipped_count >= self.limits.entries:
            raise _too_large("entries", self.limits.entries)

    def grow(self, count: int) -> None:
        """Take note of bytes before they are written. Raises AppError `too-large`."""
        self.size += count
        if self.limits.size is not None and self.size > self.limits.size:
            raise _too_large("bytes", self.limits.size)

    def skip(self, path: bytes, reason: str) -> None:
        """Note an entry that is not copied."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(Skipped(to_text(path), reason))


def _too_large(what: str, most: int) -> AppError:
    text = f"The copy has more {what} than {most:,}."
    return AppError("too-large", text, "Copy its parts one by one.")


Progress = Callable[[CopyReport], None]
"""Called after each piece of content."""
