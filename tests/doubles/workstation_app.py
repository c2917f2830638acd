"""The workstation with one live terminal and hostile names: `workstation_app.py SOCKET BELL`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.ui.app import ClocheApp
from app.ui.opening import run_app
from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.keeper import FakeFleet, FakeSession, session_info
from tests.doubles.terminals import StillTerminals
from tests.doubles.worker_link import LAUNCHER
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.widget import Widget

    from app.config import Bell
    from app.protocol import SessionInfo, SessionState

EVIL = "\x1b]0;EVIL\x07\x1b[31m\x9b31m[bold]n[/]\u202e\u200b\n\r\ud800"
"""What every name in it is made of."""


class SocketTerminals(StillTerminals):
    """The first session's terminal is a real one."""

    def __init__(self, socket: Path) -> None:
        super().__init__()
        self.socket = socket
        self.hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER)

    def view(self, session_id: str) -> Widget:
        if session_id != "s1":
            return super().view(session_id)
        return TerminalView(self.hub.open(session_id, self.socket))

    async def close(self) -> None:
        await self.hub.close()


def hostile(session: str, state: SessionState) -> SessionInfo:
    """Return a session all of whose texts are hostile."""
    name, agent = f"{session}{EVIL}", f"agent{EVIL}"
    return session_info(session, name, agent, state, workspace=f"/w{EVIL}", message=EVIL)


def main() -> int:
    """Run until the user leaves."""
    keepers = [FakeSession(hostile("s1", "running")), FakeSession(hostile("s2", "failed"))]
    terminals = SocketTerminals(Path(sys.argv[1]))
    workspace = Path("/w" + EVIL.replace("\0", ""))
    bell = cast("Bell", sys.argv[2])
    app = ClocheApp(workspace, FakeFleet(keepers), terminals, bell=bell)
    app.strict = True
    return run_app(app)


if __name__ == "__main__":
    sys.exit(main())
