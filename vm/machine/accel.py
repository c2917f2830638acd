"""Which accelerator this host can really use, and whether its QEMU will do.

A `/dev/kvm` that opens is no proof: on some hosts no guest ever runs. So the guest's kernel is
booted once for real, and its first words on the console decide.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from vm.errors import HostLacks
from vm.machine.argv import MACHINE_KVM, SANDBOX
from vm.machine.spec import BadSpec

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.spec import Accelerator

MIN_QEMU = (7, 2)
INSTALL = "Run: sudo apt install qemu-system-x86"
KVM_DEVICE = "/dev/kvm"

PROBE_DEADLINE_S = 8.0
"""A kernel under KVM prints within 0.5 s; ten times that covers a nested and busy host."""

END_PATIENCE_S = 0.2
"""How long a program may take to end by itself when it has said what was wanted."""

_BY_NAME: dict[str, Accelerator] = {"kvm": "kvm", "tcg": "tcg"}
FIRST_WORDS = b"Linux version"
_PROBE_OUTPUT = 65536


@dataclass(frozen=True, slots=True)
class Choice:
    """The accelerator to use; `notice` is one sentence for the user, empty when all is well."""

    accelerator: Accelerator
    notice: str = ""


async def qemu_version(binary: str = "qemu-system-x86_64") -> tuple[int, int, int]:
    """Return QEMU's version. Raises HostLacks when it is missing or older than MIN_QEMU."""
    program = shutil.which(binary)
    if program is None:
        raise HostLacks(f"{binary} is not installed.", INSTALL)
    said = await _output(program, ("--version",), b"version", 10.0)
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


async def choose(kernel: Path, cache: Path, binary: str = "qemu-system-x86_64") -> Choice:
    """Choose `CLOCHE_ACCEL`, else kvm when a real guest boots with it, else tcg with a notice.

    `cache` is a folder for the verdict of the probe (at most 10 s, once per host kernel, QEMU and
    guest kernel). Raises HostLacks for QEMU, BadSpec for an unknown `CLOCHE_ACCEL`.
    """
    version = await qemu_version(binary)
    wanted = os.environ.get("CLOCHE_ACCEL", "")
    if wanted in _BY_NAME:
        return Choice(_BY_NAME[wanted])
    if wanted:
        raise BadSpec(f"CLOCHE_ACCEL is {wanted!r}.", "Set it to kvm or tcg, or unset it.")
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return _emulated(f"{KVM_DEVICE} cannot be used by you")
    if await _kvm_works(kernel, cache, binary, version):
        return Choice("kvm")
    return _emulated("no guest runs under KVM here")


def _emulated(reason: str) -> Choice:
    return Choice("tcg", f"Guests are emulated and therefore slow, because {reason}.")


async def _kvm_works(kernel: Path, cache: Path, binary: str, version: tuple[int, int, int]) -> bool:
    key = _key(kernel, version)
    path = cache / "accelerator.json"
    known = _verdicts(path)
    if key not in known:
        known[key] = await probe(kernel, binary)
        _remember(path, known)
    return known[key]


def _key(kernel: Path, version: tuple[int, int, int]) -> str:
    host, guest = os.uname(), kernel.stat()
    parts = (host.release, host.version, *version, kernel, guest.st_size, guest.st_mtime_ns)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _verdicts(path: Path) -> dict[str, bool]:
    try:
        found: object = json.loads(path.read_bytes()[:65536])
    except (OSError, ValueError):
        return {}  # never asked, or damaged: ask again
    if not isinstance(found, dict):
        return {}
    pairs = cast("dict[str, object]", found)
    return {key: value for key, value in pairs.items() if isinstance(value, bool)}


def _remember(path: Path, verdicts: dict[str, bool]) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    # a verdict that cannot be kept is found again next time
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_text(json.dumps(dict(list(verdicts.items())[-32:])))
        draft.replace(path)


async def probe(kernel: Path, binary: str = "qemu-system-x86_64") -> bool:
    """Boot the guest's kernel under KVM; whether it printed its first words in time."""
    words = ("-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-sandbox", SANDBOX)
    board = ("-machine", MACHINE_KVM, "-accel", "kvm", "-cpu", "host", "-m", "256")
    boot = ("-kernel", str(kernel), "-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1 reboot=t")
    serial = ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
    said = await _output(
        shutil.which(binary) or binary,
        (*words, *board, *boot, *serial),
        FIRST_WORDS,
        PROBE_DEADLINE_S,
    )
    return FIRST_WORDS in said


async def _output(
    program: str, arguments: tuple[str, ...], until: bytes, deadline_s: float
) -> bytes:
    """Run a program until it has printed `until`, has ended, or is out of time; then end it."""
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.defpath, "LC_ALL": "C"},
    )
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(deadline_s):
            while len(said) < _PROBE_OUTPUT and (chunk := await process.stdout.read(4096)):
                said += chunk
                if until in said and said.endswith(b"\n"):
                    break
    except TimeoutError:
        pass  # what was printed so far decides
    finally:
        # a kill at the moment in which the program ends by itself would make asyncio complain
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_PATIENCE_S):
                await process.wait()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # to the pipe's end, which closes it
    return said
