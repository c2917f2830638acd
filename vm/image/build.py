"""Build an image: kernel, modules, toolkit initramfs and base system, placed in one rename."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from vm.errors import BuildFailed, ImageMissing
from vm.image import guest, packages, store, toolkit
from vm.image.modules import module_closure
from vm.image.tools import Watch, find, one_sentence, run, spawn, sync_file
from vm.image.vmlinux import extract_vmlinux

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import IO

    from vm.image.packages import Bootstrap
    from vm.image.store import ImageSet

Progress = Callable[[str, float], None]
"""Called with what is being done (a short phrase) and the share done so far, 0.0 to 1.0."""

_BUILDING = ".building-"
_SQUASHFS = (
    *("-tar", "-noappend", "-no-progress", "-quiet", "-comp", "zstd", "-Xcompression-level", "3"),
    *("-root-mode", "755", "-root-uid", "0", "-root-gid", "0"),
)
_DECIDES = ("cpio.py", "modules.py", "packages.py", "toolkit.py", "vmlinux.py")
"""The sources whose change makes another image."""
_CHATTER = ("running --", "using ", "automatically ", "skipping ", "chroot architecture ",
            "done", "removing ", "success ")  # fmt: skip
"""Beginnings of mmdebstrap's messages that tell a user nothing."""
_KEPT = ("boot/", "lib/", "lib64/", "bin/", "usr/lib/", "usr/lib64/", "usr/bin/", "usr/sbin/")
"""What is unpacked of the toolkit's packages; documentation and the like is not."""


def build_image(
    store_folder: Path, *, name: str = "base", progress: Progress, force: bool = False
) -> ImageSet:
    """Build the image called `name` into the store, or return it at once when it is there.

    An image that was made from other sources of ours is built anew, its base system only where
    that would change or with `force`. One builder at a time works on a store; a second one waits
    for it. An interrupted build leaves nothing behind that a later one would take for an image.

    Raises HostLacks (a program or permission is missing; the hint installs it) and BuildFailed (the
    build itself failed, or the disk is full).
    """
    folder = store.image_folder(store_folder, name)
    with one_sentence("Building the image"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder.parent, progress):
            older = None if force else _older(folder)
            if older and older.toolkit_source == toolkit_source():
                return store.image_set(folder.resolve(), older)
            packages.require_bootstrap()
            init = guest.guest_init(store_folder)
            with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder.parent) as scratch:
                fresh = _Build(name, Path(scratch), init, progress)
                if older and older.base_source == base_source():
                    fresh.take_base(folder, older)
                finished = fresh.run()
                _place(finished, folder)
    progress("image ready", 1.0)
    return store.find_image(store_folder, name)


def toolkit_source() -> str:
    """Return blake3 (hex) of all that decides what an image is besides the distribution."""
    digest = blake3((guest.source_hash() + base_source()).encode())
    for name in _DECIDES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


def base_source() -> str:
    """Return blake3 (hex) of what decides the base system besides the distribution."""
    return blake3(repr((packages.BASE_OPTIONS, _SQUASHFS)).encode()).hexdigest()


def _older(folder: Path) -> store.ImageRecord | None:
    """Return the record of the image that is there, if it is whole."""
    try:
        return store.read_record(folder)
    except ImageMissing:
        return None


