"""The workstation on a real terminal with sessions in memory; notes what each agent is given.

Run as `pane_program.py FILE`: each line of FILE is a session and a key or a pasted text, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.ui.opening import run_app
from tests.doubles.feed import FakeFeed
from tests.doubles.scenes import workstation
from tests.doubles.terminals import StillTerminals
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.widget import Widget


class WritingFeed(FakeFeed):
    """A feed that writes down what it is told."""

    def __init__(self, session: str, path: Path) -> None:
        super().__init__(76, 30)
        self._session = session
        self._path = path

    def _note(self, what: str) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps([self._session, what]) + "\n")

    def send_key(self, key: str, character: str | None) -> None:
        self._note(key)

    def send_paste(self, text: str) -> None:
        self._note(text)


class WritingTerminals(StillTerminals):
    """Terminals whose feeds write."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def view(self, session_id: str) -> Widget:
        return TerminalView(WritingFeed(session_id, self._path))


def main() -> int:
    """Run until the user leaves."""
    app, _, _ = workstation()
    app.terminals = WritingTerminals(Path(sys.argv[1]))
    return run_app(app)


if __name__ == "__main__":
    sys.exit(main())
