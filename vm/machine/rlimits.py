"""What of the host QEMU may take besides its guest's memory: bounds that the kernel holds it to.

`prlimit` (util-linux) sets them and becomes QEMU, so there is no moment without them.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

from vm.errors import HostLacks

if TYPE_CHECKING:
    from vm.machine.spec import Resources

PROGRAM: Final = "prlimit"
PACKAGE: Final = "util-linux"

FILES: Final = 1024
"""Descriptors; a machine with all its disks and clients has fewer than 200 open."""

TASKS: Final = 512
"""Threads: one a vCPU (at most 64), and up to 64 that wait for disks."""

OVERHEAD_MIB: Final = 8192
"""Address space beside the guest's memory: translated code (1 GiB under emulation), the stacks and
arenas of its threads. About 3 GiB are mapped as a rule, a tenth of that is memory."""


def find() -> str:
    """Return the path of `prlimit`, links resolved. Raises HostLacks."""
    found = shutil.which(PROGRAM)
    if found is None:
        text = f"This host lacks {PROGRAM}, which bounds QEMU."
        raise HostLacks(text, f"Install: sudo apt-get install {PACKAGE}")
    return os.path.realpath(found)


def words(program: str, resources: Resources, *, alone: bool) -> list[str]:
    """Return what is put in front of QEMU's own words; `program` is where `prlimit` is.

    `alone` says that QEMU's user has no other processes here, as in a jail: outside of one the
    kernel would count all of that user's, and QEMU's seccomp filter forbids it new ones anyway.
    """
    address_space = (resources.memory_mib + OVERHEAD_MIB) << 20
    return [
        program,
        "--core=0",
        f"--nofile={FILES}",
        f"--as={address_space}",
        *((f"--nproc={TASKS}",) if alone else ()),
        "--",
    ]
