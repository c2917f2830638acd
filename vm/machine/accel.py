"""Which accelerator this host can really use, and whether its QEMU will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.spec import Accelerator

MIN_QEMU = (7, 2)


@dataclass(frozen=True, slots=True)
class Choice:
    """The accelerator to use; `notice` is one sentence for the user, empty when all is well."""

    accelerator: Accelerator
    notice: str = ""


async def qemu_version(binary: str = "qemu-system-x86_64") -> tuple[int, int, int]:
    """Return QEMU's version. Raises HostLacks when it is missing or older than MIN_QEMU."""
    raise NotImplementedError


async def choose(kernel: Path, cache: Path, binary: str = "qemu-system-x86_64") -> Choice:
    """Choose `CLOCHE_ACCEL`, else kvm when a real guest boots with it, else tcg with a notice.

    `cache` is a folder for the verdict of the probe (at most 10 s, once per host kernel, QEMU and
    guest kernel). Raises HostLacks for QEMU, BadSpec for an unknown `CLOCHE_ACCEL`.
    """
    raise NotImplementedError
