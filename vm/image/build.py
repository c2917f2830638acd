"""Make an image: kernel, modules, toolkit initramfs and base system, placed in one rename.

The toolkit is the same for every image, so it is taken from another one of the store where that was
made of today's sources. What the base system is made of is for a `BaseSystem` to know: packages
(`RecipeBase`), or an image for containers (`vm.image.imports`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from blake3 import blake3

from vm.errors import BuildFailed, ImageMissing, VMError
from vm.image import guest, machine_files, packages, store
from vm.image.machine_files import Machine
from vm.image.progress import Progress, stages
from vm.image.recipes import RECIPES
from vm.image.tools import Watch, find, one_sentence, run, spawn, sync_file
from vm.install import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Generator

    from vm.image.recipes import Recipe
    from vm.image.store import ImageSet

_BUILDING = ".building-"
_SQUASHFS = (
    *("-tar", "-noappend", "-no-progress", "-quiet", "-comp", "zstd", "-Xcompression-level", "3"),
    *("-root-mode", "755", "-root-uid", "0", "-root-gid", "0"),
)
_DECIDES = ("cpio.py", "modules.py", "packages.py", "toolkit.py", "vmlinux.py")
"""The sources whose change makes another toolkit."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What is remembered of how a base system came to be."""

    packages: list[str] = field(default_factory=list[str])
    imported: store.Imported | None = None
    programs: bool = False


class BaseSystem(Protocol):
    """Where an image's base system comes from."""

    @property
    def name(self) -> str:
        """What the image is called."""
        ...

    def source(self) -> str:
        """Return the digest of what decides it; the same one means that it need not be made."""
        ...

    def kept(self, older: Installed) -> Installed:
        """Return what is remembered where an older base system is taken over."""
        ...

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        """Make it as the squashfs `target`; progress from 0.3 on. Raises VMError."""
        ...


def build_image(
    store_folder: Path,
    *,
    recipe: Recipe = RECIPES["base"],
    progress: Progress,
    force: bool = False,
) -> ImageSet:
    """Build the image of a recipe into the store, or return it at once when it is there.

    An image that was made from other sources of ours is built anew, its base system only where
    that would change or with `force`. One builder at a time works on a store; a second one waits
    for it. An interrupted build leaves nothing behind that a later one would take for an image.

    Raises HostLacks (a program or permission is missing; the hint installs it) and BuildFailed (the
    build itself failed, or the disk is full). VMError for a name that an imported image has.
    """
    with building(store_folder, progress):
        folder = store.image_folder(store_folder, recipe.name)
        older = None if force else older_record(folder)
        refuse_imported(folder)
        base = RecipeBase(recipe)
        if older and is_current(older) and older.base_source == base.source():
            return store.image_set(folder.resolve(), older)
        packages.require_bootstrap()
        return make_image(store_folder, base, progress, older, machine_anew=force)


def refuse_imported(folder: Path) -> None:
    """Raise VMError where a recipe would take the place of an image from elsewhere."""
    record = older_record(folder)
    if record is not None and record.imported is not None:
        raise VMError(
            f"The image {record.name} was imported, and a recipe has the same name.",
            f"Remove it first: cloche image rm {record.name}",
        )


def refresh_image(store_folder: Path, name: str, progress: Progress) -> ImageSet:
    """Give an image today's toolkit and keep its base system.

    Raises ImageMissing, and as `build_image` does.
    """
    with building(store_folder, progress):
        folder = store.image_folder(store_folder, name)
        older = store.read_record(folder)
        if is_current(older):
            return store.image_set(folder.resolve(), older)
        return make_image(store_folder, _KeptBase(name, older.base_source), progress, older)


def make_image(
    store_folder: Path,
    base: BaseSystem,
    progress: Progress,
    older: store.ImageRecord | None,
    *,
    machine_anew: bool = False,
) -> ImageSet:
    """Make an image and place it under its base system's name; `building` must be held.

    `older` is the image of that name whose base system may be taken over. With `machine_anew`
    kernel and toolkit are fetched even where another image has them, for newer packages.
    """
    folder = store.image_folder(store_folder, base.name)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder.parent) as scratch:
        fresh = _Build(base, Path(scratch), progress)
        if not machine_anew:
            fresh.take_machine(store_folder)
        if older and older.base_source == base.source():
            fresh.take_base(folder, older)
        _place(fresh.run(store_folder), folder)
    progress("image ready", 1.0)
    return store.find_image(store_folder, base.name)


@contextlib.contextmanager
def building(store_folder: Path, progress: Progress) -> Generator[None]:
    """Hold the store's build lock; what fails of the file system is told as a VMError."""
    images = store_folder / "images"
    with one_sentence("Making the image"):
        images.mkdir(parents=True, exist_ok=True)
        with _only_builder(images, progress):
            yield


