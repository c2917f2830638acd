"""Specs that cannot be, and the exact arguments of those that can."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from vm.image.cmdline import MICROVM, Q35, emulated_clock
from vm.machine.argv import block_node, build
from vm.machine.spec import Backing, BadSpec, Disk, MachineSpec, Resources

SPEC = MachineSpec(
    name="s1",
    accelerator="tcg",
    kernel=Path("/i/vmlinux"),
    initrd=Path("/s/initrd"),
    disks=(
        Disk("base", Path("/i/base.squashfs")),
        Disk("ws0", Path("/s/a, b.squashfs")),
        Disk(
            "scratch",
            Path("/s/scratch.qcow2"),
            "qcow2",
            False,
            Backing(Path("/i/mid.qcow2"), "qcow2", Backing(Path("/i/ext4.raw"), "raw")),
        ),
    ),
    runtime=Path("/run/c, d"),
    console=Path("/s/console.log"),
    log=Path("/s/qemu.log"),
    kernel_arguments=("extra=1",),
)

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

GOLDEN_TCG = f"""
qemu-system-x86_64
-name
s1,process=cloche-vm
-nodefaults
-no-user-config
-nographic
-no-reboot
-sandbox
{SANDBOX}
-machine
pc-q35-7.2,usb=off,vmport=off,smbus=off,sata=off,dump-guest-core=off
-accel
tcg,thread=multi
-cpu
max,-erms,-fsrm
-smp
cpus=2,sockets=1,cores=2,threads=1
-m
size=2048M
-kernel
/i/vmlinux
-initrd
/s/initrd
-append
{Q35} extra=1
-chardev
file,id=console,path=/s/console.log,append=on
-serial
chardev:console
-chardev
socket,id=qmp,path=/run/c,, d/qmp.sock,server=on,wait=off
-mon
chardev=qmp,mode=control
-object
rng-builtin,id=rng0
-device
virtio-rng-pci,rng=rng0,disable-legacy=on
-device
virtio-balloon-pci,id=balloon,free-page-reporting=on,disable-legacy=on
-device
virtio-serial-pci,id=ports,max_ports=4,disable-legacy=on
-chardev
socket,id=control,path=/run/c,, d/port-control.sock,server=on,wait=off
-device
virtserialport,bus=ports.0,nr=1,chardev=control,name=cloche.control
-chardev
socket,id=bulk,path=/run/c,, d/port-bulk.sock,server=on,wait=off
-device
virtserialport,bus=ports.0,nr=2,chardev=bulk,name=cloche.bulk
-blockdev
BASE
-device
virtio-blk-pci,drive=base,serial=base,disable-legacy=on
-blockdev
WS0
-device
virtio-blk-pci,drive=ws0,serial=ws0,disable-legacy=on
-blockdev
SCRATCH
-device
virtio-blk-pci,drive=scratch,serial=scratch,werror=stop,rerror=report,disable-legacy=on
"""


def _golden(text: str) -> list[str]:
    return text.strip().split("\n")


def _plain(words: list[str]) -> list[str]:
    """Put the disk's name in place of each block node, which other tests look at."""
    return [
        str(json.loads(word)["node-name"]).upper() if word.startswith("{") else word
        for word in words
    ]


def test_arguments_for_emulation() -> None:
    assert _plain(build(SPEC)) == _golden(GOLDEN_TCG)


def _golden_microvm(engine: str, words: str) -> list[str]:
    return _golden(
        GOLDEN_TCG.replace(
            "-machine\npc-q35-7.2,usb=off,vmport=off,smbus=off,sata=off,dump-guest-core=off\n"
            "-accel\ntcg,thread=multi\n-cpu\nmax,-erms,-fsrm\n",
            f"-machine\nmicrovm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=on,dump-guest-core=off\n{engine}"
            "-global\nvirtio-mmio.force-legacy=off\n",
        )
        .replace(f"{Q35} extra", f"{words} extra")
        .replace("-pci,", "-device,")
        .replace(",disable-legacy=on", "")
    )


def test_arguments_for_kvm() -> None:
    golden = _golden_microvm("-accel\nkvm\n-cpu\nhost\n", MICROVM)
    assert _plain(build(replace(SPEC, accelerator="kvm"))) == golden


def test_an_emulated_microvm_differs_in_the_accelerator_and_its_clock_alone() -> None:
    words = f"{MICROVM} {emulated_clock(2_000_000)}"
    golden = _golden_microvm("-accel\ntcg,thread=multi\n-cpu\nmax,-erms,-fsrm\n", words)
    assert _plain(build(replace(SPEC, board="microvm", tsc_khz=2_000_000))) == golden


