"""The whole workstation over live panes, for benchmarks: `terminal_workstation.py FOLDER COUNT`.

Sessions are in memory, all else is as it ships: the fleet screen with COUNT panes wished for, whose
terminals are FOLDER/0.sock, FOLDER/1.sock … The key `1` gives the first one the keys.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.paths import Paths
from app.services.layouts import Layout, NoLayouts
from app.ui.live_terminals import LiveTerminals
from app.ui.opening import run_app
from tests.doubles.engines import cache_folder
from tests.doubles.keeper import FakeSession, session_info
from tests.doubles.scenes import workstation
from themes.palette import DEFAULT, builtin_palettes

MOST = 9
"""Panes that the fleet screen shows at once."""


@dataclass(frozen=True)
class OneFolder(Paths):
    """Finds every session's sockets in the folder of its name."""

    folder: Path = Path()

    def sockets(self, session_id: str, folder: Path | None = None) -> Path:
        return self.folder / session_id


class SoMany(NoLayouts):
    """Wishes for as many panes as there are sessions."""

    def __init__(self, names: list[str]) -> None:
        self._names = tuple(names[:MOST])

    async def load(self, workspace: str) -> Layout:
        count = len(self._names)
        return Layout(panes=count, panes_low=count, places=self._names, current=self._names[0])


def session(folder: Path, number: int) -> FakeSession:
    """Return a session that works, and put its socket where it is looked for."""
    name = f"s{number}"
    place = folder / name
    place.mkdir(mode=0o700)
    os.symlink(folder / f"{number}.sock", place / "pane.sock")
    now = time.time()
    told = session_info(name, f"task-{number}", "shell", created=now, since=now, counts=(3, 42, 7))
    return FakeSession(told)


def main() -> int:
    """Run until the user leaves."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    names = [f"s{number}" for number in range(count)]
    sessions = [session(folder, number) for number in range(count)]
    app, _, _ = workstation(sessions, layouts=SoMany(names))
    paths = OneFolder(folder, folder, folder, cache_folder(), folder, folder)
    app.terminals = LiveTerminals(paths, builtin_palettes()[DEFAULT])
    return run_app(app)


if __name__ == "__main__":
    sys.exit(main())
