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

TCG_Q35 = f"{_COMMON} no_timer_check"
"""For `q35` under software emulation, whose timer check can fail when the host is busy."""

KVM_MICROVM = f"{_COMMON} acpi=off"
"""For `microvm` under KVM; QEMU itself appends the `virtio_mmio.device=` words of its devices."""
