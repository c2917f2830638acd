"""Which merges of a session are in force: done and not taken back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app.wire_text import to_text
from snapshot.errors import SnapshotError
from snapshot.undo import UNDO_SUFFIX
from snapshot.writeback_journal import read_journal

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.writeback_journal import Record

log = logging.getLogger(__name__)


class MergesInForce:
    """Reads the journals once, and again after `renew`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.paths: frozenset[str] = frozenset()
        """What they wrote."""
        self.last = ""
        """The id of the last one, or empty."""
        self.last_files = 0
        """How many paths that one wrote."""
        self.renew()

    def renew(self) -> None:
        """Read the journals."""
        records = [record for record in self._records() if record.state == "DONE"]
        self.paths = frozenset(to_text(path) for record in records for path in record.written)
        self.last = records[-1].merge if records else ""
        self.last_files = len(records[-1].written) if records else 0

    def _records(self) -> list[Record]:
        """Return what can be read, the oldest first."""
        found: list[tuple[int, Record]] = []
        for folder in self._folder.iterdir():
            if folder.name.endswith(UNDO_SUFFIX):
                continue
            try:
                record = read_journal(folder)
                if record is not None:
                    found.append(((folder / "journal.jsonl").stat().st_mtime_ns, record))
            except (SnapshotError, OSError) as error:  # one that is damaged hides no other
                log.warning("the merge in %s cannot be read: %s", folder.name, error)
        return [record for _, record in sorted(found, key=lambda pair: pair[0])]
