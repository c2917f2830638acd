"""The guest kernel's command line, one constant for each machine type.

What the words buy, as measured under software emulation: `cryptomgr.notests` about 1 s (the crypto
self-tests of every boot), `random.trust_cpu=on` a seeded generator before the first process, `quiet
loglevel=0` the time the serial line takes to print. `panic=-1 reboot=t` makes a dead guest reset at
once, which `-no-reboot` turns into the end of QEMU. `mitigations=off`: the boundary is the virtual
machine; the guest runs one user's one agent.
"""

from __future__ import annotations

_COMMON = (
    "console=ttyS0 quiet loglevel=0 panic=-1 reboot=t mitigations=off "
    "cryptomgr.notests random.trust_cpu=on audit=0 apparmor=0"
)

Q35 = f"{_COMMON} no_timer_check"
"""For `q35`, whose timer check can fail under software emulation when the host is busy."""

MICROVM = _COMMON
"""For `microvm`. ACPI stays on: its tables are where the kernel finds the virtio-mmio devices and
all processors but the first. Without them it has one processor and waits for its disks for ever."""

TICKS_PER_SECOND = 250
"""CONFIG_HZ of Debian's and Ubuntu's kernels, which `lpj=` counts in."""


def emulated_clock(tsc_khz: int) -> str:
    """Return the words that give an emulated `microvm` its clock.

    That machine has no timer to measure by, so the kernel is told: QEMU's TSC is the host's, which
    ticks `tsc_khz` times a millisecond. `tsc=reliable` keeps the kernel from measuring it against
    the ticks of an emulated timer, which come late, and from giving it up for them.
    """
    loops = tsc_khz * 1000 // TICKS_PER_SECOND
    return f"no_timer_check tsc=reliable tsc_early_khz={tsc_khz} lpj={loops}"
