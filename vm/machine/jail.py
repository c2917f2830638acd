"""The jail that QEMU runs in: which files it holds, and the command that closes it. Pure.

The jail is made by bubblewrap. It has namespaces of its own (network, processes, IPC, mounts, host
name), a root of its own that nobody can write to, and in it: QEMU, its libraries and firmware, the
machine's files under fixed names below /vm, two harmless devices and a small /tmp. There is no
home, no workspace, no /proc, no shell, no way to other sockets, and no capability.

An ordinary user's QEMU stays that user's process, in a user namespace. Root's QEMU takes on a user
id that nothing else has, for a jail with root in it would be none.

`jail_check.py` proves that the host can do it, `jail_start.py` starts a machine in it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vm.machine.spec import Backing, Disk, MachineSpec

VM: Final = Path("/vm")
"""Where the machine's own files are in the jail."""

INFO: Final = 3
"""Descriptor on which bubblewrap says the pid of QEMU."""

HOSTNAME: Final = "cloche"
NOBODY: Final = 65534
"""What an ordinary user is called inside; outside it stays that user."""

TMP_BYTES: Final = 16 << 20
DEVICES: Final = (Path("/dev/null"), Path("/dev/urandom"))
KVM: Final = Path("/dev/kvm")

IDS: Final = range(61184, 65520)
"""Ids for users who exist only while a service runs (systemd's DynamicUser, its docs/UIDS-GIDS):
no person and no package owns one. Below 65536, so containers have them, too."""

GROUP: Final = IDS[0]
"""Group of every jailed QEMU of root, for files that machines share."""

NAMESPACES: Final = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    # no helper process inside: QEMU starts no children, so it needs nobody to wait for them
    *("--as-pid-1", "--new-session", "--hostname", HOSTNAME, "--chdir", "/"),
    *("--clearenv", "--setenv", "LC_ALL", "C"),
)
"""`--die-with-parent` is left out on purpose: a machine outlives its keeper."""

Access = Literal["read", "write", "device"]
_BIND: Final[dict[Access, str]] = {"read": "--ro-bind", "write": "--bind", "device": "--dev-bind"}


@dataclass(frozen=True, slots=True)
class Jail:
    """How QEMU is locked up on this host."""

    bwrap: str
    setpriv: str = ""
    """Set where we are root: the program that gives root's rights up inside, for good."""


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder of the host that is in the jail, under the name `target`."""

    source: Path
    target: Path
    access: Access = "read"


@dataclass(frozen=True, slots=True)
class Lodger:
    """Who root's QEMU is: numbers that own nothing but its machine's files."""

    uid: int
    gid: int = GROUP
    groups: tuple[int, ...] = ()
    """Further groups, for devices."""


def lodger(spec: MachineSpec, groups: tuple[int, ...] = ()) -> Lodger:
    """Return the user of a machine of root's: the same at every start of the same machine."""
    digest = hashlib.sha256(os.fsencode(spec.runtime)).digest()
    return Lodger(IDS[1 + int.from_bytes(digest[:8], "big") % (len(IDS) - 1)], GROUP, groups)


def inside(spec: MachineSpec) -> MachineSpec:
    """Return the spec with every path as it is called in the jail."""
    return replace(
        spec,
        kernel=VM / "kernel",
        initrd=VM / "initrd",
        disks=tuple(_disk_inside(disk) for disk in spec.disks),
        runtime=VM / "run",
        console=VM / "console",
        log=VM / "log",  # never opened by QEMU: it inherits it
    )


def _disk_inside(disk: Disk) -> Disk:
    return replace(
        disk, path=VM / disk.serial, backing=_backing_inside(disk.serial, disk.backing, 1)
    )


def _backing_inside(serial: str, backing: Backing | None, depth: int) -> Backing | None:
    if backing is None:
        return None
    below = _backing_inside(serial, backing.backing, depth + 1)
    return replace(backing, path=VM / f"{serial}-{depth}", backing=below)


def files(spec: MachineSpec) -> tuple[File, ...]:
    """Return what a machine needs beside QEMU itself; the targets are those of `inside`."""
    return tuple(_files(spec))


def _files(spec: MachineSpec) -> Iterator[File]:
    there = inside(spec)
    yield File(spec.kernel, there.kernel)
    yield File(spec.initrd, there.initrd)
    for disk, target in zip(spec.disks, there.disks, strict=True):
        yield File(disk.path, target.path, "read" if disk.read_only else "write")
        yield from _chain(disk.backing, target.backing)
    yield File(spec.console, there.console, "write")
    yield File(spec.runtime, there.runtime, "write")
    if spec.accelerator == "kvm":
        yield File(KVM, KVM, "device")


def _chain(backing: Backing | None, target: Backing | None) -> Iterator[File]:
    while backing is not None and target is not None:
        yield File(backing.path, target.path)
        backing, target = backing.backing, target.backing


def command(
    jail: Jail,
    inmate: Sequence[str],
    held: Iterable[File],
    *,
    links: Sequence[tuple[str, str]] = (),
    tenant: Lodger | None = None,
    say_pid: bool = True,
) -> list[str]:
    """Return the command that runs `inmate` (program and arguments) with only `held` around it.

    `links` are symbolic links (name, target). `tenant` is for root alone and must be given there.
    """
    kept = _outermost(held)
    if tenant is not None:
        kept.append(File(Path(jail.setpriv), Path(jail.setpriv)))
        inmate = [*_give_up(jail, tenant), *inmate]
    return [
        jail.bwrap,
        *_rights(tenant),
        *NAMESPACES,
        *(("--info-fd", str(INFO)) if say_pid else ()),
        *_tree(kept, links),
        "--",
        *inmate,
    ]


def _outermost(held: Iterable[File]) -> list[File]:
    """Leave out what lies in a folder that is there anyway, and keep the order."""
    found = list(dict.fromkeys(held))
    shown = {file.target for file in found if file.access == "read"}
    return [file for file in found if shown.isdisjoint(file.target.parents)]


def _rights(tenant: Lodger | None) -> tuple[str, ...]:
    if tenant is None:
        user = str(NOBODY)
        return ("--unshare-user", "--uid", user, "--gid", user, "--cap-drop", "ALL")
    # but for what changing the user takes; `_give_up` drops these
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return ("--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name)))


def _give_up(jail: Jail, tenant: Lodger) -> list[str]:
    words = [jail.setpriv, "--reuid", str(tenant.uid), "--regid", str(tenant.gid)]
    if tenant.groups:
        words += ["--groups", ",".join(map(str, tenant.groups))]
    else:
        words += ["--clear-groups"]
    return [*words, "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]


def _tree(held: list[File], links: Sequence[tuple[str, str]]) -> Iterator[str]:
    # a folder that bubblewrap makes by itself is closed to all but its own user
    for folder in sorted(_folders([*(file.target for file in held), *DEVICES])):
        yield from ("--dir", str(folder))
    for file in held:
        yield from (_BIND[file.access], str(file.source), str(file.target))
    for name, target in links:
        yield from ("--symlink", target, name)
    for device in DEVICES:
        yield from ("--dev-bind", str(device), str(device))
    yield from ("--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp")
    yield from ("--remount-ro", "/")


def _folders(targets: Iterable[Path]) -> set[Path]:
    return {folder for target in targets for folder in target.parents} - {Path("/")}
