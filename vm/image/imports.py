"""Images for containers as images of Cloche's: fetched, checked, merged and packed.

Nothing of such an image runs or is unpacked here. Its base system becomes one squashfs; kernel and
toolkit are Cloche's own, so the image needs neither an init nor an SSH server.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from blake3 import blake3

from vm.errors import ImageMissing, ImageRefused, VMError
from vm.image import build, store
from vm.image.build import Installed
from vm.image.oci import furnish, layout, packing, skopeo
from vm.image.oci.documents import Index, choose, decode, host_platform, is_index
from vm.image.oci.limits import Budget
from vm.image.oci.provenance import provenance
from vm.image.oci.reference import parse
from vm.image.oci.skopeo import DIRECT
from vm.image.oci.tarread import LayerReader
from vm.image.oci.tree import Tree
from vm.image.recipes import RECIPES
from vm.image.tools import require

if TYPE_CHECKING:
    from collections.abc import Collection

    from vm.image.oci.documents import Platform
    from vm.image.oci.furnish import Furnished
    from vm.image.oci.layout import Image
    from vm.image.oci.reference import Reference
    from vm.image.oci.skopeo import Way
    from vm.image.progress import Progress
    from vm.image.store import ImageRecord, ImageSet, Imported

Pull = Literal["always", "background", "if-not-present", "never"]
PULLS: Final[tuple[Pull, ...]] = ("always", "background", "if-not-present", "never")
"""When an image is fetched: whenever it moved on, the same but later, only at first, not at all."""

_NESTED: Final = 4
"""Indexes that may lead to each other."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What shall be imported, under which name, and how its registry is spoken to."""

    reference: Reference
    name: str
    way: Way = DIRECT
    force: bool = False
    """Fetch and pack it even where it is there."""


def wish(
    text: str, name: str = "", *, way: Way = DIRECT, force: bool = False,
    recipes: Collection[str] = RECIPES.keys(),
) -> Wish:  # fmt: skip
    """Return what a reference and a name ask for. Raises VMError for what cannot be."""
    reference = parse(text)
    chosen = name or reference.name()
    if chosen in recipes:
        raise VMError(
            f"The name {chosen} belongs to an image that is built here.",
            f"Choose another: cloche image import {reference} --name NAME",
        )
    return Wish(reference, chosen, way, force)


def present(store_folder: Path, wanted: Wish) -> ImageRecord | None:
    """Return the image that was imported by this name before, None where there is none.

    Raises VMError when the name means an image from elsewhere.
    """
    record = build.older_record(store.image_folder(store_folder, wanted.name))
    if record is None:
        return None
    found = record.imported
    if found is None or found.reference != str(wanted.reference):
        whence = found.reference if found else "packages"
        raise VMError(
            f"There is an image called {wanted.name} already, from {whence}.",
            f"Choose another name: cloche image import {wanted.reference} --name NAME",
        )
    return record


def if_present(store_folder: Path, wanted: Wish) -> ImageSet:
    """Return the image without looking further. Raises ImageMissing when it is not there."""
    if present(store_folder, wanted) is None:
        raise ImageMissing(
            f"The image {wanted.name} was not imported, and it shall not be fetched.",
            f"Fetch it: cloche image import {wanted.reference}",
        )
    return store.find_image(store_folder, wanted.name)


def meaning(reference: Reference, way: Way, seconds: float = skopeo.ASK_SECONDS) -> str:
    """Return the digest that a reference means now, `sha256:…`; empty for what has none.

    Raises FetchFailed.
    """
    if reference.digest:
        return reference.digest
    if reference.kind == "docker":
        raw = skopeo.manifest(reference, way, seconds)
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"
    if reference.kind == "oci":
        return layout.tagged(Path(reference.place), reference.tag).digest
    return ""


def import_image(store_folder: Path, wanted: Wish, progress: Progress) -> ImageSet:
    """Bring an image into the store, or what is missing of it, and return it.

    What is there and still means the same is not fetched again. Raises FetchFailed, ImageRefused,
    HostLacks, BuildFailed; VMError for a name that is taken.
    """
    require("mksquashfs")
    with build.building(store_folder, progress):
        older = present(store_folder, wanted)
        progress("asking for the image", 0.0)
        digest = meaning(wanted.reference, wanted.way)
        if older is not None and not wanted.force and _unchanged(older, digest):
            if build.is_current(older):
                folder = store.image_folder(store_folder, wanted.name)
                return store.image_set(folder.resolve(), older)
            return build.make_image(store_folder, _Kept(wanted.name, older), progress, older)
        base = OciBase(wanted, digest)
        return build.make_image(store_folder, base, progress, None)


