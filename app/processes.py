"""Facts about processes: which one is alive, and whether it is still the same one.

A pid alone proves nothing, for numbers are used again; pid and start time together do, as long as
the host runs. After a reboot both may come again, so what is written down bears the boot's id.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
"""The kernel's name for the time since the host was started (random(4))."""


def boot_id() -> str:
    """Return the name of this boot of the host; empty where the kernel gives none."""
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def start_time(pid: int) -> int:
    """Return when `pid` started, in clock ticks since boot; 0 when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # the name is in parentheses and may itself hold any character, so count from its end
    fields = text[text.rfind(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return 0
    return int(fields[19])


def alive(pid: int, started: int) -> bool:
    """Tell whether the process that had `pid` and started at `started` still runs."""
    return pid > 0 and started > 0 and start_time(pid) == started


def lock_held(path: Path) -> bool:
    """Tell whether somebody holds the exclusive flock on `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # a shared try is enough to see an exclusive holder, and two askers never see each other
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
