"""What is to be seen of a session from outside, printed for a test that failed.

A machine that hung once in hundreds of boots is gone when somebody looks; so what can be read
without its help is read before it is ended.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.logs import LOGS
from app.records import read_state
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = 25
"""Lines of each log that are shown."""

STAT_FIELDS = (2, 13, 14)
"""Fields of proc(5)'s stat: state, ticks as a user, ticks in the kernel (counted from 0)."""


def report(folder: Path, keeper: int) -> str:
    """Describe the session in `folder`, whose keeper is `keeper` (0 for none)."""
    return "\n".join(_lines(folder, keeper))


def _lines(folder: Path, keeper: int) -> Iterator[str]:
    state = read_state(folder)
    yield f"session {folder.name}: {state}"
    yield f"keeper {keeper}: {_threads(keeper)}"
    if state.machine is not None:
        yield f"machine {state.machine.pid}: {_threads(state.machine.pid)}"
    for name in LOGS.values():
        yield f"{name}:"
        yield from _tail(folder / name)


def _threads(pid: int) -> str:
    """Return name, state and CPU ticks of every thread: who works, who waits, who stands still."""
    found: list[str] = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        try:
            name, fields = (task / "comm").read_text().strip(), (task / "stat").read_text()
        except OSError:
            continue  # it has just ended
        words = fields[fields.rindex(")") :].split()
        found.append(f"{name} {' '.join(words[field - 1] for field in STAT_FIELDS)}")
    return "; ".join(found) or "gone"


def _tail(log: Path) -> list[str]:
    try:
        text = log.read_text(errors="replace")
    except OSError as error:
        return [f"  {error.strerror}"]
    return [f"  {printable(line)}" for line in text.splitlines()[-LINES:]]
