"""The page of commands is fresh, and the parsers say something about everything."""

from __future__ import annotations

import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from app import errors
from app.cli.parser import build, parse
from app.cli.reference import STATUSES, Command, actions, commands, page
from app.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "guide" / "cli.md"
SHELL = ("|", ">", "<")
"""Words after which a line says nothing to Cloche."""


def examples() -> list[str]:
    """Return the command lines that README and guide show, each as it is typed."""
    pages = [ROOT / "README.md", *PAGE.parent.glob("*.md")]
    lines = [line.strip() for page in pages if page != PAGE for line in indented(page)]
    return sorted({line[line.index("cloche ") :] for line in lines if is_command(line)})


def indented(page: Path) -> list[str]:
    return [line for line in page.read_text("utf-8").splitlines() if line.startswith("    ")]


def is_command(line: str) -> bool:
    return line.startswith("cloche ") or "| cloche " in line


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


def taken(command: Command, typed: list[str]) -> dict[str, object]:
    words = [*command.words.split()[1:], *typed]
    return vars(parse(build("1"), words, takes_rest=()))


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: command.words)
def test_an_option_may_stand_before_between_and_after_the_words(command: Command) -> None:
    words = [
        next(iter(action.choices)) if action.choices else f"word{number}"
        for number, action in enumerate(actions(command.parser))
        if not action.option_strings
    ]
    wanted = taken(command, ["--json", *words])
    assert wanted["json"]
    for at in range(1, len(words) + 1):
        assert taken(command, [*words[:at], "--json", *words[at:]]) == wanted


def test_an_option_with_a_value_may_stand_between_the_words() -> None:
    parser = build("1")
    lines = (
        "comment ID --hunk HID PLACE TEXT",
        "comment --hunk HID ID PLACE TEXT",
        "comment ID PLACE --hunk HID TEXT",
    )
    for line in lines:
        found = parse(parser, shlex.split(line), takes_rest=())
        assert (found.hunk, found.place, found.text) == ("HID", "PLACE", "TEXT")


def test_every_exit_status_is_there() -> None:
    known = {
        number
        for name, number in vars(errors).items()
        if name.startswith("EXIT_") and isinstance(number, int)
    }
    assert {status for status, _ in STATUSES} == known


@pytest.mark.parametrize("line", examples())
def test_every_example_of_the_guide_is_a_command(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    head = [*takewhile(lambda word: word != "--" and not word.startswith(SHELL), words)]
    assert parse(build("0"), head, takes_rest=()).command.split()[0] in head
