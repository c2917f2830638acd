"""One command in a throw-away machine: `cloche sandbox` without its screen.

The result is there whatever happens to the copies: a report names those that failed beside the
command's own end.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from app.client import copying, programs
from app.client.copying import LIMITS, CopyLimits, copy_into, copy_out
from app.client.sandboxes import Sandbox
from app.errors import EXIT_OURS, EXIT_TIMEOUT, AppError, app_error
from app.services import sandbox_logs
from app.services.egress_refused import Refused, refused_in
from app.wording import counted
from snapshot.errors import SnapshotError
from vm.errors import VMError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.client.copying import CopyReport
    from app.client.programs import Ended, Write
    from app.client.sandboxes import SandboxSpec
    from app.paths import Paths
    from app.programs import Program

SIGNALS: Final = 64
"""A status of 128 + 1 … 64 means a signal, as shells have it."""

SIGKILL: Final = 9
STALL_S: Final = 60.0
"""Seconds without progress after which a copy is given up; the guest may be stuck."""


HINTS: Final = {
    copying.LOOK: "See what is there: let the command end with ls -la DIR",
    copying.AS_ROOT: "Run it as root of the machine: cloche sandbox --root ...",
}
"""Next steps in the place of those that need a machine that is still there."""


@dataclass(frozen=True, slots=True)
class CopyPair:
    """One path on either side."""

    guest: bytes
    host: Path
    folder_meant: bool = False
    """Whether the host's was written with a slash at its end."""
    limits: CopyLimits = LIMITS
    """Of a copy out of the guest."""


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """A command, its machine and what goes in and out."""

    program: Program
    spec: SandboxSpec
    timeout_s: float
    """For the machine's start and the command together."""
    stdin: int | None = None
    """A descriptor of ours; None is an empty input."""
    copy_in: tuple[CopyPair, ...] = ()
    copy_out: tuple[CopyPair, ...] = ()


class Copied(msgspec.Struct, frozen=True):
    """What was copied out of the guest."""

    guest: str
    host: str
    bytes: int
    files: int


class CopyFailed(msgspec.Struct, frozen=True):
    """A copy out of the guest that did not come about."""

    guest: str
    host: str
    code: str
    message: str
    hint: str


@dataclass(slots=True)
class SandboxReport:
    """How it went. `exit_code` is None after a signal and when the time ran out."""

    id: str = ""
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    started: bool = False
    """Whether the command began at all."""
    message: str = ""
    """What the machine waited for when the time ran out before that, such as memory."""
    exec_ms: int = 0
    total_ms: int = 0
    boot_ms: int = 0
    path: Literal["cold", "warm"] = "cold"
    stage_id: str | None = None
    accelerator: str = ""
    notices: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    """What it tried to reach and must not."""
    copied: list[Copied] = field(default_factory=list[Copied])
    copies_failed: list[CopyFailed] = field(default_factory=list[CopyFailed])

    @property
    def status(self) -> int:
        """The exit status that stands for all of it."""
        if self.timed_out:
            return EXIT_TIMEOUT
        code = 128 + self.signal if self.signal is not None else self.exit_code or 0
        return code or (EXIT_OURS if self.copies_failed else 0)

    def take(self, ended: Ended) -> None:
        """Note how the command ended."""
        if ended.timed_out:
            self.timed_out, self.signal = True, SIGKILL
        elif 128 < ended.status <= 128 + SIGNALS:
            self.signal = ended.status - 128
        else:
            self.exit_code = ended.status


@dataclass(frozen=True, slots=True)
class Streams:
    """Where the command's output goes, and what hears that it begins."""

    out: Write
    err: Write
    begins: Callable[[], None] = lambda: None


def time_left(budget_s: float, spent_s: float) -> float:
    """Return what the command gets of a budget of which the start took a part, in seconds."""
    return max(0.001, budget_s - spent_s)


