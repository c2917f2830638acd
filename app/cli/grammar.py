"""What the commands' grammars share. Imports nothing but argparse, for `--help` must be quick."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Adder = Callable[..., argparse.ArgumentParser]
    """Adds a command: its name, a summary, and whether it is about a `session`."""

    Commands = argparse._SubParsersAction["Parser"]  # pyright: ignore[reportPrivateUsage]

SESSION = "id, unique prefix of it, or name"
"""How a session can be named."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are ours, and whose options may stand between its words.

    argparse alone gives `[PATH] [TEXT]` nothing as soon as an option follows the words before them,
    and then does not know what to do with words that come later.
    """

    _mixes = False

    def parse_known_args(  # type: ignore[override]  # one signature stands for two
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse options first where a word may be left out, then the words."""
        found = argparse.Namespace() if namespace is None else namespace
        if self._mixes or not self._has_optional_words():
            return super().parse_known_args(args, found)
        self._mixes = True
        try:
            return self.parse_known_intermixed_args(args, found)
        finally:
            self._mixes = False

    def _has_optional_words(self) -> bool:
        words = (action for action in self._actions if not action.option_strings)
        return any(action.nargs in ("?", "*", "+") for action in words)

    def error(self, message: str) -> NoReturn:
        """Raise AppError `usage`."""
        sentence = message[:1].upper() + message[1:]
        raise AppError("usage", f"{sentence.rstrip('.')}.", f"See: {self.prog} --help")


def add_command(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    """Add a command, or an action of a group, that can answer with one JSON object."""
    command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    command.add_argument("--json", action="store_true", help="print one JSON object")
    return command


def add_group(
    commands: Commands, name: str, summary: str, actions: dict[str, str]
) -> dict[str, argparse.ArgumentParser]:
    """Add a command that has actions (name and summary of each); return their parsers by name."""
    group = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    inner = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    return {action: add_command(inner, action, text) for action, text in actions.items()}


def add_session(command: argparse.ArgumentParser) -> None:
    """Let a command be about one session."""
    command.add_argument("session", metavar="ID", help=SESSION)


def add_repeated(command: argparse.ArgumentParser, flag: str, form: str, text: str) -> None:
    """Add an option that can be given again, which its help says; its values are a list."""
    command.add_argument(
        flag, action="append", default=[], metavar=form, help=f"{text}; can be given again"
    )
