"""Commands about sessions as a whole: ps, stop, rm, resume."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from app.cli.waiting import held_lines
from app.client import fleet
from app.client.host_limits import patience_s
from app.client.naming import rename_session
from app.client.removing import remove_session
from app.client.sandboxes import discard
from app.client.session import SessionClient
from app.config import load_config
from app.errors import EXIT_DONE, EXIT_FAILED, AppError
from app.folders import sweep
from app.paths import Paths
from app.records import read_state
from app.states import LIVE, can_resume, shown_state, state_words
from themes.glyphs import glyphs_of_environment

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.protocol import SessionInfo

HEADINGS: Final = ("ID", "", "STATE", "AGENT", "NAME", "CHANGES", "AGE", "MACHINE", "JAIL")
SETTLED: Final = frozenset({"running", "stopped", "failed", "lost"})


def ps(_: argparse.Namespace, output: Output) -> int:
    """List the sessions, oldest first."""
    sessions = fleet.list_sessions(Paths.from_environment())
    output.result(
        {"sessions": [fields_of(info) for info in sessions]},
        lambda: _print_sessions(output, sessions),
    )
    return EXIT_DONE


def fields_of(info: SessionInfo) -> dict[str, Any]:
    """Return a session as `--json` has it: every field, and the word that people read."""
    return {**msgspec.to_builtins(info), "status": state_words(info)}


def _print_sessions(output: Output, sessions: list[SessionInfo]) -> None:
    if not sessions:
        output.line("No sessions. Start one: cloche run demo")
        return
    output.table([HEADINGS, *map(_row, sessions)])
    told = Counter(notice for info in sessions for notice in info.notices)
    for info in sessions:
        if info.message:
            output.line(f"{info.id}: {info.message}")
        if info.hint:
            output.line(f"  {info.hint}")
        for notice in info.notices:
            if told[notice] == 1:
                output.line(f"{info.id}: {notice}" if not info.message else f"  {notice}")
        for line in held_lines(info):
            output.line(line)
    for notice, count in told.items():
        if count > 1:
            output.line(f"{count} sessions: {notice}")


def _row(info: SessionInfo) -> tuple[str, ...]:
    counts = info.changes
    return (
        info.id,
        str(getattr(glyphs_of_environment(), shown_state(info))),
        state_words(info),
        info.agent,
        info.name,
        f"+{counts.added} -{counts.removed} in {counts.files}" if counts.files else "-",
        age(time.time() - info.created),
        (info.accelerator or "-") if info.state in LIVE else "-",
        info.jail or "-",
    )


def rename(arguments: argparse.Namespace, output: Output) -> int:
    """Give a session another name."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    asyncio.run(rename_session(paths, info.id, arguments.name))
    return _show(paths, info.id, output)


def age(seconds: float) -> str:
    """Return a duration in its largest unit, such as 3m."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def stop(arguments: argparse.Namespace, output: Output) -> int:
    """Mirror for the last time and end the machine."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session, sandbox=True)
    if info.sandbox:
        asyncio.run(discard(paths, info.id))
        output.result({"session": info.id}, lambda: output.line(f"{info.id} ended"))
        return EXIT_DONE
    if info.state in fleet.ACTIVE:
        asyncio.run(fleet.stop_session(paths, info.id))
    return _show(paths, info.id, output)


def rm(arguments: argparse.Namespace, output: Output) -> int:
    """Delete a session."""
    paths = Paths.from_environment()
    session = arguments.session
    if session not in sweep(paths):  # else an earlier rm was killed, and this has ended its work
        info = fleet.find_session(paths, session, sandbox=True)
        session = info.id
        asyncio.run(
            discard(paths, session)
            if info.sandbox
            else remove_session(paths, session, force=arguments.force)
        )
    output.result({"session": session}, lambda: output.line(f"{session} removed"))
    return EXIT_DONE


def resume(arguments: argparse.Namespace, output: Output) -> int:
    """Start a session's agent again and wait until it runs (or, without agent, until it was read).

    Where its machine is gone, that boots its disk again.
    """
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    usual = load_config(paths.config).defaults.queue
    patience = None if arguments.queue is None else patience_s(arguments.queue, usual)
    asyncio.run(
        _resume(paths, info.id, Waiting(output), agent=not arguments.no_agent, patience_s=patience)
    )
    note_open(output, fleet.find_session(paths, info.id))
    return _show(paths, info.id, output)


def note_open(output: Output, info: SessionInfo) -> None:
    """Say that QEMU runs without a jail, and why, where the user did not choose that."""
    from vm.machine.jail_check import OPEN

    for notice in info.notices:
        if notice.startswith(OPEN):
            output.note(notice)


class Waiting:
    """Says beside the answer that a session waits for memory, and again when that looks otherwise.

    A program reads it in `ps --json`.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last = ""

    def note(self, info: SessionInfo) -> None:
        """Take in what a session says of itself now."""
        said = info.message if info.waits else ""
        if said and said != self._last and not self._output.json:
            self._output.note(f"{info.id}: {said}\n  {info.hint}")
        self._last = said


async def _goes_on_already(paths: Paths, session_id: str) -> bool:
    """Tell whether the session's agent runs, or is being started, without our help.

    Its keeper may just have been started, and go on with what an earlier one had begun; a stop, or
    the reading of its disk, is waited for.
    """
    async with await SessionClient.open(paths, session_id) as client:
        async for event in client.events():
            read_only = read_state(paths.session(session_id)).maintenance
            if can_resume(event.session):
                return False
            if event.session.state in ("running", "starting") and not read_only:
                return True
            if event.session.state not in ("running", "starting", "stopping"):
                return False
    return False


async def _resume(
    paths: Paths, session_id: str, waiting: Waiting, *, agent: bool, patience_s: float | None
) -> None:
    going = agent and await _goes_on_already(paths, session_id)
    async with await SessionClient.open(paths, session_id) as client:
        if not going:
            await client.resume(agent=agent, patience_s=patience_s)
        goal = SETTLED if agent else SETTLED - {"running"}
        async for event in client.events():
            waiting.note(event.session)
            if event.session.state in ("failed", "lost"):
                hint = event.session.hint or f"Read: cloche logs {session_id}"
                raise AppError("failed", event.session.message, hint)
            if event.session.state in goal:
                return


def _show(paths: Paths, session_id: str, output: Output) -> int:
    info = fleet.find_session(paths, session_id)
    output.result({"session": info.id, **fields_of(info)}, lambda: _print_sessions(output, [info]))
    return EXIT_DONE if info.state not in ("failed", "lost") else EXIT_FAILED
