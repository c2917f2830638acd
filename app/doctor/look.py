"""What this host is: asked of the kernel, of programs and of our own folders.

Nothing is left behind: files that are made on the way have no name. Every program has a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.client import checks
from app.doctor.host import Acceleration, Clock, Fault, Jail, Namespaces, Panes, Space
from app.errors import AppError
from vm.errors import VMError

if TYPE_CHECKING:
    from app.paths import Paths

PROGRAM_SECONDS: Final = 10.0

FICLONE: Final = 0x40049409
"""ioctl that lets two files share their blocks (linux/fs.h)."""

_BLOCK: Final = 65536
_TIME_ERROR: Final = 5
"""What adjtimex(2) answers while nobody sets the clock."""
_SIZE_OF_TIMEX: Final = 256
"""struct timex has 208 bytes on 64-bit Linux."""


def qemu() -> tuple[int, int, int] | Fault:
    """Return QEMU's version, or why there is none."""
    from vm.machine import accel

    try:
        return asyncio.run(accel.qemu_version())
    except VMError as error:
        return _fault(error)


def acceleration(paths: Paths, wish: str) -> Acceleration:
    """Ask KVM anew, whatever is remembered, and remember the answer; up to 10 s.

    `wish` is the configuration's `accel`. Raises VMError for a `CLOCHE_ACCEL` that is no word.
    """
    from vm.machine import accel, jail_check, jail_start

    decided = accel.wished(wish)
    works, why, untried = False, "", None
    place = jail_check.check().jail
    try:
        image = checks.check_image(paths)
        verdict = asyncio.run(accel.kvm_verdict(image.vmlinux, paths.cache, anew=True, place=place))
        works, why = verdict.works, verdict.why
    except (VMError, OSError) as error:
        untried = _fault(error)
    return Acceleration(
        device=accel.KVM_DEVICE.exists(),
        usable=os.access(accel.KVM_DEVICE, os.R_OK | os.W_OK),
        withheld=bool(jail_start.withheld(place, accel.KVM_DEVICE, paths.cache)),
        virtualisation=_virtualisation(),
        works=works,
        why=why,
        untried=untried,
        wish=decided.accelerator if decided else "",
        chosen_by=decided.chosen_by if decided else "probe",
    )


def _virtualisation() -> str:
    flags = re.search(r"^flags\s*:.*?\b(vmx|svm)\b", _text(Path("/proc/cpuinfo")), re.M)
    return flags[1] if flags else ""


def space(name: str, holds: str, variable: str, folder: Path) -> Space:
    """Look at the room in a folder, or where it will be made."""
    folder = _nearest(folder)
    room = os.statvfs(folder)
    return Space(
        id=name,
        holds=holds,
        folder=str(folder),
        variable=variable,
        free=room.f_bavail * room.f_frsize,
        files=room.f_favail if room.f_files else -1,
        reflink=_reflink(folder),
    )


def _nearest(folder: Path) -> Path:
    """Return the folder, or the first above it that is there for us to see."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            if place.exists():
                return place
    return Path("/")


def _reflink(folder: Path) -> bool | None:
    """Try to share a block between two files without names."""
    flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:
        try:
            files = [os.open(folder, flags, 0o600) for _ in range(2)]
        except OSError:
            return None  # not ours to write, or a file system without nameless files
        for handle in files:
            stack.callback(os.close, handle)
        try:
            os.write(files[0], bytes(_BLOCK))
            fcntl.ioctl(files[1], FICLONE, files[0])
        except OSError:
            return False
    return True


def available_memory() -> int:
    """Return the bytes that programs can still have, 0 when the kernel does not tell."""
    line = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(Path("/proc/meminfo")), re.M)
    return int(line[1]) << 10 if line else 0


def namespaces() -> Namespaces:
    """Read the kernel's settings and run bubblewrap once."""
    from vm.image.tools import find

    program = find("bwrap") or ""
    return Namespaces(
        most=_setting("user/max_user_namespaces"),
        debian=_setting("kernel/unprivileged_userns_clone"),
        apparmor=_setting("kernel/apparmor_restrict_unprivileged_userns"),
        bwrap=program,
        trial=_complaint(program) if program else "",
    )


def _setting(name: str) -> int | None:
    text = _text(Path("/proc/sys") / name).strip()
    return int(text) if text.isdecimal() else None


def _complaint(program: str) -> str:
    """Return what bubblewrap says when it cannot do what a jail needs."""
    argv = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=PROGRAM_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} could not be run ({type(error).__name__})"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode(errors="replace").strip()[-120:]
    return said or f"it ended with {done.returncode}"


def jail(wish: str) -> Jail:
    """Make a tiny jail for QEMU; `wish` is the configuration's, the variable comes before it.

    Raises BadSpec for a wish that is none.
    """
    from vm.machine import jail_check
    from vm.machine.spec import BadSpec

    wanted = os.environ.get(jail_check.VARIABLE) or wish
    known: dict[str, jail_check.Wish] = {one: one for one in jail_check.WISHES}
    if wanted not in known:
        hint = f"Set {jail_check.VARIABLE} to {', '.join(known)}."
        raise BadSpec(f"The jail is {wanted!r}.", hint)
    verdict = jail_check.check()
    return Jail(known[wanted], verdict.why, verdict.fix)


def panes() -> Panes:
    """Ask what the kernel offers to confine a pane's worker with."""
    from vm.terminal import landlock, seccomp

    return Panes(
        filter=seccomp.supported(),
        seccomp="\nSeccomp:" in _text(Path("/proc/self/status")),
        landlock=landlock.version(),
    )


def clock() -> Clock:
    """Ask the kernel for its time and where it has it from."""
    from vm.machine.clock import host_tsc_khz

    try:
        tsc = host_tsc_khz()
    except VMError:
        tsc = 0
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return Clock(time.time(), _text(source).strip(), _synchronised(), tsc)


def _synchronised() -> bool | None:
    """Ask adjtimex(2), which changes nothing when its `modes` are 0."""
    buffer = ctypes.create_string_buffer(_SIZE_OF_TIMEX)
    state = int(ctypes.CDLL(None).adjtimex(buffer))
    return None if state < 0 else state != _TIME_ERROR


def sockets(paths: Paths) -> Fault | None:
    """Return what is wrong with the place of the sockets."""
    try:
        checks.check_sockets(paths, "0" * 10)
    except AppError as error:
        return _fault(error)
    return None


def image(paths: Paths) -> tuple[str, str] | Fault:
    """Return digest and kernel of the base image, or why there is none."""
    try:
        found = checks.check_image(paths)
    except (VMError, OSError) as error:
        return _fault(error)
    return found.digest, found.kernel_release


def guest_init(paths: Paths) -> bool | Fault:
    """Return whether the guest's first process is compiled, or what lacks for compiling it."""
    from vm.image import guest
    from vm.image.tools import require

    try:
        if guest.find_init(paths.store) is not None:
            return True
        require(*guest.COMPILERS)
    except (VMError, OSError) as error:
        return _fault(error)
    return False


def python() -> str:
    """Return this Python's version."""
    return platform.python_version()


def free_program(name: str) -> str | None:
    """Return a program's path; sbin counts, too, as for those who run it."""
    from vm.image.tools import find

    return find(name) or shutil.which(name)


def _fault(error: VMError | AppError | OSError) -> Fault:
    if isinstance(error, OSError):
        reason = f"The system refused {error.filename}: {error.strerror}."
        return Fault(reason, f"Look at it: ls -ld '{error.filename}'")
    return Fault(error.message, error.hint)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
