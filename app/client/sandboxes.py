"""Sandboxes: machines for one command, made and thrown away by one client.

A sandbox lives as long as its client is connected. Its keeper ends it when the client says so, and
by itself when the client has gone without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shlex
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final, Self

import msgspec

from app import records
from app.agents import Agent
from app.client import checks
from app.client.connection import new_host_key
from app.client.fleet import list_sessions
from app.client.host_limits import check_limits
from app.client.launch import spawn_keeper, take_lock
from app.client.session import SessionClient
from app.client.starting import create
from app.config import Defaults, load_config, tighten
from app.egress.beginning import begin
from app.egress.session import SessionEgress
from app.errors import AppError
from app.files import open_regular, write_atomic
from app.paths import private_folder
from app.protocol import MAX_NAME
from app.wire_text import path_text
from snapshot.safe_text import safe_line

if TYPE_CHECKING:
    from pathlib import Path

    from app.egress.beginning import Beginning
    from app.paths import Paths
    from app.protocol import SessionInfo

NAME: Final = "sandbox"
"""What stands in the place of an agent's name."""

LOGS: Final = "sandboxes"
KEPT_LOGS: Final = ("console.log", "qemu.log", "keeper.log")
KEPT_BYTES: Final = 64 << 10
"""Bytes of each log that are kept of a sandbox that failed."""

_IN_CONFIG: Final = re.compile(r"'defaults: \{(memory|vcpus|scratch): ([0-9]+)\}'")
"""Where a hint names the line of the configuration that would do."""

OVER: Final = frozenset({"stopped", "failed", "lost"})
DISCARD_S: Final = 60.0
"""Seconds in which a sandbox must be gone; a snapshot that is being taken is waited for."""

END_S: Final = 10.0
"""Seconds until the keeper must know that the machine has ended whose link broke."""

LOOK_S: Final = 0.05
RETRY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox's machine shall be; None takes the value of the configuration."""

    argv: tuple[str, ...]
    """What will run in it; only to be shown."""
    workspace: Path | None = None
    """A folder whose snapshot lies at `/workspace`; without it that is empty."""
    image: str = "base"
    memory: int | None = None
    """MiB."""
    vcpus: int | None = None
    scratch: int | None = None
    """GiB."""
    egress: SessionEgress = field(default_factory=lambda: SessionEgress(ask=False))
    """What it may reach besides what the user's files say; nobody is there who could be asked."""


class Sandbox:
    """A sandbox that belongs to this process. Leaving its context removes it."""

    def __init__(self, paths: Paths, client: SessionClient) -> None:
        self._paths = paths
        self.client = client

    @property
    def id(self) -> str:
        """The session's id."""
        return self.client.record.id

    @classmethod
    async def start(cls, paths: Paths, spec: SandboxSpec) -> Self:
        """Check everything, then begin to boot a machine.

        Raises AppError (one sentence, exact fix) before anything is written.
        """
        record, key, beginning = await asyncio.to_thread(_prepare, paths, spec)
        await checks.check_qemu()
        await checks.check_jail(paths, record.limits.jail)
        await asyncio.to_thread(sweep, paths)
        session = await asyncio.to_thread(create, paths, record, key, beginning)
        try:
            return cls(paths, await SessionClient.open(paths, session))
        except BaseException:
            await discard(paths, session)
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            with contextlib.suppress(AppError):  # a keeper that is gone cannot be asked
                await self.client.quit()
            await discard(self._paths, self.id, told=True)
        finally:
            await self.client.close()

    async def running(self) -> SessionInfo:
        """Wait until the machine runs. Raises AppError, with the reason when it never will."""
        async for event in self.client.events():
            if event.session.state == "running":
                return event.session
            if event.session.state in OVER:
                break
        raise self._failure()

    async def reason(self, error: AppError) -> AppError:
        """Return why a command came to no end of its own: the machine's end, else `error`."""
        with contextlib.suppress(TimeoutError, AppError):  # the keeper is gone, or sees no end
            async with asyncio.timeout(END_S):
                async for event in self.client.events():
                    if event.session.state in OVER:
                        return self._failure()
        return AppError(error.code, error.message, "Run it again; look: cloche doctor")

    def _failure(self) -> AppError:
        """Return why there is no machine; what it last said is kept, for all else goes with it."""
        state = self.state()
        message = state.message or "The sandbox's machine ended."
        hint = state.hint or "Look: cloche doctor"
        if self.id in hint:  # what it says to do needs a session that is still there
            hint = f"Read: {keep_logs(self._paths, self.id)} (and look: cloche doctor)"
        return AppError(state.fault or "failed", message, hint)

    def state(self) -> records.StateRecord:
        """Return what the keeper last wrote down."""
        return records.read_state(self._paths.session(self.id))


def logs_folder(paths: Paths, session: str) -> Path:
    """Return where logs of one sandbox are kept when it is gone."""
    return paths.state / LOGS / session


