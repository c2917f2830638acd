"""`cloche logs`: what happened in a session, from its journal, its keeper and its console."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.client import fleet
from app.errors import EXIT_DONE, AppError
from app.files import read_regular
from app.keeper.terminal_record import read_tail
from app.paths import Paths
from vm.machine.console import older

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from app.cli.output import Output

LINES: Final = 50
"""Lines of each log that are shown."""

LOGS: Final = {"keeper": "keeper.log", "machine": "qemu.log", "console": "console.log"}

MAX_LOG: Final = 64 << 20

TERMINAL_BYTES: Final = 32 << 10
"""How much of the terminal's record is looked at."""

_SEQUENCE: Final = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[()].|[^\[\]()])"
)
"""Escape sequences: what is left of a record without them is its text."""


def logs(arguments: argparse.Namespace, output: Output) -> int:
    """Print the end of each of a session's logs, or export the terminal's record."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session, sandbox=True)
    folder = paths.session(info.id)
    if arguments.cast is not None:
        from app.cli.cast import export

        return export(arguments, folder, output)
    if arguments.force:
        raise AppError("usage", "--force is for --cast.", "See: cloche logs --help")
    found = {
        "terminal": _terminal(folder),
        "journal": [_event(line) for line in _tail(folder / "journal.jsonl")],
        **{
            name: [*_tail(older(folder / file)), *_tail(folder / file)][-LINES:]
            for name, file in LOGS.items()
        },
    }
    output.result({"session": info.id, **found}, lambda: _print(output, found))
    return EXIT_DONE


def _terminal(folder: Path) -> list[str]:
    text = read_tail(folder, TERMINAL_BYTES).decode("utf-8", "replace")
    lines = [line.rstrip() for line in _SEQUENCE.sub("", text).replace("\r", "").split("\n")]
    return [line for line in lines if line][-LINES:]


def _tail(path: Path) -> list[str]:
    try:
        text = read_regular(path, MAX_LOG).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except AppError as error:
        return [error.message]
    return text.splitlines()[-LINES:]


def _event(line: str) -> str:
    try:
        fields = msgspec.json.decode(line, type=dict[str, str | float])
    except msgspec.MsgspecError:
        return line
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(fields.get("time", 0))))
    return f"{when} {fields.get('event', '')} {fields.get('message', '')}".rstrip()


def _print(output: Output, found: dict[str, list[str]]) -> None:
    for name, lines in found.items():
        if lines:
            output.styled(output.painted("bold", name))
            for line in lines:
                output.line(f"  {line}")
