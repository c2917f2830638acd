"""An image as files: blobs named by their hashes, in an OCI layout or as skopeo puts them down.

Chain of proof: the name leads to a manifest by its digest, the manifest to the config, and the
config's `diff_ids` to what the layers unpack to. So no byte of an image is believed unchecked.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.errors import FetchFailed, ImageRefused
from vm.image.oci.documents import (
    Config,
    Descriptor,
    Index,
    Manifest,
    Platform,
    check_manifest,
    choose,
    decode,
    fits,
    is_index,
    wrong_platform,
)
from vm.image.oci.limits import MAX_DOCUMENT, MAX_FETCHED
from vm.image.oci.stream import file_digest, unpacked
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.oci.limits import Budget
    from vm.image.oci.stream import Measured

_TAG: Final = "org.opencontainers.image.ref.name"
_NESTED: Final = 4
"""Indexes that may lead to each other."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a layout, described but not yet read."""

    digest: str
    """What the tag means: of an index where there is one, else of the manifest."""
    manifest_digest: str
    manifest: Manifest
    config: Config
    layers: tuple[Path, ...]


def tagged(folder: Path, tag: str) -> Descriptor:
    """Return what a tag of a layout means; without one the only thing that is there.

    Raises FetchFailed.
    """
    try:
        raw = _read(folder / "index.json", MAX_DOCUMENT)
    except (OSError, ImageRefused) as error:
        raise FetchFailed(
            f"{folder} is no OCI layout: its index.json cannot be read.",
            "Give the folder that holds index.json: cloche image import oci:DIR:TAG",
        ) from error
    entries = decode(raw, Index).manifests
    found = [one for one in entries if not tag or (one.annotations or {}).get(_TAG) == tag]
    if len(found) == 1:
        return found[0]
    tags = sorted({(one.annotations or {}).get(_TAG, "") for one in entries} - {""})
    names = ", ".join(printable(name)[:60] for name in tags[:8])
    raise FetchFailed(
        f"The layout {folder} has {len(found)} images{f' called {tag}' if tag else ''}.",
        f"Say which one: cloche image import oci:{folder}:TAG (there are: {names or 'none'})",
    )


def open_layout(folder: Path, tag: str, host: Platform) -> Image:
    """Return the image for `host` that a tag of an OCI layout means.

    Raises FetchFailed when it is not there, ImageRefused for anything that does not fit.
    """
    top, blobs = tagged(folder, tag), folder / "blobs" / "sha256"
    descriptor, raw = top, _document(blobs, top)
    for _ in range(_NESTED):
        if not is_index(raw, descriptor.media_type):
            break
        descriptor = choose(decode(raw, Index), host)
        raw = _document(blobs, descriptor)
    return _described(blobs, raw, top.digest, descriptor.digest, host)


def open_fetched(folder: Path, expected: str, host: Platform) -> Image:
    """Return the image that skopeo put into a folder (its `dir:`), manifest and blobs side by side.

    `expected` is the digest that its manifest must have, unless it is empty. Raises as
    `open_layout` does.
    """
    try:
        raw = _read(folder / "manifest.json", MAX_DOCUMENT)
    except OSError as error:
        raise FetchFailed("The image arrived without a manifest.") from error
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    if expected and digest != expected:
        raise ImageRefused("The image is refused: what arrived is not what was asked for.")
    if is_index(raw):
        raise ImageRefused("The image is refused: an index arrived where an image was expected.")
    return _described(folder, raw, digest, digest, host)


def _described(blobs: Path, raw: bytes, top: str, digest: str, host: Platform) -> Image:
    manifest = decode(raw, Manifest)
    check_manifest(manifest)
    config = decode(_document(blobs, manifest.config), Config)
    if not fits(config.platform, host):
        raise wrong_platform([config.platform.text], host)
    if len(config.rootfs.diff_ids) != len(manifest.layers):
        raise ImageRefused("The image is refused: its config knows of other layers.")
    layers = tuple(_blob(blobs, one) for one in manifest.layers)
    return Image(top, digest, manifest, config, layers)


def check_blobs(image: Image) -> None:
    """Compare every layer's bytes with its digest, before any of it is unpacked.

    Raises ImageRefused.
    """
    for path, descriptor in zip(image.layers, image.manifest.layers, strict=True):
        if file_digest(path) != descriptor.digest:
            raise ImageRefused("The image is refused: a layer does not match its digest.")


def read_layers(image: Image, budget: Budget) -> Iterator[Measured]:
    """Yield each layer's stream, the lowest first, and check it once the caller is done with it.

    Raises ImageRefused when a layer unpacks to something else than its config says.
    """
    for path, expected in zip(image.layers, image.config.rootfs.diff_ids, strict=True):
        with unpacked(path, budget) as stream:
            yield stream
            if stream.digest() != expected:
                raise ImageRefused("The image is refused: a layer is not what its config says.")


def _document(blobs: Path, descriptor: Descriptor) -> bytes:
    raw = _read(_blob(blobs, descriptor), MAX_DOCUMENT)
    if f"sha256:{hashlib.sha256(raw).hexdigest()}" != descriptor.digest:
        raise ImageRefused("The image is refused: a description does not match its digest.")
    return raw


def _blob(blobs: Path, descriptor: Descriptor) -> Path:
    """Return the file of a part, whose size and kind are as they should be."""
    path = blobs / descriptor.hex
    try:
        found = path.lstat()
    except OSError:
        raise ImageRefused(f"The image is refused: {descriptor.digest[:19]}… is missing.") from None
    if not stat.S_ISREG(found.st_mode) or found.st_size != descriptor.size:
        raise ImageRefused(f"The image is refused: {descriptor.digest[:19]}… has another size.")
    if found.st_size > MAX_FETCHED:
        raise ImageRefused("The image is refused: a layer is larger than Cloche takes.")
    return path


def _read(path: Path, limit: int) -> bytes:
    """Return a regular file's bytes; ImageRefused beyond `limit`, OSError for what is no file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ImageRefused("The image is refused: a description of it is no file.")
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ImageRefused("The image is refused: a description of it is too long.")
    return raw