@contextlib.contextmanager
def _only_builder(images: Path, progress: Progress) -> Generator[None]:
    """Hold the store's build lock and clear away what killed builds and removals left."""
    with (images / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build", 0.0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for prefix in (_BUILDING, store.REMOVED):
            for stale in images.glob(f"{prefix}*"):
                shutil.rmtree(stale)
        yield


def _place(fresh: Path, folder: Path) -> None:
    """Put a finished image beside older ones, then turn the name to it in one step."""
    for path in fresh.iterdir():
        sync_file(path)
    digest = store.read_record(fresh).digest
    home = folder.parent / store.BUILT / digest
    home.parent.mkdir(exist_ok=True)
    if home.exists():  # the same bytes, perhaps damaged since
        os.rename(home, fresh.with_name("old"))
    os.rename(fresh, home)
    pointer = fresh.with_name("pointer")
    pointer.symlink_to(Path(store.BUILT) / digest, target_is_directory=True)
    if folder.is_dir() and not folder.is_symlink():
        os.rename(folder, fresh.with_name("older"))
    os.replace(pointer, folder)


class _Build:
    """One build in its own folder; `run` returns the finished image's folder."""

    def __init__(self, name: str, scratch: Path, init: bytes, progress: Progress) -> None:
        self._name = name
        self._scratch = scratch
        self._init = init
        self._progress = progress
        self._out = scratch / "image"
        self._tree = scratch / "tree"
        self._base_packages: list[str] = []
        self._out.mkdir()
        self._tree.mkdir()

    def take_base(self, folder: Path, record: store.ImageRecord) -> None:
        """Take over an older image's base system, which no file of ours would make different."""
        os.link(folder / store.BASE, self._out / store.BASE)
        self._base_packages = record.base_packages

    def run(self) -> Path:
        tools = self._unpack()
        release = self._kernel()
        self._toolkit(release)
        base = self._base_packages or self._base()
        self._record(release, tools, base)
        return self._out

    def _stages(self, start: float, width: float, steps: int) -> Callable[[str], None]:
        """Return a listener that turns mmdebstrap's messages into progress."""
        seen = 0

        def said(text: str) -> None:
            nonlocal seen
            if text.startswith(_CHATTER):
                return
            seen = min(seen + 1, steps)
            self._progress(text, start + width * seen / steps)

        return said

    def _unpack(self) -> list[str]:
        self._progress("fetching kernel and tools", 0.02)
        source = packages.unpack_toolkit(self._scratch, self._stages(0.02, 0.16, 5))
        with _closing(source):
            assert source.child.stdout is not None
            with contextlib.suppress(tarfile.ReadError):  # a failed run ends early and says why
                _unpack_kept(source.child.stdout, self._tree)
            source.finish("Fetching kernel and tools")
        return source.versions

    def _kernel(self) -> str:
        self._progress("unpacking the kernel", 0.2)
        found = sorted((self._tree / "boot").glob("vmlinuz-*"))
        if not found:
            raise BuildFailed(f"The package {packages.KERNEL} brought no kernel.")
        image = found[-1].read_bytes()
        (self._out / store.KERNEL).write_bytes(image)
        (self._out / store.VMLINUX).write_bytes(extract_vmlinux(image))
        return found[-1].name.removeprefix("vmlinuz-")

    def _toolkit(self, release: str) -> None:
        self._progress("assembling the toolkit", 0.25)
        folders = [self._tree / top / "modules" / release for top in ("usr/lib", "lib")]
        modules = module_closure(next(path for path in folders if path.is_dir()))
        archive = toolkit.toolkit_cpio(self._tree, self._init, modules)
        (self._out / store.INITRAMFS).write_bytes(archive)

    def _base(self) -> list[str]:
        self._progress("installing the base system", 0.3)
        target = self._out / store.BASE
        source = packages.install_base(self._scratch, self._stages(0.3, 0.6, 7))
        with _closing(source):
            assert source.child.stdout is not None
            squash = spawn(["mksquashfs", "-", str(target), *_SQUASHFS],
                           stdin=source.child.stdout.fileno())  # fmt: skip
            watch = Watch(squash, packages.BUILD_SECONDS)
            try:
                source.child.stdout.close()
                source.finish("Installing the base system")
                self._progress("compressing the base system", 0.92)
                watch.finish("mksquashfs")
            finally:
                watch.close()
        return source.versions

    def _record(self, release: str, tools: list[str], base: list[str]) -> None:
        self._progress("recording digests", 0.97)
        files = store.record_files(self._out)
        record = store.ImageRecord(
            format=store.FORMAT,
            name=self._name,
            digest=store.set_digest(files),
            kernel_release=release,
            files=files,
            toolkit_source=toolkit_source(),
            base_source=base_source(),
            suite=packages.host_sources().suite,
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            tools=_tool_versions(),
            toolkit_packages=tools,
            base_packages=base,
        )
        encoded = msgspec.json.format(msgspec.json.encode(record), indent=1)
        (self._out / store.RECORD).write_bytes(encoded)


@contextlib.contextmanager
def _closing(source: Bootstrap) -> Generator[None]:
    try:
        yield
    finally:
        source.close()


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


def _tool_versions() -> dict[str, str]:
    versions = {"mmdebstrap": ["--version"], "mksquashfs": ["-version"], "musl-gcc": ["--version"]}
    found = {name: options for name, options in versions.items() if find(name)}
    return {
        name: run([name, *options], what=name, seconds=30).decode(errors="replace").split("\n")[0]
        for name, options in found.items()
    }