def _unchanged(older: ImageRecord, digest: str) -> bool:
    found = older.imported
    assert found is not None
    return digest == found.digest and older.base_source == import_source(found.config)


def import_source(config: str) -> str:
    """Return blake3 (hex) of what decides an imported base system: its config, and our code."""
    return blake3(repr((config, furnish.VERSION, packing.OPTIONS)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Kept:
    """An imported base system that is taken over as it is."""

    name: str
    record: ImageRecord

    def source(self) -> str:
        return self.record.base_source

    def kept(self, older: Installed) -> Installed:
        return older

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        raise ImageMissing(
            f"The image {self.name} lost its base system.", store.remedy(self.record)
        )


class OciBase:
    """A base system out of an image for containers."""

    def __init__(self, wanted: Wish, digest: str) -> None:
        """`digest` is what the reference means; empty where only the fetched image can say it."""
        self.name = wanted.name
        self._wanted = wanted
        self._digest = digest
        self._config = ""

    def source(self) -> str:
        """Return what decides it; known once it is installed."""
        return import_source(self._config)

    def kept(self, older: Installed) -> Installed:
        """Return what is remembered; an imported base system is never taken over half."""
        return older

    def install(self, target: Path, scratch: Path, progress: Progress) -> Installed:
        """Fetch, check, merge and pack. Raises FetchFailed, ImageRefused, BuildFailed."""
        image = self._fetched(scratch, progress)
        self._config = image.manifest.config.digest
        progress("checking the layers", 0.6)
        layout.check_blobs(image)
        tree, furnished = merged(image, progress)
        progress("packing the image", 0.8)
        packing.pack(tree, image.layers, target, Budget())
        return Installed([], self._provenance(image, furnished))

    def _provenance(self, image: Image, furnished: Furnished) -> Imported:
        digest, way = self._digest or image.digest, self._wanted.way
        reference = str(self._wanted.reference)
        return provenance(image, reference, digest, furnished, plain_http=way.plain_http)

    def _fetched(self, scratch: Path, progress: Progress) -> Image:
        reference, host = self._wanted.reference, host_platform()
        if reference.kind == "oci":
            return layout.open_layout(Path(reference.place), reference.tag, host)
        expected = ""
        if reference.kind == "docker":
            expected = for_platform(reference.pinned(self._digest), self._wanted.way, host)
            reference = reference.pinned(expected)

        def told(arrived: int) -> None:
            progress(f"fetching the image ({arrived >> 20} MiB)", 0.35)

        skopeo.copy(reference, self._wanted.way, scratch, told)
        return layout.open_fetched(scratch / skopeo.FETCHED, expected, host)


def for_platform(reference: Reference, way: Way, host: Platform) -> str:
    """Return the digest of the image for `host` behind a reference that is pinned.

    Raises FetchFailed, ImageRefused.
    """
    for _ in range(_NESTED):
        raw = skopeo.manifest(reference, way)
        if f"sha256:{hashlib.sha256(raw).hexdigest()}" != reference.digest:
            raise ImageRefused("The image is refused: what arrived is not what was asked for.")
        if not is_index(raw):
            return reference.digest
        reference = reference.pinned(choose(decode(raw, Index), host).digest)
    raise ImageRefused("The image is refused: its indexes lead to each other.")


def merged(image: Image, progress: Progress) -> tuple[Tree, Furnished]:
    """Return an image's files after all its layers, made ready for the guest, and facts of it."""
    budget = Budget()
    tree = Tree(budget)
    count = len(image.layers)
    for number, stream in enumerate(layout.read_layers(image, budget)):
        progress(f"reading layer {number + 1} of {count}", 0.65 + 0.1 * number / count)
        tree.apply(LayerReader(stream, budget).members())
    again = Budget()
    return tree, furnish.furnish(tree, image.layers, image.config.architecture, again)
