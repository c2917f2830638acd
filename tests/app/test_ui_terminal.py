"""The real application on a real terminal of the old kind: what is typed and where it goes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parents[1] / "doubles" / "pane_program.py"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


class Typist:
    """Types at the workstation and reads what the agents were given."""

    def __init__(self, terminal: TmuxTerminal, notes: Path) -> None:
        self.terminal = terminal
        self._notes = notes

    def given(self) -> list[tuple[str, str]]:
        """Return each session and key."""
        if not self._notes.exists():
            return []
        lines = self._notes.read_text().splitlines()
        return [(session, key) for session, key in map(json.loads, lines)]

    def until_given(self, *wanted: tuple[str, str]) -> None:
        """Wait until exactly these keys were given."""
        self.terminal.until(lambda _: len(self.given()) >= len(wanted))
        assert self.given() == list(wanted)


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    notes = tmp_path / "notes"
    argv = [sys.executable, "-P", str(PROGRAM), str(notes)]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    with TmuxTerminal(tmp_path, argv, environment, 120, 36, tmp_path) as terminal:
        terminal.until("n new")
        yield Typist(terminal, notes)


def test_escape_alone_and_alt_with_enter_reach_the_agent(typist: Typist) -> None:
    typist.terminal.keys("Enter")
    typist.terminal.until("keys go to")
    typist.terminal.keys("Escape")
    typist.until_given(("s1", "escape"))
    typist.terminal.keys("M-Enter")
    typist.until_given(("s1", "escape"), ("s1", "alt+enter"))
    typist.terminal.keys("M-BSpace")
    typist.until_given(("s1", "escape"), ("s1", "alt+enter"), ("s1", "alt+backspace"))


def test_keys_in_one_breath_go_where_they_are_meant(typist: Typist) -> None:
    """tmux writes all of them at once, so the application reads them in one piece."""
    typist.terminal.keys("M-2", "l", "s", "Enter", "F12", "z", "M-1", "q", "C-g", "z", "C-g", "C-g")
    wanted = [("s2", "l"), ("s2", "s"), ("s2", "enter"), ("s1", "q"), ("s1", "ctrl+g")]
    typist.until_given(*wanted)
    typist.terminal.keys("x", "F12", "q")
    typist.terminal.until_ended()
    assert typist.given() == [*wanted, ("s1", "x")]


def test_the_terminal_is_left_as_it_was_found(typist: Typist) -> None:
    process = typist.terminal.process()
    assert process > 0
    typist.terminal.keys("Enter", "F12", "q")
    typist.terminal.until_ended()
    assert typist.given() == []
