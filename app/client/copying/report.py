"""What a copy has done so far, and what it left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.protocol import Skipped
from app.wire_text import to_text

if TYPE_CHECKING:
    from pathlib import Path

MAX_SKIPPED: Final = 100
"""Names that are kept of what was left out; the rest is counted."""


@dataclass(slots=True)
class CopyReport:
    """`target` is where the copy lies now; `skipped` names at most MAX_SKIPPED entries."""

    target: Path | str = ""
    files: int = 0
    folders: int = 0
    size: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    skipped_count: int = 0

    def skip(self, path: bytes, reason: str) -> None:
        """Note an entry that is not copied."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(Skipped(to_text(path), reason))


Progress = Callable[[CopyReport], None]
"""Called after each piece of content."""
