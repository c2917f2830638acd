"""A new session: everything is checked, then its folder is written and its keeper started."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app import records
from app.agents import find_agent
from app.broker.record import broker_of
from app.client import checks
from app.client.connection import new_host_key
from app.client.host_limits import check_limits, patience_s
from app.client.launch import spawn_keeper, take_lock
from app.client.naming import check_name, held, named
from app.config import load_config, tighten
from app.egress.beginning import begin
from app.egress.session import SessionEgress
from app.errors import AppError
from app.files import write_atomic
from app.folders import new_folder, sweep
from app.forwarding import write_forwards
from app.homes import note_home
from app.programs import check_words
from app.protocol import MAX_NAME, EgressInfo
from app.wire_text import path_text, text_path
from vm.steps import reached

if TYPE_CHECKING:
    from app.config import Config, Defaults
    from app.egress.beginning import Beginning
    from app.paths import Paths
    from app.protocol import Forward
    from vm.image import ImageSet


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
    with held(paths), new_folder(paths, record.id) as draft:
        record = named(paths, record, stem)
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
    limits = _limits(paths, request, config, workspace)
    if request.name:
        check_name(paths, request.name)
    session_id = records.new_id()
    image_name = request.image or agent.stands_on
    image = _check_host(paths, session_id, image_name, request.ports)
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


def _limits(paths: Paths, request: StartRequest, config: Config, workspace: Path) -> Defaults:
    """Return what the machine may take: the configuration's, as far as workspace and host allow."""
    asked = replace(config.defaults, guest=request.guest or config.defaults.guest)
    limits = tighten(asked, workspace)
    limits = replace(limits, queue=patience_s(request.queue, limits.queue))
    check_limits(paths, limits)
    return limits


def _check_host(paths: Paths, session_id: str, image: str, ports: tuple[Forward, ...]) -> ImageSet:
    """Return the image of a new session; AppError where the host lacks what it needs."""
    checks.check_programs()
    found = checks.check_image(paths, image)
    checks.check_space(paths)
    checks.check_sockets(paths, session_id)
    checks.check_ports(ports)
    return found


def _stem(agent: str, workspace: Path) -> str:
    stem = f"{agent}-{workspace.name or 'root'}"[: MAX_NAME - 4]
    return "".join(c if c.isprintable() else "_" for c in stem)
