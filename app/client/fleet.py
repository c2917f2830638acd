"""All sessions of the user, read from disk and from facts about processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app import records
from app.agents import find_agent
from app.broker.record import broker_of
from app.client import checks
from app.client.connection import new_host_key
from app.client.host_limits import check_limits, patience_s
from app.client.launch import gone, spawn_keeper, take_lock
from app.client.session import SessionClient
from app.config import load_config, tighten
from app.egress.beginning import begin
from app.egress.session import SessionEgress
from app.errors import AppError
from app.files import write_atomic
from app.folders import delete_session, new_folder, sweep
from app.forwarding import write_forwards
from app.homes import note_home
from app.locking import locked
from app.paths import private_folder
from app.programs import check_words
from app.protocol import MAX_NAME, EgressInfo
from app.wire_text import path_text, text_path
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager

    from app.egress.beginning import Beginning
    from app.paths import Paths
    from app.protocol import Forward, SessionInfo

ACTIVE: Final = frozenset({"starting", "running", "paused", "stopping"})
"""States in which a session's machine exists or is about to."""

RECHECK_MS: Final = 2000
"""How often processes are looked at when no file changed: a death writes no file."""

NAMES_LOCK: Final = "names.lock"
AGAIN: Final = "--name NAME"
DISMISS_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What a new session shall be; `argv` is appended to the agent's own command."""

    agent: str
    workspace: Path
    name: str = ""
    argv: tuple[str, ...] = ()
    columns: int = 100
    rows: int = 30
    ports: tuple[Forward, ...] = ()
    """Ports of 127.0.0.1 that shall lead to the guest's."""
    image: str = ""
    """Name of the image that it stands on; empty: what the agent needs."""
    guest: str = ""
    """One of `app.config.GUESTS`; empty: the configuration's."""
    egress: SessionEgress = field(default_factory=SessionEgress)
    """What it may reach besides what the user's files say."""
    queue: bool | None = None
    """Whether to wait for memory; None: as the configuration says."""


def list_sessions(paths: Paths) -> list[SessionInfo]:
    """Return every session, oldest first; true even where no keeper runs. Never blocks long."""
    return records.all_sessions(paths)


async def watch_sessions(paths: Paths) -> AsyncIterator[list[SessionInfo]]:
    """Yield the agents' sessions now, and again each time that something in them changed."""
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    private_folder(paths.state)
    private_folder(paths.sessions)
    last = _agents_sessions(paths)
    yield last
    watch = awatch(
        paths.sessions,
        watch_filter=lambda _, path: path.endswith(("state.json", "session.json")),
        recursive=True,
        rust_timeout=RECHECK_MS,
        yield_on_timeout=True,
    )
    async for _ in watch:
        now = await asyncio.to_thread(_agents_sessions, paths)
        if now != last:
            last = now
            yield now


def _agents_sessions(paths: Paths) -> list[SessionInfo]:
    return [info for info in list_sessions(paths) if not info.sandbox]


def find_session(paths: Paths, text: str, *, sandbox: bool = False) -> SessionInfo:
    """Return the session that an id, a unique prefix of one, or a name means.

    Raises AppError `not-found` when none or several match, and `usage` for a sandbox where the
    command, which does not say `sandbox`, needs an agent's session.
    """
    info = _find(list_sessions(paths), text)
    if info.sandbox and not sandbox:
        raise AppError(
            "usage",
            f"{info.id} is a sandbox, which has no agent and nothing to review.",
            f"Look into it: cloche exec {info.id} -- CMD",
        )
    return info


def _find(sessions: list[SessionInfo], text: str) -> SessionInfo:
    for exact in (
        [info for info in sessions if info.id == text],
        [info for info in sessions if info.name == text],
        [info for info in sessions if text and info.id.startswith(text)],
    ):
        if len(exact) == 1:
            return exact[0]
        if exact:
            names = ", ".join(info.id for info in exact[:5])
            raise AppError(
                "not-found", f"'{text}' means {len(exact)} sessions.", f"Say which one: {names}"
            )
    raise AppError("not-found", f"There is no session '{text}'.", "See them: cloche ps")


