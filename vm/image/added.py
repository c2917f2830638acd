"""An image that is another one with one folder more, which a guest made and handed over as a tar.

The tar is read by the rules for layers of container images and holds that folder alone: names that
lead out of it, devices and privileges are refused or dropped before anything is written. Then it is
put behind the files of the image below, whose bytes stay as they are: that takes seconds, where the
image below took minutes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vm.errors import ImageRefused
from vm.image import build, store
from vm.image.build import Installed
from vm.image.oci.limits import Budget
from vm.image.oci.tarread import LayerReader
from vm.image.oci.tree import Tree
from vm.image.tools import require, run
from vm.install import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vm.image.oci.tree import Node
    from vm.image.progress import Progress
    from vm.image.recipes import Recipe
    from vm.image.store import ImageSet

SECONDS: Final = 1800.0
MAX_BYTES: Final = 8 << 30
"""What all files of the folder may hold together."""

MAX_ARCHIVE: Final = MAX_BYTES + (1 << 30)
"""Bytes of the tar, whose heads and filling are about 1.5 KiB for each of `Budget.entries`."""

_APPEND: Final = (
    *("-no-progress", "-quiet", "-no-xattrs", "-exit-on-error", "-no-recovery"),
    *("-root-mode", "755", "-force-uid", "0", "-force-gid", "0"),
)
"""All belongs to root, as a distribution's programs do; the root folder is one of the files."""


def add(
    store_folder: Path, recipe: Recipe, below: ImageSet, archive: Path, progress: Progress
) -> ImageSet:
    """Build the image of `recipe`: `below` with the folder that is in `archive`, a tar.

    Raises ImageRefused for a tar that no guest of good will makes, HostLacks, BuildFailed, and
    VMError where an imported image has the name.
    """
    require("mksquashfs")
    with build.building(store_folder, progress):
        build.refuse_imported(store.image_folder(store_folder, recipe.name))
        return build.make_image(store_folder, _Added(recipe, below, archive), progress, None)


@dataclass(frozen=True, slots=True)
class _Added:
    """The base system of such an image."""

    recipe: Recipe
    below: ImageSet
    archive: Path

    @property
    def name(self) -> str:
        return self.recipe.name

    def source(self) -> str:
        return build.base_source(self.recipe)

    def kept(self, older: Installed) -> Installed:
        return older

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            progress("unpacking the programs", 0.8)
            unpack(self.archive, Path(folder))
            progress("packing the programs", 0.85)
            shutil.copyfile(self.below.base, target)
            run(["mksquashfs", folder, str(target), *_APPEND], what="mksquashfs", seconds=SECONDS)
        packages = store.read_record(self.below.base.parent).base_packages
        return Installed(packages, programs=True)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of a tar into an empty folder that nobody else can reach.

    Raises ImageRefused, above all where anything but `PROGRAMS` is in it.
    """
    budget = Budget(total=MAX_BYTES)
    tree = Tree(budget)
    with archive.open("rb") as file:
        tree.apply(LayerReader(file, budget).members())
    top = {name: node.kind for name, node in tree.root.children.items()}
    if top != {os.fsencode(PROGRAMS.strip("/")): "folder"}:
        raise ImageRefused(f"The programs are refused: they are not in {PROGRAMS} alone.")
    files: dict[int, list[tuple[bytes, Node]]] = {}
    links: list[tuple[bytes, Node]] = []
    for path, node in tree.paths():
        place = os.fsencode(folder) + b"/" + path
        if node.kind == "folder":
            os.mkdir(place, 0o755)
        elif node.kind == "link":
            links.append((place, node))
        elif node.origin is not None:
            files.setdefault(node.origin[1], []).append((place, node))
    _write_files(archive, files, budget)
    for place, node in links:  # last, so that none is ever followed
        os.symlink(node.target, place)


def _write_files(archive: Path, files: dict[int, list[tuple[bytes, Node]]], budget: Budget) -> None:
    """Write contents by the number of their member; further names of a file are hard links."""
    with archive.open("rb") as file:
        reader = LayerReader(file, budget)
        for member in reader.members():
            places = files.pop(member.number, [])
            for place, node in places[:1]:
                _write_file(place, node.mode, reader.content(), budget)
            for place, _ in places[1:]:
                os.link(places[0][0], place)


def _write_file(place: bytes, mode: int, content: Iterator[bytes], budget: Budget) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, 0o600), "wb") as out:
        for piece in content:
            budget.spend_bytes(len(piece))
            out.write(piece)
        os.fchmod(out.fileno(), mode & 0o755 | 0o644)