def test_the_kernel_of_a_microvm_finds_its_devices_in_acpi() -> None:
    """Without ACPI it has one processor, and waits for its disks for ever."""
    words = build(replace(SPEC, accelerator="kvm"))
    assert "acpi=off" not in " ".join(words)


def test_a_restored_machine_waits_and_differs_in_nothing_else() -> None:
    assert build(replace(SPEC, incoming=True)) == [*build(SPEC), "-incoming", "defer"]


def _added(spec: MachineSpec) -> list[str]:
    """What a network card adds to the arguments."""
    plain = build(spec)
    return [word for word in build(replace(spec, network=True)) if word not in plain]


def test_a_network_card_ends_in_a_socket_of_the_machines_folder() -> None:
    path = str(SPEC.network_socket).replace(",", ",,")
    netdev = f"stream,id=net0,server=on,addr.type=unix,addr.path={path}"
    card = "netdev=net0,mac=02:c1:0c:4e:00:02,host_mtu=65000"
    assert _added(SPEC) == [
        *("-netdev", netdev),
        f"virtio-net-pci,{card},romfile=,disable-legacy=on",
    ]
    assert _added(replace(SPEC, accelerator="kvm")) == [
        *("-netdev", netdev),
        f"virtio-net-device,{card}",
    ]


def test_no_machine_has_an_unasked_network_card_or_a_default_device() -> None:
    for accelerator in ("tcg", "kvm"):
        words = build(replace(SPEC, accelerator=accelerator))
        assert not [w for w in words if "net" in w.split(",")[0] or w in ("-nic", "-netdev")]
        assert "-nodefaults" in words


def _layers(node: object) -> list[dict[str, object]]:
    if not isinstance(node, dict):
        return []
    found = cast("dict[str, object]", node)
    own = [found] if "driver" in found else []
    return own + [layer for value in found.values() for layer in _layers(value)]


@pytest.mark.parametrize("disk", SPEC.disks, ids=lambda disk: disk.serial)
def test_every_block_node_says_what_it_is(disk: Disk) -> None:
    layers = _layers(block_node(disk))
    assert all(layer["driver"] in ("raw", "qcow2", "file") for layer in layers)
    names = [layer["node-name"] for layer in layers]
    assert len(set(names)) == len(names)
    assert all(layer["cache"] == {"direct": False, "no-flush": False} for layer in layers)
    for layer in layers:
        if layer["driver"] == "qcow2":
            assert "backing" in layer


def test_only_the_scratch_layer_can_be_written() -> None:
    nodes = {disk.serial: _layers(block_node(disk)) for disk in SPEC.disks}
    writable = [
        layer["node-name"] for node in nodes.values() for layer in node if not layer["read-only"]
    ]
    assert writable == ["scratch", "scratch-f"]
    assert all(layer["discard"] == "unmap" for layer in nodes["scratch"][:2])


def test_a_qcow2_disk_without_backing_says_so() -> None:
    assert block_node(Disk("scratch", Path("/s/x"), "qcow2", False))["backing"] is None


BAD = {
    "name": replace(SPEC, name="a,b"),
    "no clock": replace(SPEC, board="microvm"),
    "a clock too many": replace(SPEC, tsc_khz=1),
    "a clock under KVM": replace(SPEC, accelerator="kvm", tsc_khz=1),
    "vcpus": replace(SPEC, resources=Resources(0, 512)),
    "memory": replace(SPEC, resources=Resources(1, 64)),
    "relative": replace(SPEC, kernel=Path("vmlinux")),
    "control character": replace(SPEC, initrd=Path("/s/a\nb")),
    "kernel words": replace(SPEC, kernel_arguments=("a b",)),
    "serial": replace(SPEC, disks=(Disk("Base!", Path("/x")),)),
    "long serial": replace(SPEC, disks=(Disk("b" * 21, Path("/x")),)),
    "twice": replace(SPEC, disks=(Disk("base", Path("/x")), Disk("base", Path("/y")))),
    "many": replace(SPEC, disks=tuple(Disk(f"d{n}", Path("/x")) for n in range(17))),
    "raw with backing": replace(
        SPEC, disks=(Disk("d", Path("/x"), backing=Backing(Path("/y"), "raw")),)
    ),
    "relative backing": replace(
        SPEC, disks=(Disk("d", Path("/x"), "qcow2", False, Backing(Path("y"), "raw")),)
    ),
    "socket": replace(SPEC, runtime=Path("/" + "r" * 100)),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(BadSpec):
        build(BAD[name])


def test_the_longest_socket_path_is_allowed() -> None:
    room = 107 - len("/port-control.sock")
    replace(SPEC, runtime=Path("/" + "r" * (room - 1))).check()
    with pytest.raises(BadSpec, match="has 108 bytes, Linux allows 107"):
        replace(SPEC, runtime=Path("/" + "r" * room)).check()
