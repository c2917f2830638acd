"""How fast this host's time stamp counter ticks.

QEMU's emulated processors read the host's counter, and an emulated `microvm` has no timer to
measure it by, so its kernel must be told the rate. It is measured here as a kernel would do it:
the counter is read at both ends of a stretch of time. Where no code may be made at run time
(hardened hosts), the kernel's own figure serves, which it prints as `bogomips`.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vm.errors import HostLacks

if TYPE_CHECKING:
    from collections.abc import Callable

CPUINFO = Path("/proc/cpuinfo")

STRETCH_S = 0.05
"""Reading the clock takes 0.1 µs, so 50 ms give the rate to a few millionths."""

ATTEMPTS = 3
"""A host that takes the processor away between the two readings spoils one attempt."""

_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret (Intel SDM volume 2, RDTSC)."""

_FASTEST_KHZ = 10_000_000


def host_tsc_khz() -> int:
    """Return the counter's rate in kHz: measured, else as the host's kernel tells it.

    Takes 0.15 s. Raises HostLacks where it can be neither measured nor read.
    """
    if platform.machine() != "x86_64":
        raise HostLacks("This host's processor has no time stamp counter.")
    measured = _measured_khz()
    return measured or told_khz(_cpuinfo())


def told_khz(cpuinfo: str) -> int:
    """Return the rate from a text of /proc/cpuinfo.

    `bogomips` is twice the counter's MHz wherever the kernel knows the counter's rate, which it
    says by the flag constant_tsc. `cpu MHz` is the speed of the moment and tells nothing.
    Raises HostLacks.
    """
    loops = re.search(r"^bogomips\s*:\s*(\d{1,6}\.\d{1,3})\s*$", cpuinfo, re.M)
    if loops is None or not re.search(r"^flags\s*:.*\bconstant_tsc\b", cpuinfo, re.M):
        raise HostLacks("The rate of this host's time stamp counter cannot be found out.")
    khz = round(float(loops[1]) * 500)
    if not 0 < khz <= _FASTEST_KHZ:
        raise HostLacks(f"The host's kernel tells an impossible clock rate: {loops[1]} bogomips.")
    return khz


def rate_khz(readings: list[tuple[int, int]]) -> int:
    """Return the rate from pairs of (ticks, nanoseconds) that passed; 0 where they make no sense.

    The middle one counts: a pause of the process makes one pair wrong, not the others.
    """
    rates = sorted(ticks * 1e6 / ns for ticks, ns in readings if ticks > 0 and ns > 0)
    khz = round(rates[len(rates) // 2]) if rates else 0
    return khz if khz <= _FASTEST_KHZ else 0


def _cpuinfo() -> str:
    try:
        return CPUINFO.read_text(errors="replace")
    except OSError:
        return ""


def _measured_khz() -> int:
    """Return the measured rate, 0 where this process may not run code that it makes."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return 0
    page.write(_READ_COUNTER)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(start)
    return rate_khz([_passed(counter) for _ in range(ATTEMPTS)])


def _passed(counter: Callable[[], int]) -> tuple[int, int]:
    began, ticks = time.monotonic_ns(), counter()
    time.sleep(STRETCH_S)
    ended, more = time.monotonic_ns(), counter()
    return more - ticks, ended - began
