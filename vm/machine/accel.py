"""Which accelerator this host can really use, and whether its QEMU will do.

A `/dev/kvm` that opens is no proof: on some hosts no guest ever runs. So the guest's kernel is
booted once for real, to the point where it looks for a disk, and what its console says decides.
The verdict is remembered (`vm.machine.verdicts`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vm.errors import HostLacks
from vm.image import cmdline
from vm.machine import jail_start, verdicts
from vm.machine.argv import BOARDS, ENGINES, SANDBOX
from vm.machine.console import plain
from vm.machine.spec import BadSpec
from vm.machine.verdicts import Verdict

if TYPE_CHECKING:
    from vm.machine.jail import Jail
    from vm.machine.spec import Accelerator

MIN_QEMU = (7, 2)
INSTALL = "Run: sudo apt install qemu-system-x86"
KVM_DEVICE = Path("/dev/kvm")
VARIABLE = "CLOCHE_ACCEL"
CACHE = "accelerator.json"

PROBE_DEADLINE_S = 8.0
"""A kernel under KVM is through within 1 s; eight times that covers a nested and busy host."""

END_PATIENCE_S = 0.2
"""How long a program may take to end by itself when it has said what was wanted."""

KILL_PATIENCE_S = 1.0
"""A process that hangs inside KVM may not even die: then it is left behind, with a word."""

LAST_WORDS = b"Unable to mount root fs"
"""What a kernel without a disk says last, when processors, timers and interrupts have worked."""

EMULATED = "Guests are emulated and therefore slow"
"""How the notice begins that no wish but a lack chose emulation."""

_BY_NAME: dict[str, Accelerator] = {"kvm": "kvm", "tcg": "tcg"}
_PROBE_OUTPUT = 262144
_QUOTED = 160
"""Characters of QEMU's last line that a sentence quotes."""

