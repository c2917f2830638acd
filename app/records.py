"""The files that say what a session is (`session.json`) and how it last was (`state.json`).

Clients read them without a keeper, so what is alive is always checked against processes.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from app.agents import Agent  # noqa: TC001 - msgspec reads the annotation
from app.broker.record import BrokerRecord
from app.errors import AppError, is_full
from app.files import overwrite, read_regular, write_atomic
from app.processes import alive, boot_id, lock_held
from app.protocol import AgentState, Counts, EgressInfo, Meter, SessionInfo, SessionState
from vm.egress.questions import Question  # noqa: TC001 - msgspec reads the annotation

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths

FORMAT = 1
"""Version of both files."""

KEEPER_LOCK: Final = "keeper.lock"
QEMU_LOG: Final = "qemu.log"
IMAGE_DIGEST: Final = "image.digest"
"""The session's file that names the version of the image it boots from, once it was prepared."""

_ID = re.compile(r"[0-9a-z]{10}\Z")
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter is taken for another."""

LIVE_STATES: frozenset[str] = frozenset({"running", "paused", "stopping"})
"""States that are true only while QEMU's process exists."""


LOST: Final = "The machine ended without being told to."
REBOOTED: Final = "The host was started anew, and the machine with it was gone."
INTERRUPTED: Final = "Cloche was ended while the session started."
LEFT: Final = "Cloche was ended while the session was being stopped."


def lost_hint(session: str) -> str:
    """Return the way out of `lost`."""
    return f"Start it again: cloche resume {session} (only to read its disk: add --no-agent)"


def interrupted_hint(session: str) -> str:
    """Return the way out of a start that was cut off."""
    return f"Start it again: cloche resume {session}"


class Limits(msgspec.Struct, frozen=True):
    """Bounds and filters of one session (see `app.config.Defaults`)."""

    memory: int = 2048
    vcpus: int = 2
    scratch: int = 20
    accel: str = "auto"
    git: str = "full"
    exclude: tuple[str, ...] = ()
    jail: str = "auto"
    guest: str = "standard"
    queue: int = 600
    pool: int = 0


class SessionRecord(msgspec.Struct, frozen=True):
    """What never changes in a session's life."""

    id: str
    name: str
    agent: Agent
    workspace: str
    created: float
    image: str
    """Folder of the image the session stands on."""
    control_key: str
    """Public key of `control.sock`, in OpenSSH's form."""
    argv: tuple[str, ...] = ()
    limits: Limits = Limits()
    columns: int = 100
    rows: int = 30
    sandbox: bool = False
    """A machine for one command of `cloche sandbox`; it goes when its client does. `workspace` is
    empty when it was given none."""
    image_env: dict[str, str] = {}
    """The image's own variables, for every program in the guest; what anybody else says wins."""
    broker: BrokerRecord = BrokerRecord()
    """Which services the agent is given, and where their keys are."""
    network_env: dict[str, str] = {}
    """Variables that the network needs: registries and authorities of the host. They win over the
    image's."""
    format: int = FORMAT

    @property
    def world_env(self) -> dict[str, str]:
        """The variables of image and network, for every program in the guest."""
        return {**self.image_env, **self.network_env}


class Process(msgspec.Struct, frozen=True):
    """A process named for good: its pid, its start time in ticks since boot, and which boot."""

    pid: int
    start_time: int
    boot: str = ""
    """Empty in records of an earlier Cloche, which are taken to be of this boot."""

    @classmethod
    def here(cls, pid: int, start_time: int) -> Process:
        """Name a process that runs now."""
        return cls(pid, start_time, boot_id())

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.boot in ("", boot_id()) and alive(self.pid, self.start_time)


class StateRecord(msgspec.Struct, frozen=True):
    """How a session last was, in the keeper's word."""

    name: str = ""
    """What the session is called since it was renamed; empty: what its record says."""
    state: SessionState = "starting"
    agent_state: AgentState = "starting"
    accelerator: str = ""
    jail: str = ""
    """See `SessionInfo.jail`."""
    waits: str = ""
    """See `SessionInfo.waits`; it holds only while the session is starting."""
    exit_code: int | None = None
    changes: Counts = Counts()
    generation: int = 0
    message: str = ""
    fault: str = ""
    """Code of the error that `message` tells of, empty when it tells of none."""
    hint: str = ""
    """The exact next step that goes with `message`."""
    machine: Process | None = None
    maintenance: bool = False
    """True while the machine runs only to be read, without an agent."""
    prepared: bool = False
    """True once snapshot, scratch disk and initrd are complete on disk."""
    boot_ms: int = 0
    notices: tuple[str, ...] = ()
    """Sentences for the user about the snapshot and the machine."""
    agent_started: float = 0.0
    agent_ended: float = 0.0
    open_units: int = 0
    egress: EgressInfo = EgressInfo()
    asks: tuple[Question, ...] = ()
    """See `SessionInfo.asks`; they hold only while the machine runs."""
    meter: Meter = Meter()
    since: float = 0.0
    """When `state` or `agent_state` last changed, in unix seconds."""
    format: int = FORMAT


Record = TypeVar("Record", SessionRecord, StateRecord)


def new_id() -> str:
    """Return a fresh session id: six characters of time, four of chance; sorts by age."""
    number = int(time.time()) << 20 | secrets.randbits(20)
    return "".join(_DIGITS[(number >> shift) & 31] for shift in range(45, -1, -5))


