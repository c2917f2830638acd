"""The guide's page of commands, made from the parsers: `python -m app.cli.reference`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from app import errors
from app.cli.parser import build

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD: Final = """\
# Commands

This page is made from the program's own parsers; `cloche COMMAND --help` says the same.

With `--json` a command prints exactly one JSON object on standard output. It holds `"ok": true`
and the answer, or `"ok": false` and `"error": {"code", "message", "hint"}`. Everything else that a
command has to say goes to standard error.
"""

STATUSES: Final = (
    (errors.EXIT_DONE, "done"),
    (errors.EXIT_FAILED, "failed"),
    (errors.EXIT_USAGE, "the command line is wrong"),
    (errors.EXIT_DECISION, "`merge`, `undo`, `review`: conflicts, or hunks wait for a decision"),
    (errors.EXIT_MISSING, "there is no such session, agent, path, hunk or merge"),
    (errors.EXIT_HOST, "this host lacks something; the hint brings it"),
    (errors.EXIT_TIMEOUT, "`exec`, `sandbox`: out of time (`--timeout-s`)"),
    (
        errors.EXIT_OURS,
        "`exec`, `sandbox`, `run --headless`: Cloche itself failed, not the program",
    ),
    (errors.EXIT_NOT_EXECUTABLE, "`exec`, `sandbox`: the program cannot be executed"),
    (errors.EXIT_NOT_FOUND, "`exec`, `sandbox`: there is no such program"),
)
"""Every exit status and what it means."""


class Command(NamedTuple):
    """One command: its words and its parser."""

    words: str
    parser: argparse.ArgumentParser


def commands() -> Iterator[Command]:
    """Yield every command in the order of the help, subcommands in place of their group."""
    yield from _below("cloche", build("VERSION"))


def _below(words: str, parser: argparse.ArgumentParser) -> Iterator[Command]:
    for group in actions(parser):
        if not isinstance(group, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            continue
        children = cast("dict[str, argparse.ArgumentParser]", group.choices)  # pyright: ignore[reportUnknownMemberType]
        for name, child in children.items():
            below = list(_below(f"{words} {name}", child))
            yield from below or [Command(f"{words} {name}", child)]


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return what a parser takes, without `--help`."""
    known = parser._actions  # pyright: ignore[reportPrivateUsage]
    return [action for action in known if action.dest != "help"]


def names(action: argparse.Action) -> str:
    """Return an argument as it is typed."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = f" {action.metavar or action.dest.upper()}" if action.nargs != 0 else ""
    if action.nargs == "?":
        value = f" [{value.strip()}]"
    return ", ".join(action.option_strings) + value


def usage(command: Command) -> str:
    """Return a command's usage in one line."""
    parts = [command.words]
    for action in sorted(actions(command.parser), key=lambda one: not one.option_strings):
        needed = action.required and action.nargs != "?"
        parts.append(names(action) if needed else f"[{names(action)}]")
    if command.parser.epilog:
        parts.append(command.parser.epilog.partition(":")[0])
    return " ".join(parts)


def page() -> str:
    """Return the whole page."""
    lines = [HEAD, *(line for command in commands() for line in _section(command))]
    lines += ["## Exit statuses", "", "| status | meaning |", "|---|---|"]
    lines += [f"| {status} | {text} |" for status, text in STATUSES]
    lines += [
        "",
        "`run --headless`, `exec` and `sandbox` end with the status of the agent or program: 128 + "
        "N when signal N ended it. `cloche` alone, without a command, opens the workstation.",
    ]
    return "\n".join(lines) + "\n"


def _section(command: Command) -> Iterator[str]:
    yield from (f"## {command.words}", "")
    yield from ("```text", usage(command), "```", "")
    yield from (_sentence(command.parser.description or ""), "")
    yield from ("| argument | meaning |", "|---|---|")
    yield from (
        f"| `{names(action)}` | {action.help} |"
        for action in sorted(actions(command.parser), key=lambda one: bool(one.option_strings))
    )
    if command.parser.epilog:
        rest, _, text = command.parser.epilog.partition(": ")
        yield f"| `{rest}` | {text} |"
    yield ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


if __name__ == "__main__":
    sys.stdout.write(page())
