"""From a session's record to a machine: snapshot, scratch disk, keys, initrd and the spec."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from app.egress.beginning import authorities_of
from app.errors import AppError
from app.files import write_atomic
from app.keeper.threads import in_thread
from app.paths import private_folder
from app.records import IMAGE_DIGEST
from app.wire_text import text_path
from snapshot.capture_report import IMAGE
from vm.errors import ImageMissing
from vm.image import find_built, find_image, scratch_template, write_initrd
from vm.machine import accel, disks, jail_check
from vm.machine.identity import Identity
from vm.machine.spec import Backing, Disk, MachineSpec, Resources
from vm.steps import reached

if TYPE_CHECKING:
    from app.paths import Paths
    from app.records import SessionRecord
    from vm.image import ImageSet
    from vm.machine.jail import Jail
    from vm.machine.spec import Accelerator

IDENTITY: Final = "identity.json"
SCRATCH: Final = "scratch.qcow2"
INITRD: Final = "initrd"
SCRATCH_ID: Final = "scratch.id"
CONSOLE: Final = "console.log"

HOSTNAME: Final = "cloche"

EXT4_ID: Final = 1024 + 0x68
"""Where an ext4 file system has its 16 bytes of identity (s_uuid in the kernel's ext4 layout)."""


@dataclass(frozen=True, slots=True)
class Machinery:
    """Everything that a boot needs beside the spec itself."""

    spec: MachineSpec
    identity: Identity
    notice: str


class Workshop:
    """Makes and remakes the files of one session that a machine boots from."""

    def __init__(self, paths: Paths, record: SessionRecord, folder: Path) -> None:
        self._paths = paths
        self._record = record
        self._folder = folder

    async def prepare(self) -> tuple[str, ...]:
        """Take the snapshot and make scratch disk and keys; what a kill left half done goes first.

        Returns sentences for the user: what was withheld, what the history still shows.
        Raises the errors of `snapshot` and `vm`; nothing of it is in the workspace.
        """
        image = find_image(self._paths.store, self._record.image)
        for name in (IDENTITY, SCRATCH, INITRD, IMAGE):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / name).unlink()
        notices = await in_thread(self._snapshot)
        reached("start.snapshot")
        backing = await in_thread(self._backing)
        write_atomic(self._folder / SCRATCH_ID, f"{_ext4_id(backing.path)}\n".encode())
        await disks.create_overlay(self._folder / SCRATCH, backing)
        reached("start.disk")
        Identity.new().save(self._folder / IDENTITY)
        write_atomic(self._folder / IMAGE_DIGEST, f"{image.digest}\n".encode())
        return notices

    def _snapshot(self) -> tuple[str, ...]:
        from snapshot.capture import CaptureOptions, take_snapshot

        if not self._record.workspace:
            empty = private_folder(self._folder / "empty")
            return take_snapshot(empty, self._folder, CaptureOptions()).notices
        limits = self._record.limits
        options = CaptureOptions(
            own_folders=(self._paths.state, self._paths.data, self._paths.runtime),
            exclude=limits.exclude,
            git="none" if limits.git == "none" else "full",
        )
        workspace = Path(text_path(self._record.workspace))
        return take_snapshot(workspace, self._folder, options).notices

    def _backing(self) -> Backing:
        template = scratch_template(self._paths.store, self._record.limits.scratch)
        return Backing(template, "raw")

    async def jail(self) -> jail_check.Choice:
        """Return the jail for QEMU. Raises NoJail when one is demanded and cannot be made."""
        self._paths.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        return await jail_check.choose(self._record.limits.jail, self._paths.cache)

    async def machinery(self, jail: Jail | None = None, *, network: bool = False) -> Machinery:
        """Return what to boot now: a fresh initrd (it bears the time) and an accelerator."""
        image = self._image()
        identity = Identity.load(self._folder / IDENTITY)
        await in_thread(partial(self._write_initrd, image, identity, network))
        choice = await self._accelerator(image, jail)
        spec = replace(
            self._spec(choice.accelerator),
            kernel=image.vmlinux,
            disks=self._disks(image),
            network=network,
            jail=jail,
        )
        return Machinery(spec, identity, choice.notice)

    async def adopted(self, accelerator: str) -> Machinery:
        """Return what describes a machine that already runs; its image may be gone by now."""
        spec = self._spec(cast("Accelerator", accelerator))
        return Machinery(spec, Identity.load(self._folder / IDENTITY), "")

    def _image(self) -> ImageSet:
        """Return the image that the session was made on, built anew since or not."""
        digest = (self._folder / IMAGE_DIGEST).read_text().strip()
        try:
            return find_built(self._paths.store, self._record.image, digest)
        except ImageMissing as error:
            session = self._record.id
            raise AppError(
                "image-gone",
                f"The image that the session {session} was made on is gone or damaged.",
                f"Take its changes home (cloche merge {session}), then: cloche rm {session}",
            ) from error

    def _check_template(self, template: Path) -> None:
        """Refuse to put the session's disk on another empty disk than it grew from."""
        grown_from = (self._folder / SCRATCH_ID).read_text().strip()
        if _ext4_id(template) != grown_from:
            session = self._record.id
            raise AppError(
                "disk-gone",
                f"{template}, from which the session's disk grew, was removed and made anew.",
                f"Take its changes home (cloche merge {session}), then: cloche rm {session}",
            )

    def _write_initrd(self, image: ImageSet, identity: Identity, network: bool) -> None:
        write_initrd(
            image,
            self._folder / INITRD,
            token=identity.token,
            hostname=HOSTNAME,
            host_key=identity.host_key_file,
            authorized_keys=identity.authorized_keys,
            now=int(time.time()),
            network=network,
            authorities=authorities_of(self._folder) if network else b"",
            profile=self._record.limits.guest,
        )

    async def _accelerator(self, image: ImageSet, jail: Jail | None) -> accel.Choice:
        self._paths.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        wish = self._record.limits.accel
        return await accel.choose(image.vmlinux, self._paths.cache, wish=wish, place=jail)

    def _spec(self, accelerator: Accelerator) -> MachineSpec:
        """Return what every machine of this session has, without what it boots from."""
        sockets = self._paths.sockets(self._record.id)
        private_folder(sockets.parent)
        private_folder(sockets)
        runtime = self._paths.machine_sockets(self._record.id)
        runtime.mkdir(mode=0o700, exist_ok=True)  # root's jail makes it its own
        limits = self._record.limits
        return MachineSpec(
            name=self._record.id,
            accelerator=accelerator,
            kernel=Path(),
            initrd=self._folder / INITRD,
            disks=(),
            runtime=runtime,
            console=self._folder / CONSOLE,
            log=self._folder / "qemu.log",
            resources=Resources(limits.vcpus, limits.memory),
        )

    def _disks(self, image: ImageSet) -> tuple[Disk, ...]:
        template = scratch_template(self._paths.store, self._record.limits.scratch)
        self._check_template(template)
        return (
            Disk("base", image.base),
            Disk("ws0", self._folder / IMAGE),
            Disk("scratch", self._folder / SCRATCH, "qcow2", False, Backing(template, "raw")),
        )


def _ext4_id(disk: Path) -> str:
    with disk.open("rb") as file:
        file.seek(EXT4_ID)
        return file.read(16).hex()