async def run_sandbox(
    paths: Paths, request: SandboxRequest, streams: Callable[[str], Streams]
) -> SandboxReport:
    """Run a command in a machine of its own, which is gone when this returns or raises.

    `streams` is called with the sandbox's id. Raises AppError for what Cloche could not do, before
    anything is written where that can be known.
    """
    began = time.monotonic()
    await asyncio.to_thread(sandbox_logs.prune, paths)
    report = SandboxReport()
    async with await Sandbox.start(paths, request.spec) as box:
        report.id = box.id
        to = streams(box.id)
        try:
            await _run(box, request, to, report, began)
        finally:  # with the machine goes its log
            report.refused = await asyncio.to_thread(refused_in, paths.session(box.id))
    report.total_ms = _ms(began)
    return report


async def _run(
    box: Sandbox, request: SandboxRequest, to: Streams, report: SandboxReport, began: float
) -> None:
    try:
        async with asyncio.timeout(time_left(request.timeout_s, time.monotonic() - began)):
            await _begin(box, request, report)
    except TimeoutError:
        report.timed_out, report.message = True, box.state().message
        return
    running = await programs.start(box.client, request.program)
    to.begins()
    report.started, began_exec = True, time.monotonic()
    try:
        left = time_left(request.timeout_s, began_exec - began)
        ended = await programs.carry(
            running, stdin=request.stdin, out=to.out, err=to.err, timeout_s=left
        )
    except AppError as error:
        raise await box.reason(error) from error
    finally:
        running.close()
    report.exec_ms = _ms(began_exec)
    report.take(ended)
    await _copy_out(box, request, report)


async def _begin(box: Sandbox, request: SandboxRequest, report: SandboxReport) -> None:
    info = await box.running()
    report.boot_ms = box.state().boot_ms
    report.accelerator, report.notices = info.accelerator, info.notices
    for pair in request.copy_in:
        copied = await copy_into(
            box.client, pair.host, pair.guest, root=request.program.root, progress=_ignored
        )
        if copied.skipped:
            first = copied.skipped[0]
            raise AppError(
                "refused",
                f"{pair.host} cannot be copied whole: {first.path} {first.reason}.",
                "Leave it out, or copy what it stands for.",
            )


async def _copy_out(box: Sandbox, request: SandboxRequest, report: SandboxReport) -> None:
    """Copy what was asked for, however the command ended; one that fails keeps none from going."""
    for pair in request.copy_out:
        guest = pair.guest.decode("utf-8", "backslashreplace")
        try:
            done = await _copy_bounded(box, pair, request.program.root)
            _check_whole(done, guest)
        except (AppError, VMError, SnapshotError, OSError) as error:
            known = app_error(error)
            assert known is not None
            hint = HINTS.get(known.hint, known.hint)
            failed = CopyFailed(guest, str(pair.host), known.code, known.message, hint)
            report.copies_failed.append(failed)
        else:
            report.copied.append(Copied(guest, str(done.target), done.size, done.files))


def _check_whole(done: CopyReport, guest: str) -> None:
    if done.skipped:
        first = done.skipped[0]
        raise AppError(
            "incomplete",
            f"Left out of {guest}: {counted(done.skipped_count, 'path')}, first {first.path}: "
            f"{first.reason}.",
            f"The others are at {done.target}.",
        )


async def _copy_bounded(box: Sandbox, pair: CopyPair, root: bool) -> CopyReport:
    """Do a copy, which may take as long as it moves."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(STALL_S) as bound:

            def moved(_: CopyReport) -> None:
                bound.reschedule(loop.time() + STALL_S)

            return await copy_out(
                box.client,
                pair.guest,
                pair.host,
                root=root,
                progress=moved,
                folder_meant=pair.folder_meant,
                limits=pair.limits,
            )
    except TimeoutError:
        text = f"The guest sent nothing for {STALL_S:.0f} s."
        raise AppError("timeout", text, "Copy less, or give it more processors.") from None


def _ignored(_: object) -> None:
    """Hear of progress and do nothing."""


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