def valid_id(text: str) -> bool:
    """Tell whether `text` has the form of a session id (so it is safe as a folder's name)."""
    return bool(_ID.match(text))


def write_record(path: Path, record: SessionRecord | StateRecord) -> None:
    """Replace a record's file atomically; on a full disk in place, where that is possible."""
    data = msgspec.json.encode(record) + b"\n"
    try:
        write_atomic(path, data)
    except OSError as error:
        if not is_full(error) or not overwrite(path, data):
            raise


def _read(path: Path, kind: type[Record]) -> Record:
    try:
        record = msgspec.json.decode(read_regular(path), type=kind)
    except msgspec.MsgspecError as error:
        raise _damaged(path, str(error)) from error
    if record.format != FORMAT:
        raise _damaged(path, f"its format is {record.format}, this Cloche knows {FORMAT}")
    return record


def _damaged(path: Path, reason: str) -> AppError:
    folder = path.parent
    return AppError(
        "damaged",
        f"{path} does not hold what it must ({reason}).",
        f"Remove the session: cloche rm --force {folder.name}",
    )


def read_session(folder: Path) -> SessionRecord:
    """Read `session.json`. Raises FileNotFoundError, AppError `damaged`."""
    return _read(folder / "session.json", SessionRecord)


def read_state(folder: Path) -> StateRecord:
    """Read `state.json`; a session without one never got beyond its first moment."""
    try:
        return _read(folder / "state.json", StateRecord)
    except FileNotFoundError:
        return StateRecord()


def find_machine(folder: Path) -> Process | None:
    """Return a session's machine that nobody has noted: its starter may have died before it could.

    Looks through all processes, some ten milliseconds.
    """
    from vm.machine.strays import inmost, machine_processes

    found = inmost(machine_processes(folder / QEMU_LOG))
    return Process.here(found.pid, found.start_time) if found else None


def lost_message(machine: Process | None) -> str:
    """Say why a machine is lost: the host went down, or only QEMU."""
    other_boot = machine is not None and machine.boot not in ("", boot_id())
    return REBOOTED if other_boot else LOST


def truth(folder: Path, state: StateRecord) -> StateRecord:
    """Correct a recorded state by facts: a dead QEMU is lost, a start without keeper failed."""
    running = state.machine is not None and state.machine.alive
    if state.state in LIVE_STATES and not running:
        if state.state == "stopping" and lock_held(folder / KEEPER_LOCK):
            return state  # its keeper ended it, and is about to say so
        message, hint = lost_message(state.machine), lost_hint(folder.name)
        return msgspec.structs.replace(
            state, state="lost", message=message, hint=hint, machine=None
        )
    if state.state not in ("starting", "stopping") or lock_held(folder / KEEPER_LOCK):
        return state
    return _without_keeper(folder, state, running)


def _without_keeper(folder: Path, state: StateRecord, running: bool) -> StateRecord:
    """Say what is true of a start or a stop whose keeper has died in the middle of it."""
    name = folder.name
    if state.state == "stopping":
        hint = f"Go on with it: cloche stop {name}"
        return msgspec.structs.replace(state, message=LEFT, hint=hint)
    if running or find_machine(folder) is not None:
        hint = f"Go on with it: cloche resume {name}"
        return msgspec.structs.replace(state, message=INTERRUPTED, hint=hint)
    return msgspec.structs.replace(
        state, state="failed", message=INTERRUPTED, hint=interrupted_hint(name)
    )


def session_info(record: SessionRecord, state: StateRecord) -> SessionInfo:
    """Join both records to what clients see; a machine that does not run asks for nothing."""
    asking = state.state in ("running", "paused")
    return SessionInfo(
        id=record.id,
        name=state.name or record.name,
        agent=record.agent.name,
        state=state.state,
        workspace=record.workspace,
        accelerator=state.accelerator,
        jail=state.jail,
        guest=record.limits.guest,
        waits=state.waits if state.state == "starting" else "",
        created=record.created,
        changes=state.changes,
        agent_state=state.agent_state,
        exit_code=state.exit_code,
        generation=state.generation,
        message=state.message,
        hint=state.hint,
        notices=state.notices,
        open_units=state.open_units,
        since=state.since,
        sandbox=record.sandbox,
        meter=state.meter if asking else msgspec.structs.replace(state.meter, asks=False),
        egress=state.egress,
        asks=state.asks if asking else (),
    )


def all_sessions(paths: Paths) -> list[SessionInfo]:
    """Return every session on disk, oldest first; damaged folders are shown as failed."""
    try:
        names = sorted(os.listdir(paths.sessions))
    except FileNotFoundError:
        return []
    found = [one_session(paths.session(name)) for name in names if valid_id(name)]
    return [info for info in found if info is not None]


def one_session(folder: Path) -> SessionInfo | None:
    """Return one session as it truly is; None when it is gone or not yet complete."""
    try:
        record = read_session(folder)
        return session_info(record, truth(folder, read_state(folder)))
    except FileNotFoundError:
        return None
    except AppError as error:
        return SessionInfo(
            id=folder.name,
            name=folder.name,
            agent="?",
            state="failed",
            workspace="",
            accelerator="",
            created=0.0,
            message=error.message,
        )
