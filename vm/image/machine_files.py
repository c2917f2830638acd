"""Kernel and toolkit out of the distribution's packages: the same for every image."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vm.errors import BuildFailed
from vm.image import guest, packages, store, toolkit
from vm.image.modules import module_closure
from vm.image.progress import stages
from vm.image.vmlinux import extract_vmlinux

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from vm.image.progress import Progress

_KEPT = ("boot/", "lib/", "lib64/", "bin/", "usr/lib/", "usr/lib64/", "usr/bin/", "usr/sbin/")
"""What is unpacked of the toolkit's packages; documentation and the like is not."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is remembered of kernel and toolkit."""

    kernel_release: str
    packages: list[str] = field(default_factory=list[str])


def make(out: Path, scratch: Path, store_folder: Path, progress: Progress) -> Machine:
    """Make kernel and toolkit in the folder `out`; progress up to 0.3.

    Raises HostLacks, BuildFailed.
    """
    packages.require_bootstrap()
    init = guest.guest_init(store_folder)
    tree = scratch / "tree"
    tree.mkdir()
    versions = _unpack(tree, scratch, progress)
    progress("unpacking the kernel", 0.2)
    release = _kernel(tree, out)
    progress("assembling the toolkit", 0.25)
    folders = [tree / top / "modules" / release for top in ("usr/lib", "lib")]
    modules = module_closure(next(path for path in folders if path.is_dir()))
    (out / store.INITRAMFS).write_bytes(toolkit.toolkit_cpio(tree, init, modules))
    return Machine(release, versions)


def _unpack(tree: Path, scratch: Path, progress: Progress) -> list[str]:
    progress("fetching kernel and tools", 0.02)
    source = packages.unpack_toolkit(scratch, stages(progress, 0.02, 0.16, 5))
    with contextlib.closing(source):
        assert source.child.stdout is not None
        with contextlib.suppress(tarfile.ReadError):  # a failed run ends early and says why
            _unpack_kept(source.child.stdout, tree)
        source.finish("Fetching kernel and tools")
    return source.versions


def _kernel(tree: Path, out: Path) -> str:
    found = sorted((tree / "boot").glob("vmlinuz-*"))
    if not found:
        raise BuildFailed(f"The package {packages.KERNEL} brought no kernel.")
    image = found[-1].read_bytes()
    (out / store.KERNEL).write_bytes(image)
    (out / store.VMLINUX).write_bytes(extract_vmlinux(image))
    return found[-1].name.removeprefix("vmlinuz-")


def _unpack_kept(stream: IO[bytes], tree: Path) -> None:
    """Unpack what toolkit and kernel are taken from; the rest of the stream is read and dropped."""
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if name.startswith(_KEPT) and ".." not in name.split("/"):
                _unpack_member(archive, member, tree / name)
    while stream.read(1 << 20):
        pass


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write one member; links that leave the tree (absolute ones) are of no use here."""
    if not member.isdir():
        path.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.issym() and not member.linkname.startswith("/"):
        path.symlink_to(member.linkname)
    elif member.isreg() and (content := archive.extractfile(member)):
        with path.open("wb") as out:
            shutil.copyfileobj(content, out, 1 << 20)
