"""`cloche run`: start an agent, here in the terminal, headless, or in the background."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from app.cli.network_flags import egress_of, egress_report, note_refused
from app.cli.ports import parse_forward
from app.cli.sessions import Waiting, note_open
from app.client import fleet
from app.client.removing import remove_session
from app.client.session import SessionClient
from app.client.starting import StartRequest, start_session
from app.errors import EXIT_DONE, EXIT_OURS, AppError
from app.paths import Paths
from app.records import read_state
from app.services.egress_refused import refused_in
from app.wording import counted

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.protocol import SessionInfo

OVER = frozenset({"stopped", "failed", "lost"})


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Start a session; the exit status is the agent's where the command waits for its end."""
    size = shutil.get_terminal_size((100, 30))
    request = StartRequest(
        agent=arguments.agent,
        workspace=arguments.workspace or Path.cwd(),
        name=arguments.name,
        argv=tuple(arguments.rest or ()),
        ports=tuple(map(parse_forward, arguments.port)),
        image=arguments.image,
        guest=arguments.guest,
        queue=arguments.queue,
        egress=egress_of(arguments, ask=not arguments.headless),
        columns=size.columns,
        rows=size.lines,
    )
    paths = Paths.from_environment()
    if arguments.headless:
        return asyncio.run(_headless(paths, request, output))
    here = sys.stdin.isatty() and sys.stdout.isatty() and not output.json
    if arguments.detach or not here:
        return asyncio.run(_detached(paths, request, output))
    return _attached(paths, request, output)


async def _detached(paths: Paths, request: StartRequest, output: Output) -> int:
    session = await start_session(paths, request)
    info = await _prepared(paths, session)
    note_open(output, info)
    Waiting(output).note(info)
    output.result(
        {"session": session, "name": info.name, "state": info.state, "waits": info.waits},
        lambda: output.line(f"{session} started; watch it: cloche attach {session}"),
    )
    return EXIT_DONE


async def _prepared(paths: Paths, session: str) -> SessionInfo:
    """Wait for the snapshot: from then on the workspace may change, and nothing of it is refused.

    Raises AppError for a session that came to no snapshot, which is then gone again.
    """
    async with await SessionClient.open(paths, session) as client:
        info = await client.info()
        async for event in client.events():
            info = event.session
            if info.state != "starting" or read_state(paths.session(session)).prepared:
                break
    if info.state in OVER and not read_state(paths.session(session)).prepared:
        raise await _failure(paths, info)
    return info


async def _headless(paths: Paths, request: StartRequest, output: Output) -> int:
    began = time.monotonic()
    session = await start_session(paths, request)
    try:
        async with await SessionClient.open(paths, session) as client:
            info = await _agent_end(client, output)
            if info.state not in OVER:
                await client.stop()
                info = await client.info()
    except AppError as error:
        raise AppError(error.code, error.message, error.hint, status=EXIT_OURS) from error
    except asyncio.CancelledError:
        output.note(f"{session} goes on; end it: cloche stop {session}")
        raise
    if info.exit_code is None:
        raise await _failure(paths, info)
    duration = round((time.monotonic() - began) * 1000)
    refusals = refused_in(paths.session(session))
    note_refused(output, refusals)
    report = _report(paths, info, duration) | {"egress": egress_report(refusals)}
    output.result(report, lambda: _print_report(output, report, info))
    return info.exit_code


async def _agent_end(client: SessionClient, output: Output) -> SessionInfo:
    last, waiting = "", Waiting(output)
    async for event in client.events():
        info = event.session
        waiting.note(info)
        if info.state != last:
            last = info.state
            if not output.json:
                output.note(f"{info.id} {info.state}")
                _note_all(output, info)
        if info.state in OVER or info.exit_code is not None:
            return info
    raise AppError("keeper-lost", "The keeper went away.", f"See: cloche ps {client.record.id}")


async def _failure(paths: Paths, info: SessionInfo) -> AppError:
    """Return the error of a session that came to no end; one that never had a snapshot goes."""
    state = read_state(paths.session(info.id))
    hint = state.hint or f"Read: cloche logs {info.id}"
    message = state.message or "The agent did not come to an end."
    if state.prepared:
        return AppError(state.fault or "failed", message, hint, status=EXIT_OURS)
    await remove_session(paths, info.id)
    return AppError(state.fault or "failed", message, hint)


def _note_all(output: Output, info: SessionInfo) -> None:
    if info.state == "running":
        for notice in info.notices:
            output.note(f"  {notice}")


def _report(paths: Paths, info: SessionInfo, duration_ms: int) -> dict[str, Any]:
    state = read_state(paths.session(info.id))
    return {
        "session": info.id,
        "agent": info.agent,
        "exit_code": info.exit_code,
        "duration_ms": duration_ms,
        "boot_ms": state.boot_ms,
        "accelerator": info.accelerator,
        "changes": msgspec.to_builtins(info.changes),
        "state": info.state,
        "message": info.message,
        "notices": list(info.notices),
    }


def _print_report(output: Output, report: dict[str, Any], info: SessionInfo) -> None:
    counts = info.changes
    output.line(
        f"{info.id} ended with {info.exit_code} after {report['duration_ms'] / 1000:.1f} s: "
        f"{counted(counts.files, 'file')}, +{counts.added} -{counts.removed}"
    )
    output.line(f"Look: cloche diff {info.id}   Take: cloche merge {info.id} --accept PATTERN")


def _attached(paths: Paths, request: StartRequest, output: Output) -> int:
    from app.cli.attach import attach_here

    session = asyncio.run(_started(paths, request, output))
    status = asyncio.run(attach_here(paths, session))
    if status is None:
        output.note(f"{session} goes on; come back: cloche attach {session}")
        return EXIT_DONE
    asyncio.run(fleet.stop_session(paths, session))
    info = fleet.find_session(paths, session)
    counts = info.changes
    output.note(
        f"{session} ended: {counted(counts.files, 'file')}, +{counts.added} -{counts.removed}; "
        f"look: cloche diff {session}"
    )
    return status


async def _started(paths: Paths, request: StartRequest, output: Output) -> str:
    session = await start_session(paths, request)
    output.note(f"{session} starting ...")
    async with await SessionClient.open(paths, session) as client:
        info, waiting = await client.info(), Waiting(output)
        async for event in client.events():
            info = event.session
            waiting.note(info)
            if info.state in OVER:
                break
            if info.state == "running":
                _note_all(output, info)
                return session
    raise await _failure(paths, info)
