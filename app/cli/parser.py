"""The grammar of the command line. Imports nothing but argparse, for `--help` must be quick."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from app.cli.grammar import Parser, add_command, add_session
from app.cli.grammar_egress import add_egress
from app.cli.grammar_guest import add_guest
from app.cli.grammar_host import add_host
from app.cli.grammar_review import add_review
from app.cli.grammar_sessions import add_sessions
from app.errors import AppError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

ABOUT: Final = (
    "Runs coding agents in microVMs on a snapshot of your workspace; you take home only the hunks "
    "you accept. Without a command: the workstation on the current folder."
)


EMPTY: Final = re.compile("--[a-z-]+=")
"""An option whose value is empty."""


def build(version: str) -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="cloche", description=ABOUT, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"cloche {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def add(name: str, summary: str, session: bool = False) -> argparse.ArgumentParser:
        command = add_command(commands, name, summary)
        if session:
            add_session(command)
        return command

    add_sessions(add)
    add_guest(add)
    add_review(add)
    add_host(add, commands)
    add_egress(commands)
    return parser


def parse(parser: Parser, words: list[str], *, takes_rest: Collection[str]) -> argparse.Namespace:
    """Parse a command line; for a command of `takes_rest`, say where a `--` is missing.

    Raises AppError `usage`.
    """
    _refuse_empty(words)
    arguments, unknown = parser.parse_known_args(words)
    if not unknown:
        return arguments
    sentence = f"Unrecognized arguments: {' '.join(unknown)}."
    if arguments.command not in takes_rest or unknown[0].startswith("-"):
        raise AppError("usage", sentence, f"See: {_named(arguments.command)} --help")
    named = [getattr(arguments, name, None) for name in ("session", "agent")]
    first = 1 + max((words.index(name) for name in named if name in words), default=0)
    at = words.index(unknown[0], first)
    before, after = shlex.join(words[:at]), shlex.join(words[at:])
    raise AppError("usage", sentence, f"cloche {before} -- {after}")


def _refuse_empty(words: list[str]) -> None:
    """Refuse an empty word: a variable that a script forgot to set must not mean a default."""
    for before, word in zip(["", *words], words, strict=False):
        if word and not EMPTY.fullmatch(word):
            continue
        option = word.rstrip("=") or (before if before.startswith("--") else "")
        what = f"What stands after {option}" if option else "A word of the command"
        command = next((one for one in words if one.isidentifier()), None)
        raise AppError("usage", f"{what} is empty.", f"See: {_named(command)} --help")


def _named(command: str | None) -> str:
    return f"cloche {command}" if command else "cloche"
