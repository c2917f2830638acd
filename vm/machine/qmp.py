"""QMP with a bound on every wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path


class Qmp:
    """A connection to one QEMU's monitor."""

    @classmethod
    async def connect(cls, path: Path, deadline_s: float) -> Qmp:
        """Connect and negotiate. Raises LinkLost."""
        raise NotImplementedError

    async def execute(
        self, command: str, arguments: Mapping[str, object] | None = None, timeout_s: float = 10.0
    ) -> object:
        """Run one command and return its answer. Raises LinkLost or QmpRefused."""
        raise NotImplementedError

    def events(self, *names: str) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """Yield events (name, data) of these names until the connection ends; keeps at most 256."""
        raise NotImplementedError

    async def close(self) -> None:
        """Disconnect; never raises."""
        raise NotImplementedError