ChosenBy = Literal["probe", "config", "variable"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The accelerator to use; `notice` is one sentence for the user, empty when all is well.

    `chosen_by` tells who decided: the probe, `accel` in the configuration, or `CLOCHE_ACCEL`.
    """

    accelerator: Accelerator
    notice: str = ""
    chosen_by: ChosenBy = "probe"


async def qemu_version(binary: str = "qemu-system-x86_64") -> tuple[int, int, int]:
    """Return QEMU's version. Raises HostLacks when it is missing or older than MIN_QEMU."""
    program = shutil.which(binary)
    if program is None:
        raise HostLacks(f"{binary} is not installed.", INSTALL)
    said = (await _output(program, ("--version",), b"version", 10.0)).said
    found = re.search(rb"version (\d+)\.(\d+)(?:\.(\d+))?", said)
    if found is None:
        raise HostLacks(f"{program} does not say which version it is.", INSTALL)
    major, minor, micro = (int(part or 0) for part in found.groups())
    if (major, minor) < MIN_QEMU:
        raise HostLacks(
            f"QEMU {major}.{minor} is too old: Cloche needs {MIN_QEMU[0]}.{MIN_QEMU[1]} or later.",
            f"Upgrade to Debian 12 or Ubuntu 24.04, then: {INSTALL.removeprefix('Run: ')}",
        )
    return major, minor, micro


def wished(wish: str = "auto") -> Choice | None:
    """Return what the user decided: `CLOCHE_ACCEL` before `wish` (the configuration's `accel`).

    None when both leave it to the probe. Raises BadSpec for a word that is no accelerator.
    """
    variable = os.environ.get(VARIABLE, "")
    if variable not in ("", "auto", *_BY_NAME):
        raise BadSpec(f"{VARIABLE} is {variable!r}.", "Set it to auto, kvm or tcg, or unset it.")
    if variable in _BY_NAME:
        return Choice(_BY_NAME[variable], chosen_by="variable")
    if not variable and wish in _BY_NAME:
        return Choice(_BY_NAME[wish], chosen_by="config")
    return None


async def choose(
    kernel: Path,
    cache: Path,
    binary: str = "qemu-system-x86_64",
    *,
    wish: str = "auto",
    place: Jail | None = None,
) -> Choice:
    """Choose what the user wished, else kvm when a real guest boots with it, else tcg.

    `cache` is a folder for the verdict of the probe; `place` the jail that QEMU will be in.
    Raises HostLacks for QEMU, BadSpec for an unknown `CLOCHE_ACCEL`.
    """
    decided = wished(wish)
    if decided is not None:
        await qemu_version(binary)
        return decided
    verdict = await kvm_verdict(kernel, cache, binary, place=place)
    if verdict.works:
        return Choice("kvm")
    return Choice("tcg", f"{EMULATED}, because {verdict.why}.")


async def kvm_verdict(
    kernel: Path,
    cache: Path,
    binary: str = "qemu-system-x86_64",
    *,
    anew: bool = False,
    place: Jail | None = None,
) -> Verdict:
    """Return whether guests run under KVM, asking once per host kernel, QEMU and guest kernel.

    The probe runs with our own rights; whether QEMU gets the device in its jail (`place`) as well
    is looked at each time. `anew` asks whatever is remembered. Takes at most 10 s, twice that while
    another process asks. Raises HostLacks for QEMU.
    """
    version = await qemu_version(binary)
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return Verdict(False, _no_device())
    if why := jail_start.withheld(place, KVM_DEVICE, cache):
        return Verdict(False, why)
    memory, key = cache / CACHE, _key(kernel, binary, version)
    known = None if anew else verdicts.recall(memory, key)
    if known is not None:
        return known
    async with verdicts.turn(memory, PROBE_DEADLINE_S + KILL_PATIENCE_S):
        known = None if anew else verdicts.recall(memory, key)
        if known is None:
            known = await probe(kernel, binary)
            verdicts.remember(memory, key, known)
        return known


def _no_device() -> str:
    if not KVM_DEVICE.exists():
        return f"this host has no {KVM_DEVICE}"
    return f"{KVM_DEVICE} cannot be used by you"


def _key(kernel: Path, binary: str, version: tuple[int, int, int]) -> str:
    host, guest = os.uname(), kernel.stat()
    program = os.stat(shutil.which(binary) or binary)
    parts = (
        *(host.release, host.version),
        *(version, program.st_size, program.st_mtime_ns),
        *(kernel, guest.st_size, guest.st_mtime_ns),
        *(BOARDS["microvm"], ENGINES["kvm"]),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


async def probe(
    kernel: Path,
    binary: str = "qemu-system-x86_64",
    accelerator: Accelerator = "kvm",
    words: str = "",
) -> Verdict:
    """Boot the guest's kernel on the `microvm` board; whether it came to its last words in time.

    `words` are added to its command line: an emulated one must be told its clock.
    """
    board = ("-machine", BOARDS["microvm"], *ENGINES[accelerator], "-m", "256")
    rest = ("-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-sandbox", SANDBOX)
    loud = cmdline.MICROVM.replace("quiet loglevel=0", "loglevel=7 earlyprintk=ttyS0")
    boot = ("-kernel", str(kernel), "-append", f"{loud} {words}".strip())
    serial = ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
    run = await _output(
        shutil.which(binary) or binary,
        (*board, *rest, *boot, *serial),
        LAST_WORDS,
        PROBE_DEADLINE_S,
    )
    return _judge(run)


def _judge(run: _Run) -> Verdict:
    if LAST_WORDS in run.said:
        return Verdict(True)
    if run.out_of_time:
        how = f"its kernel did not boot within {run.seconds:g} s"
    elif run.status < 0:
        how = f"QEMU crashed with signal {-run.status}"
    else:
        how = "QEMU ended before its kernel had booted"
    words = _words(plain(run.said).splitlines())
    said = f', it said "{words}"' if words else ""
    return Verdict(False, f"{KVM_DEVICE} is there but no guest runs under it ({how}{said})")


def _words(lines: list[str]) -> str:
    """Return the line that tells most: QEMU's first complaint, else the last one of all."""
    own = [line for line in lines if line.startswith("qemu-system")]
    chosen = own[0].partition(": ")[2] if own else "".join(lines[-1:])
    return chosen.removeprefix("error: ").strip().rstrip(".")[:_QUOTED]


@dataclass(frozen=True, slots=True)
class _Run:
    """What a program printed, how it ended, and whether it had to be ended after `seconds`."""

    said: bytes
    status: int
    out_of_time: bool
    seconds: float


async def _output(
    program: str, arguments: tuple[str, ...], until: bytes, deadline_s: float
) -> _Run:
    """Run a program until it has printed `until`, has ended, or is out of time; then end it."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise HostLacks(f"{program} could not be started: {error.strerror}.", INSTALL) from error
    said, late = bytearray(), False
    try:
        async with asyncio.timeout(deadline_s):
            await _read_until(process, said, until)
    except TimeoutError:
        late = True  # what was printed so far decides
    finally:
        await _end(process)
    status = 0 if process.returncode is None else process.returncode
    return _Run(bytes(said), status, late, deadline_s)


async def _read_until(process: asyncio.subprocess.Process, said: bytearray, until: bytes) -> None:
    assert process.stdout is not None
    while len(said) < _PROBE_OUTPUT and (chunk := await process.stdout.read(4096)):
        said += chunk
        if until in said and said.endswith(b"\n"):
            return


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and all that it started; one that not even SIGKILL ends is left behind."""
    # a kill at the moment in which the program ends by itself would make asyncio complain
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_PATIENCE_S):
            await process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KILL_PATIENCE_S):
            await process.communicate()  # to the pipe's end, which closes it
