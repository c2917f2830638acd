"""What one machine consists of, checked before anything is started.

A spec is plain data: the keeper builds it, `argv.py` turns it into QEMU's arguments and
`machine.py` starts them. Nothing here touches the disk.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vm.errors import VMError

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.jail import Jail

Accelerator = Literal["kvm", "tcg"]
Board = Literal["q35", "microvm"]
DiskFormat = Literal["raw", "qcow2"]

MAX_SOCKET_PATH = 107
"""Bytes that `sun_path` holds on Linux without its final NUL (unix(7))."""

MAX_DISKS = 16
"""Below the 32 slots of a PCI bus; with random numbers and ports, within `microvm`'s 24."""

_SERIAL = re.compile(r"[a-z][a-z0-9]{0,19}")
"""A virtio-blk serial holds 20 bytes (VIRTIO_BLK_ID_BYTES)."""


class BadSpec(VMError):
    """A machine was asked for that cannot exist: a mistake of the caller or the config."""

    code = "bad-spec"
    way_out = "See what a machine may be asked for: cloche run --help"


@dataclass(frozen=True, slots=True)
class Backing:
    """The read-only file below a qcow2 overlay, and what lies below that."""

    path: Path
    format: DiskFormat
    backing: Backing | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk. The guest finds it by `serial` (`base`, `ws0`, `scratch`), never by its order."""

    serial: str
    path: Path
    format: DiskFormat = "raw"
    read_only: bool = True
    backing: Backing | None = None
    """What a qcow2 overlay stands on; the file's own header must say the same."""


@dataclass(frozen=True, slots=True)
class Resources:
    """How much of the host a machine may use."""

    vcpus: int = 2
    memory_mib: int = 2048


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """Everything that QEMU is told.

    `runtime` is the private folder of the sockets; `console` receives what the guest's kernel
    prints, `log` what QEMU itself has to say. `incoming` starts the machine waiting for a saved
    memory.
    """

    name: str
    accelerator: Accelerator
    kernel: Path
    initrd: Path
    disks: tuple[Disk, ...]
    runtime: Path
    console: Path
    log: Path
    resources: Resources = Resources()
    kernel_arguments: tuple[str, ...] = ()
    """Appended to the arguments that every guest gets."""
    incoming: bool = False
    binary: str = "qemu-system-x86_64"
    board: Board | None = None
    """None: `microvm` under KVM, `q35` under emulation."""
    tsc_khz: int = 0
    """For an emulated `microvm` alone, which cannot find it out: `vm.machine.clock`."""
    network: bool = False
    """Whether there is a network card; its far end is whoever connects to `network_socket`."""
    jail: Jail | None = None
    """None: QEMU runs with nothing around it but its own seccomp filter."""

    @property
    def machine_type(self) -> Board:
        """The board that the machine has."""
        return self.board or ("microvm" if self.accelerator == "kvm" else "q35")

    @property
    def qmp_socket(self) -> Path:
        """Where QEMU listens for QMP."""
        return self.runtime / "qmp.sock"

    @property
    def control_socket(self) -> Path:
        """The host end of the port `cloche.control`."""
        return self.runtime / "port-control.sock"

    @property
    def bulk_socket(self) -> Path:
        """The host end of the port `cloche.bulk`."""
        return self.runtime / "port-bulk.sock"

    @property
    def network_socket(self) -> Path:
        """Where QEMU listens for the far end of the network card."""
        return self.runtime / "net.sock"

    def check(self) -> None:
        """Raise BadSpec where the spec contradicts itself or a limit; touches no file."""
        _check_name(self.name)
        _check_resources(self.resources)
        _check_disks(self.disks)
        for path in (self.kernel, self.initrd, self.console, self.log, self.runtime):
            _check_path(path)
        for socket in (self.qmp_socket, self.control_socket, self.bulk_socket, self.network_socket):
            _check_socket(socket)
        self._check_clock()
        for word in self.kernel_arguments:
            if not word or any(character.isspace() for character in word):
                raise BadSpec(f"The kernel argument {word!r} is empty or holds white space.")

    def _check_clock(self) -> None:
        blind = self.machine_type == "microvm" and self.accelerator == "tcg"
        if blind and self.tsc_khz <= 0:
            raise BadSpec("An emulated microvm must be told the rate of its clock.")
        if self.tsc_khz and not blind:
            raise BadSpec("Only an emulated microvm is told the rate of its clock.")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise BadSpec(
            f"{name!r} is no name for a machine.",
            "Use up to 64 letters, digits, dots, dashes and underscores.",
        )


def _check_resources(resources: Resources) -> None:
    if not 1 <= resources.vcpus <= 64:
        raise BadSpec(f"A machine has 1 to 64 vCPUs, not {resources.vcpus}.")
    if not 128 <= resources.memory_mib <= 1 << 20:
        raise BadSpec(f"A machine has 128 MiB to 1 TiB of memory, not {resources.memory_mib} MiB.")


def _check_disks(disks: tuple[Disk, ...]) -> None:
    if len(disks) > MAX_DISKS:
        raise BadSpec(f"A machine has at most {MAX_DISKS} disks, not {len(disks)}.")
    serials = [disk.serial for disk in disks]
    if len(set(serials)) != len(serials):
        raise BadSpec("Two disks of one machine have the same serial.")
    for disk in disks:
        if not _SERIAL.fullmatch(disk.serial):
            raise BadSpec(f"{disk.serial!r} is no disk serial.")
        _check_path(disk.path)
        _check_backing(disk.format, disk.backing)


def _check_backing(fmt: DiskFormat, backing: Backing | None) -> None:
    if backing is None:
        return
    if fmt == "raw":
        raise BadSpec("A raw disk has no backing file.")
    _check_path(backing.path)
    _check_backing(backing.format, backing.backing)


def _check_path(path: Path) -> None:
    if not path.is_absolute():
        raise BadSpec(f"{path} is not an absolute path.")
    if any(ord(character) < 32 for character in str(path)):
        raise BadSpec(f"The path {str(path)!r} holds a control character.")


def _check_socket(path: Path) -> None:
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH:
        raise BadSpec(
            f"The socket path {path} has {length} bytes, Linux allows {MAX_SOCKET_PATH}.",
            "Set XDG_RUNTIME_DIR to a shorter folder that is yours alone.",
        )