def keep_logs(paths: Paths, session: str) -> Path:
    """Keep the end of what machine and keeper of a sandbox said; the folder."""
    folder = logs_folder(paths, session)
    private_folder(folder.parent)
    private_folder(folder)
    for name in KEPT_LOGS:
        with contextlib.suppress(FileNotFoundError, AppError):  # it never came to that
            with open_regular(paths.session(session) / name) as descriptor:
                size = os.fstat(descriptor).st_size
                data = os.pread(descriptor, KEPT_BYTES, max(0, size - KEPT_BYTES))
            write_atomic(folder / name, data)
    return folder


def _prepare(paths: Paths, spec: SandboxSpec) -> tuple[records.SessionRecord, bytes, Beginning]:
    defaults = load_config(paths.config).defaults
    workspace = spec.workspace
    if workspace is not None:
        workspace = checks.check_workspace(paths, workspace)
        defaults = tighten(defaults, workspace)
    limits = _limits(defaults, spec)
    _check_limits(paths, limits, spec)
    session = records.new_id()
    checks.check_programs()
    image = checks.check_image(paths, spec.image)
    checks.check_space(paths)
    checks.check_sockets(paths, session)
    beginning = begin(paths, spec.egress, workspace)
    public, key = new_host_key()
    record = records.SessionRecord(
        id=session,
        name=_name(spec.argv),
        agent=Agent(NAME, spec.argv),
        workspace=path_text(workspace) if workspace is not None else "",
        created=time.time(),
        image=spec.image,
        image_env=image.env,
        network_env=dict(beginning.env),
        control_key=public,
        limits=limits,
        sandbox=True,
    )
    return record, key, beginning


def _name(argv: tuple[str, ...]) -> str:
    """Return what lists show; no agent's session has such a name of its own accord."""
    words = safe_line(shlex.join(argv)).text
    text = f"{NAME}: {words}"
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 3] + "..."


def _limits(defaults: Defaults, spec: SandboxSpec) -> records.Limits:
    asked = {"memory": spec.memory, "vcpus": spec.vcpus, "scratch": spec.scratch}
    limits = records.Limits(**asdict(defaults))
    given = {name: value for name, value in asked.items() if value is not None}
    return msgspec.structs.replace(limits, **given)


def _check_limits(paths: Paths, limits: records.Limits, spec: SandboxSpec) -> None:
    """Refuse what this host cannot hold; what came from a flag is mended by that flag."""
    try:
        check_limits(paths, limits)
    except AppError as error:
        found = _IN_CONFIG.search(error.hint)
        if found is None or getattr(spec, found[1]) is None:
            raise
        hint = f"Give it at most: --{found[1]} {found[2]}"
        raise AppError(error.code, error.message, hint) from error


def sweep(paths: Paths) -> None:
    """Give every sandbox that nobody keeps a keeper, which removes it; blocks for a moment."""
    for info in list_sessions(paths):
        if info.sandbox:
            _wake(paths.session(info.id))


def _wake(folder: Path) -> None:
    with contextlib.suppress(AppError, OSError):  # gone by now, or the next one tries again
        lock = take_lock(folder)
        if lock is not None:
            spawn_keeper(folder, lock)


async def discard(paths: Paths, session: str, *, told: bool = False) -> None:
    """Return when nothing of a sandbox is left, its keeper's process included.

    Unless it was `told`, a keeper that runs is asked to end. Raises AppError `not-stopped` when the
    sandbox is still there after DISCARD_S.
    """
    folder = paths.session(session)
    lock = _open_lock(folder)
    try:
        began = time.monotonic()
        retry = began + RETRY_S if told else began
        while folder.exists() or _held(lock):
            now = time.monotonic()
            if now - began > DISCARD_S:
                raise _not_gone(session, records.read_state(folder))
            if now >= retry:
                retry = now + RETRY_S
                await _tell(paths, session)
            await asyncio.sleep(LOOK_S)
    finally:
        if lock is not None:
            os.close(lock)


def _open_lock(folder: Path) -> int | None:
    """Return a descriptor of the keeper's lock, None where the folder is gone.

    It is made where no keeper ever ran: the one that removes the sandbox is waited for as well.
    """
    flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(folder / "keeper.lock", flags, 0o600)
    except FileNotFoundError:
        return None


def _held(lock: int | None) -> bool:
    """Whether a keeper still holds its lock, which outlives the lock's name."""
    if lock is None:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


async def _tell(paths: Paths, session: str) -> None:
    """Ask the keeper to end; one that wakes on a sandbox needs no asking."""
    await asyncio.to_thread(_wake, paths.session(session))
    with contextlib.suppress(AppError, OSError):
        async with await SessionClient.open(paths, session, start=False) as client:
            await client.quit()


def _not_gone(session: str, state: records.StateRecord) -> AppError:
    hint = state.hint or f"Remove it: cloche rm --force {session}"
    return AppError("not-stopped", f"The sandbox {session} does not end.", hint)
