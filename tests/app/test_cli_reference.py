"""The page of commands is fresh, and the parsers say something about everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import errors
from app.cli.reference import STATUSES, Command, actions, commands, page
from app.main import COMMANDS

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "cli.md"


def test_the_guides_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "Run: python -m app.cli.reference > docs/guide/cli.md"
    )


def test_every_command_is_there() -> None:
    assert {command.words.split()[1] for command in commands()} == set(COMMANDS)


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: command.words)
def test_every_argument_says_what_it_does(command: Command) -> None:
    assert command.parser.description
    for action in actions(command.parser):
        assert action.help, action
        assert "--json" in command.parser.format_help()


def test_every_exit_status_is_there() -> None:
    known = {
        number
        for name, number in vars(errors).items()
        if name.startswith("EXIT_") and isinstance(number, int)
    }
    assert {status for status, _ in STATUSES} == known
