"""Which contents of a session go, and when: an agent that rewrites large files fills no disk.

Needed are the present generation and whatever the mirror has fetched. The generation before it
stays as well while there is room: a client may still be reading what it was shown.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapshot.blobs import BlobStore

log = logging.getLogger(__name__)

STEP_BYTES: Final = 64 << 20
STEP_COUNT: Final = 10_000
"""Growth since the last look that makes another look worth its while."""


class Pruner:
    """Remembers what the last generations need. Call it with nobody writing contents."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._now: frozenset[str] = frozenset()
        self._seen = (0, 0)

    def settle(self, needed: Iterable[str], fetched: Iterable[str]) -> None:
        """Take note of a new generation and remove what nobody needs, if that may be much.

        Args:
            needed: every content that the generation's files name.
            fetched: every content that the mirror counts on.

        """
        before, self._now = self._now, frozenset(needed)
        tight = self._blobs.used > self._blobs.quota // 2
        if self._grown(1 if tight else STEP_BYTES):
            kept = self._now.union(fetched, () if tight else before)
            freed = self._blobs.prune(kept)
            log.info("%d bytes of contents that nothing needs are removed", freed)
            self._seen = (self._blobs.used, self._blobs.count)

    def _grown(self, step: int) -> bool:
        used, count = self._seen
        return self._blobs.used - used >= step or self._blobs.count - count >= STEP_COUNT
