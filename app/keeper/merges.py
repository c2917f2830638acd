"""Which merges of a session are in force: done and not taken back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app.wire_text import to_text
from snapshot.errors import SnapshotError
from snapshot.merged import Merged
from snapshot.undo import UNDO_SUFFIX
from snapshot.writeback_journal import read_journal
from snapshot.writeback_ops import Side

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.writeback_journal import Asked, Record
    from snapshot.writeback_ops import MergedUnit

log = logging.getLogger(__name__)


class MergesInForce:
    """Reads the journals once, and again after `renew`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where the journals lie."""
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
        self._last_of: dict[bytes, Record] = {}
        self._units: dict[tuple[bytes, str], MergedUnit] = {}
        paths: set[bytes] = set()
        for record in records:
            for name in set(record.written) - record.restored:
                paths.add(name)
                if name in record.asked:
                    self._last_of[name] = record
                    self._units |= {(name, unit.id): unit for unit in record.asked[name].units}
        self.paths = frozenset(to_text(path) for path in paths)
        self._in_force = {record.merge: record for record in records}
        self.last = records[-1].merge if records else ""
        self.last_files = len(records[-1].written) if records else 0

    def asked(self, path: bytes) -> Asked | None:
        """Return what the last merge in force was to make of a path."""
        record = self._last_of.get(path)
        return None if record is None else record.asked[path]

    def unit(self, path: bytes, unit: str) -> MergedUnit | None:
        """Return what was merged of a hunk or aspect, None if nothing was."""
        return self._units.get((path, unit))

    def earlier(self, path: bytes) -> Merged | None:
        """Return what the last merge in force made of a path.

        None also where a merge before it was taken back: what the last one left is then unknown.
        """
        record = self._last_of.get(path)
        if record is None or not self._is_whole(record, path):
            return None
        asked = record.asked[path]
        if not asked.image:
            side = Side(asked.kind, b"", asked.executable, asked.digest)
            return Merged(record.merge, asked.path, side)
        try:
            content = record.images.read(asked.image)
        except OSError as error:
            log.warning("what %s merged cannot be read: %s", record.merge, error)
            return None
        side = Side(asked.kind, content, asked.executable)
        return Merged(record.merge, asked.path, side) if side.digest == asked.digest else None

    def _is_whole(self, record: Record, path: bytes) -> bool:
        """Tell whether all merges that this one builds on are in force at this path."""
        while record.asked[path].follows:
            before = self._in_force.get(record.asked[path].follows)
            if before is None or path in before.restored or path not in before.asked:
                return False
            record = before
        return True

    def _records(self) -> list[Record]:
        """Return what can be read, the oldest first."""
        found: list[tuple[int, Record]] = []
        for folder in self.folder.iterdir():
            if folder.name.endswith(UNDO_SUFFIX):
                continue
            try:
                record = read_journal(folder)
                if record is not None:
                    found.append(((folder / "journal.jsonl").stat().st_mtime_ns, record))
            except (SnapshotError, OSError) as error:  # one that is damaged hides no other
                log.warning("the merge in %s cannot be read: %s", folder.name, error)
        return [record for _, record in sorted(found, key=lambda pair: pair[0])]