def toolkit_source() -> str:
    """Return blake3 (hex) of all that decides kernel and toolkit besides the distribution."""
    digest = blake3(guest.source_hash().encode())
    for name in _DECIDES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


def base_source(recipe: Recipe = RECIPES["base"]) -> str:
    """Return blake3 (hex) of what decides a base system besides what registries hold that day."""
    decides: object = (packages.base_options(recipe), _SQUASHFS)
    if recipe.install:
        decides = (base_source(RECIPES[recipe.below]), recipe.command, PROGRAMS)
    return blake3(repr(decides).encode()).hexdigest()


def is_current(record: store.ImageRecord) -> bool:
    """Tell whether an image's kernel and toolkit are what would be made today."""
    return record.toolkit_source == toolkit_source()


def older_record(folder: Path) -> store.ImageRecord | None:
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


@dataclass(frozen=True, slots=True)
class RecipeBase:
    """A base system out of the distribution's packages."""

    recipe: Recipe

    @property
    def name(self) -> str:
        """The image's name."""
        return self.recipe.name

    def source(self) -> str:
        """Return the digest of what decides it."""
        return base_source(self.recipe)

    def kept(self, older: Installed) -> Installed:
        """Return what is known of the packages that were taken over."""
        return older

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        """Install the packages into a squashfs."""
        progress("installing the base system", 0.3)
        said = stages(progress, 0.3, 0.6, 7)
        source = packages.install_base(self.recipe, scratch, said)
        with contextlib.closing(source):
            assert source.child.stdout is not None
            squash = spawn(["mksquashfs", "-", str(target), *_SQUASHFS],
                           stdin=source.child.stdout.fileno())  # fmt: skip
            watch = Watch(squash, packages.BUILD_SECONDS)
            try:
                source.child.stdout.close()
                source.finish("Installing the base system")
                progress("compressing the base system", 0.92)
                watch.finish("mksquashfs")
            finally:
                watch.close()
        return Installed(source.versions)


@dataclass(frozen=True, slots=True)
class _KeptBase:
    """Whatever base system an image has, kept as it is."""

    name: str
    digest: str

    def source(self) -> str:
        return self.digest

    def kept(self, older: Installed) -> Installed:
        return older

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        raise BuildFailed(f"The image {self.name} lost its base system meanwhile.")


class _Build:
    """One build in its own folder; `run` returns the finished image's folder."""

    def __init__(self, base: BaseSystem, scratch: Path, progress: Progress) -> None:
        self._base = base
        self._scratch = scratch
        self._progress = progress
        self._out = scratch / "image"
        self._machine: Machine | None = None
        self._installed: Installed | None = None
        self._out.mkdir()

    def take_machine(self, store_folder: Path) -> None:
        """Take over kernel and toolkit of an image that was made of today's sources."""
        for name in store.names(store_folder):
            folder = store.image_folder(store_folder, name)
            record = older_record(folder)
            if record is not None and is_current(record):
                for file in (store.KERNEL, store.VMLINUX, store.INITRAMFS):
                    os.link(folder.resolve() / file, self._out / file)
                self._machine = Machine(record.kernel_release, record.toolkit_packages)
                return

    def take_base(self, folder: Path, record: store.ImageRecord) -> None:
        """Take over an older image's base system, which no file of ours would make different."""
        os.link(folder / store.BASE, self._out / store.BASE)
        self._installed = self._base.kept(
            Installed(record.base_packages, record.imported, record.programs)
        )

    def run(self, store_folder: Path) -> Path:
        machine = self._machine or machine_files.make(
            self._out, self._scratch, store_folder, self._progress
        )
        installed = self._installed or self._base.install(
            self._out / store.BASE, self._scratch, self._progress
        )
        self._record(machine, installed)
        return self._out

    def _record(self, machine: Machine, installed: Installed) -> None:
        self._progress("recording digests", 0.97)
        files = store.record_files(self._out)
        record = store.ImageRecord(
            format=store.FORMAT,
            name=self._base.name,
            digest=store.set_digest(files, self._base.name, installed.imported),
            kernel_release=machine.kernel_release,
            files=files,
            toolkit_source=toolkit_source(),
            base_source=self._base.source(),
            suite="" if installed.imported else packages.host_sources().suite,
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            tools=_tool_versions(),
            toolkit_packages=machine.packages,
            base_packages=installed.packages,
            imported=installed.imported,
            programs=installed.programs,
        )
        encoded = msgspec.json.format(msgspec.json.encode(record), indent=1)
        (self._out / store.RECORD).write_bytes(encoded)


def _tool_versions() -> dict[str, str]:
    versions = {"mmdebstrap": ["--version"], "mksquashfs": ["-version"], "musl-gcc": ["--version"]}
    found = {name: options for name, options in versions.items() if find(name)}
    return {
        name: run([name, *options], what=name, seconds=30).decode(errors="replace").split("\n")[0]
        for name, options in found.items()
    }