async def start_session(paths: Paths, request: StartRequest) -> str:
    """Check everything, make the session's folder, start its keeper and return the id at once.

    Raises AppError (one sentence, exact fix) before anything is written when the agent is unknown,
    the workspace cannot be used or this host lacks something. The session is then `starting`.
    """
    record, key, beginning = await asyncio.to_thread(_prepare, paths, request)
    await checks.check_qemu()
    await checks.check_jail(paths, record.limits.jail)
    stem = _stem(request.agent, Path(text_path(record.workspace)))
    return await asyncio.to_thread(create, paths, record, key, beginning, request.ports, stem=stem)


def create(
    paths: Paths,
    record: records.SessionRecord,
    key: bytes,
    beginning: Beginning,
    ports: tuple[Forward, ...] = (),
    *,
    stem: str = "",
) -> str:
    """Write a new session's folder and start its keeper, which boots it; blocks for a moment.

    `key` is the private half of the record's `control_key`. A record without a name gets `stem`, or
    that with a number. Returns the id; after an error nothing is left. Raises AppError `usage` for
    a name that was taken meanwhile.
    """
    sweep(paths)
    note_home(paths)
    folder = paths.session(record.id)
    with _names(paths), new_folder(paths, record.id) as draft:
        record = _named(paths, record, stem)
        write_atomic(draft / "control_key", key)
        if ports:
            write_forwards(draft, ports)
        beginning.write(draft)
        state = records.StateRecord(egress=EgressInfo(beginning.egress.word))
        records.write_record(draft / "state.json", state)
        records.write_record(draft / "session.json", record)
        lock = take_lock(draft)
        if lock is None:
            raise AppError("busy", "Somebody holds the new session's lock.", "Try again.")
    reached("run.placed")
    try:
        spawn_keeper(folder, lock, ["--start"])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    reached("run.spawned")
    return record.id


def _prepare(paths: Paths, request: StartRequest) -> tuple[records.SessionRecord, bytes, Beginning]:
    check_words(request.argv)
    config = load_config(paths.config)
    agent = find_agent(config.agents, request.agent)
    workspace = checks.check_workspace(paths, request.workspace)
    asked = replace(config.defaults, guest=request.guest or config.defaults.guest)
    limits = tighten(asked, workspace)
    limits = replace(limits, queue=patience_s(request.queue, limits.queue))
    check_limits(paths, limits)
    if request.name:
        _check_name(request.name, _taken(paths), AGAIN)
    session_id = records.new_id()
    checks.check_programs()
    image_name = request.image or agent.image or "base"
    image = checks.check_image(paths, image_name)
    checks.check_space(paths)
    checks.check_sockets(paths, session_id)
    checks.check_ports(request.ports)
    beginning = begin(paths, request.egress, workspace)
    public, key = new_host_key()
    record = records.SessionRecord(
        id=session_id,
        name=request.name,
        agent=agent,
        workspace=path_text(workspace),
        created=time.time(),
        image=image_name,
        image_env=image.env,
        network_env=dict(beginning.env),
        broker=broker_of(agent, config.broker),
        control_key=public,
        argv=request.argv,
        limits=records.Limits(**asdict(limits)),
        columns=request.columns,
        rows=request.rows,
    )
    return record, key, beginning


def _stem(agent: str, workspace: Path) -> str:
    stem = f"{agent}-{workspace.name or 'root'}"[: MAX_NAME - 4]
    return "".join(c if c.isprintable() else "_" for c in stem)


def _names(paths: Paths) -> AbstractContextManager[None]:
    """Let nobody else give a session a name; who asks for one holds this until it is on disk."""
    return locked(private_folder(paths.state) / NAMES_LOCK)


def _taken(paths: Paths, but: str = "") -> set[str]:
    """Return what a name must not be: the names and ids of all sessions `but` one."""
    others = [info for info in list_sessions(paths) if info.id != but]
    return {name for info in others for name in (info.name, info.id)}


def _named(paths: Paths, record: records.SessionRecord, stem: str) -> records.SessionRecord:
    """Return the record with a name that no other session has; call it with `_names` held."""
    if record.sandbox:
        return record
    taken, number = _taken(paths), 1
    if record.name:
        _check_name(record.name, taken, AGAIN)
        return record
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return msgspec.structs.replace(record, name=name)


