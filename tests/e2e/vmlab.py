"""Real machines for the end-to-end tests: one cold boot, a RAM checkpoint of it, quick forks.

The checkpoint is kept in the user's cache under a key of everything that it depends on, so a second
run of the tests boots nothing. A damaged one is built again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from app.paths import Paths
from vm.image.initrd import write_initrd
from vm.image.scratch import scratch_template
from vm.image.store import ImageSet, find_image
from vm.machine import accel, argv, checkpoint, jail_check, ssh
from vm.machine.bulk import BulkClient
from vm.machine.disks import create_overlay
from vm.machine.guest_exec import Command, ExecResult, run
from vm.machine.identity import Identity
from vm.machine.machine import Machine, boot
from vm.machine.spec import Backing, Disk, MachineSpec, Resources

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import asyncssh

    from vm.machine.jail import Jail

BOOT_DEADLINE_S = 90.0
"""Generous: two builds may share the host's two cores with an emulated guest."""

RESOURCES = Resources(vcpus=1, memory_mib=512)
SCRATCH_GIB = 2

RECIPE = Path(__file__).read_text()
"""How a checkpoint is made is part of what it is."""

PATHS = Paths.from_environment()
"""The user's own folders, read before a test puts others into the environment."""

LINKED = {"vmlinux": "vmlinux", "initramfs": "toolkit.cpio.gz", "base": "base.squashfs"}
"""Files of the image that a checkpoint keeps: an image that is built anew must not change it."""

TEMPLATE = "ext4.raw"
KEPT_S = 7 * 86400.0
"""Age at which the checkpoint of another image or QEMU is removed."""

PARTS = (*LINKED.values(), "ram", "scratch.qcow2", "ws.squashfs", "identity.json")


@dataclass
class LabVM:
    """A running machine with its links. `close` ends it."""

    machine: Machine
    identity: Identity
    folder: Path
    ssh: asyncssh.SSHClientConnection
    _bulk: BulkClient | None = field(default=None, repr=False)

    @property
    def spec(self) -> MachineSpec:
        return self.machine.spec

    async def run(
        self, *words: str, root: bool = False, env: Mapping[str, str] | None = None
    ) -> ExecResult:
        """Run a program in the agent's world, as the agent or as the world's root."""
        return await run(self.ssh, Command(words, root=root, env=env or {}), timeout_s=60.0)

    async def sh(self, script: str, *, root: bool = False) -> str:
        """Run a shell script in the agent's world; it must succeed."""
        result = await self.run("sh", "-ec", script, root=root)
        assert result.exit_code == 0, (result.exit_code, result.stdout, result.stderr)
        return result.stdout.decode()

    async def bulk(self) -> BulkClient:
        """Return the bulk client, connected at the first call."""
        if self._bulk is None:
            self._bulk = await BulkClient.connect(self.spec.bulk_socket, self.identity.token, 20.0)
        return self._bulk

    async def reconnect(self, deadline_s: float = 20.0) -> None:
        """Make a new SSH connection in place of the present one, which ends at once."""
        self.ssh.abort()
        self.ssh = await ssh.connect(self.spec.control_socket, self.identity, deadline_s)

    async def close(self) -> None:
        self.ssh.abort()
        await self.ssh.wait_closed()
        if self._bulk is not None:
            await self._bulk.close()
        await self.machine.stop(2.0)


@dataclass(frozen=True)
class Checkpoint:
    """A stopped machine on disk: its memory, its scratch disk and its secrets."""

    folder: Path
    image: ImageSet
    """The image as it was, its files linked into the folder."""
    template: Backing
    """The empty disk below the saved one."""


def lab_image() -> ImageSet:
    """Return the image the tests boot; ImageMissing says how to build it."""
    return find_image(PATHS.store)


