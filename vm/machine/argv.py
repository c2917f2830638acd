"""A spec as QEMU's arguments. Pure: no file is touched, the same spec gives the same arguments.

Nothing is left to QEMU's guessing: every block node names its driver, every overlay its backing
chain, every chardev its kind, and there is no default device.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vm.egress.kinds import GUEST, MTU
from vm.image import cmdline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.machine.spec import Accelerator, Backing, Board, Disk, DiskFormat, MachineSpec

CONTROL_PORT = "cloche.control"
BULK_PORT = "cloche.bulk"

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

BOARDS: dict[Board, str] = {
    "q35": "pc-q35-7.2,usb=off,vmport=off,smbus=off,sata=off,dump-guest-core=off",
    "microvm": "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=on,dump-guest-core=off",
}
"""The oldest q35 that the oldest allowed QEMU knows, so a saved RAM state fits later versions, and
`microvm`, which has no versions. What QEMU would choose for itself is written out."""

FAILED = "werror=stop,rerror=report"
"""What happens when the host fails: at a write (no room, over quota, broken) the machine stops and
keeps it, for a guest that is told of it gives its disk up; a read that fails costs one file."""

ENGINES: dict[Accelerator, tuple[str, ...]] = {
    "kvm": ("-accel", "kvm", "-cpu", "host"),
    "tcg": ("-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"),
}
"""All that differs between the accelerators, apart from an emulated clock.

`erms` and `fsrm` tell a guest to copy memory byte by byte in one instruction, which is the quickest
on silicon. Emulated, each byte is a step: without them copies cost a third and boots a tenth less.
"""


def build(spec: MachineSpec) -> list[str]:
    """Return the whole argument list, the program's name first. Raises BadSpec."""
    spec.check()
    return [
        spec.binary,
        *("-name", f"{spec.name},process=cloche-vm"),
        *("-nodefaults", "-no-user-config", "-nographic", "-no-reboot"),
        *("-sandbox", SANDBOX),
        *_board(spec),
        *("-kernel", str(spec.kernel), "-initrd", str(spec.initrd)),
        *("-append", kernel_command_line(spec)),
        *_consoles(spec),
        *_random(spec),
        *_balloon(spec),
        *_ports(spec),
        *_network(spec),
        *_disks(spec),
        *(("-incoming", "defer") if spec.incoming else ()),
    ]


def kernel_command_line(spec: MachineSpec) -> str:
    """Return the guest kernel's command line."""
    words = [cmdline.Q35 if spec.machine_type == "q35" else cmdline.MICROVM]
    if spec.tsc_khz:
        words.append(cmdline.emulated_clock(spec.tsc_khz))
    return " ".join((*words, *spec.kernel_arguments))


def _board(spec: MachineSpec) -> Iterator[str]:
    cpus = spec.resources.vcpus
    yield from ("-machine", BOARDS[spec.machine_type], *ENGINES[spec.accelerator])
    if spec.machine_type == "microvm":
        yield from ("-global", "virtio-mmio.force-legacy=off")
    yield from ("-smp", f"cpus={cpus},sockets=1,cores={cpus},threads=1")
    yield from ("-m", f"size={spec.resources.memory_mib}M")


def _is_mmio(spec: MachineSpec) -> bool:
    return spec.machine_type == "microvm"


def _device(spec: MachineSpec, kind: str, options: str) -> tuple[str, str]:
    """Name a virtio device by the bus that the machine type has: PCI on q35, MMIO on microvm."""
    if _is_mmio(spec):
        return "-device", f"{kind}-device,{options}"
    return "-device", f"{kind}-pci,{options},disable-legacy=on"


def _escape(path: Path) -> str:
    """Write a path as a value in QEMU's comma-separated options."""
    return str(path).replace(",", ",,")


def _socket(name: str, path: Path) -> tuple[str, str]:
    return "-chardev", f"socket,id={name},path={_escape(path)},server=on,wait=off"


def _consoles(spec: MachineSpec) -> Iterator[str]:
    yield from ("-chardev", f"file,id=console,path={_escape(spec.console)},append=on")
    yield from ("-serial", "chardev:console")
    yield from _socket("qmp", spec.qmp_socket)
    yield from ("-mon", "chardev=qmp,mode=control")


def _random(spec: MachineSpec) -> Iterator[str]:
    yield from ("-object", "rng-builtin,id=rng0")
    yield from _device(spec, "virtio-rng", "rng=rng0")


def _balloon(spec: MachineSpec) -> Iterator[str]:
    """Let the guest tell which pages it does not use; QEMU gives them back to the host."""
    yield from _device(spec, "virtio-balloon", "id=balloon,free-page-reporting=on")


def _ports(spec: MachineSpec) -> Iterator[str]:
    yield from _device(spec, "virtio-serial", "id=ports,max_ports=4")
    yield from _socket("control", spec.control_socket)
    yield from ("-device", f"virtserialport,bus=ports.0,nr=1,chardev=control,name={CONTROL_PORT}")
    yield from _socket("bulk", spec.bulk_socket)
    yield from ("-device", f"virtserialport,bus=ports.0,nr=2,chardev=bulk,name={BULK_PORT}")


def _network(spec: MachineSpec) -> Iterator[str]:
    """Name the card whose other end is our gateway. It may come late, go, and come again."""
    if not spec.network:
        return
    path = _escape(spec.network_socket)
    yield from ("-netdev", f"stream,id=net0,server=on,addr.type=unix,addr.path={path}")
    options = f"netdev=net0,mac={GUEST.mac.hex(':')},host_mtu={MTU}"
    # a card on PCI would come with a ROM to boot from, which is a file of the host
    yield from _device(spec, "virtio-net", options if _is_mmio(spec) else f"{options},romfile=")


def _disks(spec: MachineSpec) -> Iterator[str]:
    for disk in spec.disks:
        yield from ("-blockdev", json.dumps(block_node(disk), separators=(",", ":")))
        device = f"drive={disk.serial},serial={disk.serial}"
        yield from _device(spec, "virtio-blk", device if disk.read_only else f"{device},{FAILED}")


def block_node(disk: Disk) -> dict[str, object]:
    """Return the block node of a disk with its whole backing chain, nothing left to probing."""
    node = _format_node(disk.serial, disk.path, disk.format, disk.read_only)
    if disk.format == "qcow2":
        node["backing"] = _backing_node(disk.serial, disk.backing, 1)
    return node


def _backing_node(name: str, backing: Backing | None, depth: int) -> dict[str, object] | None:
    if backing is None:
        return None
    node = _format_node(f"{name}-b{depth}", backing.path, backing.format, read_only=True)
    if backing.format == "qcow2":
        node["backing"] = _backing_node(name, backing.backing, depth + 1)
    return node


def _format_node(name: str, path: Path, fmt: DiskFormat, read_only: bool) -> dict[str, object]:
    shared: dict[str, object] = {
        "read-only": read_only,
        "auto-read-only": False,
        "discard": "ignore" if read_only else "unmap",
        "cache": {"direct": False, "no-flush": False},
    }
    file = {"driver": "file", "node-name": f"{name}-f", "filename": str(path), **shared}
    return {"driver": fmt, "node-name": name, **shared, "file": file}