def _check_name(name: str, taken: set[str], again: str) -> None:
    if not name or len(name) > MAX_NAME or not name.isprintable():
        text = f"A name has 1 to {MAX_NAME} printable characters."
        raise AppError("usage", text, f"Choose another: {again}")
    if name in taken:
        text = f"There is a session called '{name}' already."
        raise AppError("usage", text, f"Choose another: {again}")


async def rename_session(paths: Paths, session_id: str, name: str) -> None:
    """Give a session another name, which none of the others may have or be meant by.

    Raises AppError `usage` for such a name.
    """
    again = f"cloche rename {session_id} NAME"
    _check_name(name, _taken(paths, session_id), again)
    async with await SessionClient.open(paths, session_id) as client:
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, _names(paths))
            _check_name(name, _taken(paths, session_id), again)
            await client.rename(name)


async def resume_session(paths: Paths, session_id: str, *, agent: bool = True) -> None:
    """Boot a stopped, failed or lost session again; returns at once, state `starting`."""
    async with await SessionClient.open(paths, session_id) as client:
        await client.resume(agent=agent)


async def stop_session(paths: Paths, session_id: str) -> None:
    """Freeze, mirror for the last time and end the machine; returns when it has ended."""
    async with await SessionClient.open(paths, session_id) as client:
        await client.stop()


async def remove_session(paths: Paths, session_id: str, *, force: bool = False) -> None:
    """Delete a session's folder; refuses while it runs unless `force` (which stops it).

    Raises AppError, and NotStopped when its machine lives on.
    """
    folder = paths.session(session_id)
    info = records.one_session(folder)
    if info is None and not folder.is_dir():
        raise gone(session_id)
    if info is not None and info.state in ACTIVE:
        if not force:
            raise AppError(
                "busy",
                f"The session {session_id} is {info.state}.",
                f"Stop it first: cloche stop {session_id} (or: cloche rm --force {session_id})",
            )
        await stop_session(paths, session_id)
    lock = await _dismiss_keeper(folder, paths)
    try:
        reached("remove.locked")
        await _end_machine(folder, force=force)
        await asyncio.to_thread(delete_session, folder, paths.sockets(session_id))
    except FileNotFoundError as error:  # somebody else removed it in the same moment
        raise gone(session_id) from error
    finally:
        os.close(lock)


async def _dismiss_keeper(folder: Path, paths: Paths) -> int:
    """Return holding the keeper's lock: an idle keeper is asked to go, a new one cannot start."""
    deadline = time.monotonic() + DISMISS_S
    while (lock := take_lock(folder)) is None:
        try:
            # never starts one: it may have ended in this very moment
            async with await SessionClient.open(paths, folder.name, start=False) as client:
                await client.quit()
        except AppError as error:
            _refuse_used(error, folder)
        if time.monotonic() > deadline:
            raise AppError(
                "busy",
                f"The keeper of {folder.name} does not end.",
                f"Read: cloche logs {folder.name}",
            )
        await asyncio.sleep(0.1)
    return lock


def _refuse_used(error: AppError, folder: Path) -> None:
    """Raise where a session that is to be removed is in use again; a keeper that goes is no error.

    Somebody may have resumed it since it was looked at.
    """
    info = records.one_session(folder) if error.code == "busy" else None
    if info is not None and info.state in ACTIVE:
        text = f"The session {folder.name} is {info.state} again: somebody else resumed it."
        raise AppError("busy", text, f"Remove it all the same: cloche rm --force {folder.name}")


async def _end_machine(folder: Path, *, force: bool) -> None:
    """See to it that no machine of a session runs, noted or not."""
    try:
        machine = records.read_state(folder).machine
    except AppError:
        machine = None  # a record that cannot be read is what `rm --force` is for
    if machine is None or not machine.alive:
        machine = await asyncio.to_thread(records.find_machine, folder)
    if machine is None:
        return
    if not force:
        raise AppError(
            "not-stopped",
            f"The session's machine still runs as process {machine.pid}.",
            f"End it with the session: cloche rm --force {folder.name}",
        )
    from vm.machine.signals import end_process

    await end_process(machine.pid, machine.start_time)