def make_workspace(folder: Path) -> Path:
    """Make the small workspace of the lab as a squashfs, the same bytes every time."""
    tree = folder / "workspace"
    (tree / "src" / "deep").mkdir(parents=True)
    (tree / "docs").mkdir()
    (tree / "README.md").write_text("# Lab\n\nA small workspace.\n")
    (tree / "src" / "main.py").write_text("print('hello')\n" * 20)
    (tree / "src" / "deep" / "data.txt").write_text("one\ntwo\nthree\n")
    (tree / "docs" / "guide.md").write_text("guide\n" * 50)
    target = folder / "ws.squashfs"
    words = ("-noappend", "-quiet", "-no-progress", "-comp", "lz4", "-all-time", "0")
    owner = ("-force-uid", "1000", "-force-gid", "1000", "-mkfs-time", "0")
    subprocess.run(
        ["mksquashfs", str(tree), str(target), *words, *owner], check=True, timeout=60,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    shutil.rmtree(tree)
    return target


def lab_jail() -> Jail | None:
    """Return the jail that sessions would have here; CLOCHE_JAIL=off leaves it out."""
    wish = os.environ.get(jail_check.VARIABLE, "auto")
    return None if wish == "off" else jail_check.proven(PATHS.cache).jail


def lab_spec(
    image: ImageSet, folder: Path, workspace: Path, scratch: Backing, *, name: str = "lab"
) -> MachineSpec:
    """Return the lab's machine with all its own files in `folder`."""
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return MachineSpec(
        name=name,
        accelerator="tcg",
        kernel=image.vmlinux,
        initrd=folder / "initrd",
        disks=(
            Disk("base", image.base),
            Disk("ws0", workspace),
            Disk("scratch", folder / "scratch.qcow2", "qcow2", False, scratch),
        ),
        runtime=runtime,
        console=folder / "console.log",
        log=folder / "qemu.log",
        resources=RESOURCES,
        jail=lab_jail(),
    )


def template() -> Backing:
    """Return the empty scratch disk."""
    return Backing(scratch_template(PATHS.store, SCRATCH_GIB), "raw")


def put_secrets(
    image: ImageSet, spec: MachineSpec, identity: Identity, profile: str = "standard"
) -> None:
    """Write the initramfs of a session."""
    write_initrd(
        image,
        spec.initrd,
        token=identity.token,
        hostname="lab",
        host_key=identity.host_key_file,
        authorized_keys=identity.authorized_keys,
        now=int(time.time()),
        network=spec.network,
        profile=profile,
    )


@contextlib.asynccontextmanager
async def short_folder() -> AsyncGenerator[Path]:
    """A private folder whose name is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="clab") as name:
        yield Path(name)


@contextlib.asynccontextmanager
async def cold_vm(
    image: ImageSet,
    scratch: Backing | None = None,
    profile: str = "standard",
    *,
    network: bool = False,
) -> AsyncGenerator[LabVM]:
    """Boot a machine from nothing."""
    async with short_folder() as folder:
        identity, below = Identity.new(), scratch or template()
        spec = lab_spec(image, folder, make_workspace(folder), below)
        spec = replace(spec, network=network)
        await create_overlay(folder / "scratch.qcow2", below)
        put_secrets(image, spec, identity, profile)
        machine = await Machine.start(spec)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(machine.stop, 2.0)
            connection = await boot(machine, identity, BOOT_DEADLINE_S)
            vm = LabVM(machine, identity, folder, connection)
            stack.push_async_callback(vm.close)
            yield vm


@contextlib.asynccontextmanager
async def forked_vm(saved: Checkpoint) -> AsyncGenerator[LabVM]:
    """Start a machine from the checkpoint; nothing it does reaches the checkpoint."""
    async with short_folder() as folder:
        identity = Identity.load(saved.folder / "identity.json")
        below = Backing(saved.folder / "scratch.qcow2", "qcow2", saved.template)
        spec = lab_spec(saved.image, folder, saved.folder / "ws.squashfs", below)
        await create_overlay(folder / "scratch.qcow2", below)
        spec = replace(spec, initrd=saved.image.initramfs)
        machine = await checkpoint.restore(spec, saved.folder / "ram")
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(machine.stop, 2.0)
            vm = LabVM(machine, identity, folder, await boot(machine, identity, 30.0))
            stack.push_async_callback(vm.close)
            await (await vm.bulk()).set_clock(time.time_ns())
            yield vm


async def checkpoint_of(image: ImageSet) -> Checkpoint:
    """Return the checkpoint for this image, QEMU and argv; made, or made again, when needed."""
    folder = PATHS.cache / "tests" / await _key(image)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may be at it
        if not intact(folder):
            _remove_old(folder.parent)
            shutil.rmtree(folder, ignore_errors=True)
            await _make(image, folder)
    return _checkpoint_in(folder, image)


def _checkpoint_in(folder: Path, image: ImageSet) -> Checkpoint:
    own = replace(
        image,
        vmlinux=folder / LINKED["vmlinux"],
        initramfs=folder / LINKED["initramfs"],
        base=folder / LINKED["base"],
    )
    return Checkpoint(folder, own, Backing(folder / TEMPLATE, "raw"))


def _remove_old(folder: Path) -> None:
    for old in folder.iterdir():
        if old.is_dir() and old.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(old, ignore_errors=True)


async def _key(image: ImageSet) -> str:
    version = await accel.qemu_version()
    nowhere = Path("/nowhere")
    spec = MachineSpec(
        "lab", "tcg", image.vmlinux, nowhere, (Disk("base", image.base),), nowhere, nowhere,
        nowhere, RESOURCES,
    )  # fmt: skip
    parts = [image.digest, *version, *argv.build(spec), RECIPE]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def _digests(folder: Path) -> dict[str, str]:
    return {part: blake3().update_mmap(folder / part).hexdigest() for part in PARTS}


def intact(folder: Path) -> bool:
    """Whether a kept checkpoint is complete and unharmed."""
    try:
        return bool(json.loads((folder / "digests.json").read_text()) == _digests(folder))
    except (OSError, ValueError):
        return False


def _keep_image(image: ImageSet, folder: Path) -> Checkpoint:
    folder.mkdir(mode=0o700)
    for field_name, name in LINKED.items():
        link_file(getattr(image, field_name), folder / name)
    link_file(template().path, folder / TEMPLATE)
    return _checkpoint_in(folder, image)


async def _make(image: ImageSet, folder: Path) -> None:
    own = _keep_image(image, folder)
    async with cold_vm(own.image, own.template) as vm:
        # every program of the tests' scripts is read once, so that forks find it in memory
        await vm.sh("git --version; python3 -c 'import os'; ls -la /workspace; find . | head")
        await (await vm.bulk()).freeze()
        await (await vm.bulk()).thaw()
        vm.ssh.close()
        await vm.ssh.wait_closed()
        await (await vm.bulk()).close()
        await asyncio.sleep(0.5)  # the guest notices that its host is away
        vm.identity.save(vm.folder / "identity.json")
        await checkpoint.save(vm.machine, vm.folder / "ram")
        await vm.machine.stop()
        for part in ("ram", "scratch.qcow2", "ws.squashfs", "identity.json"):
            shutil.move(vm.folder / part, folder / part)
    (folder / "digests.json").write_text(json.dumps(_digests(folder)))


def link_file(source: Path, target: Path) -> None:
    """Keep a file under another name: a link where the file system is the same, else a copy."""
    try:
        os.link(source, target)
    except OSError:
        subprocess.run(["cp", "--sparse=always", str(source), str(target)], check=True, timeout=60)
