"""The JSON of the OCI image specification and of Docker's older forms of it, as far as we read it.

Everything here came from elsewhere: lengths were checked before, types are checked by msgspec, and
what is not named is passed over.
"""

from __future__ import annotations

import platform
import re
from typing import Any, Final, TypeVar

import msgspec

from vm.errors import ImageRefused
from vm.image.oci.limits import MAX_DOCUMENT, MAX_LAYERS
from vm.text import printable

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
_PROCESSORS: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of processors: Linux's, and those of images (Go's)."""

INDEXES: Final = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    }
)
MANIFESTS: Final = frozenset(
    {
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }
)
_LAYERS: Final = frozenset(
    {
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.oci.image.layer.v1.tar+zstd",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.diff.tar",
    }
)
_CONFIGS: Final = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    }
)


class Platform(msgspec.Struct, frozen=True):
    """What an image runs on."""

    os: str = ""
    architecture: str = ""
    variant: str = ""

    @property
    def text(self) -> str:
        """The same as people write it."""
        words = (self.os, self.architecture, *((self.variant,) if self.variant else ()))
        return printable("/".join(words))[:60]


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """Points to a blob by the hash of its bytes."""

    digest: str
    size: int
    media_type: str = ""
    platform: Platform | None = None
    annotations: dict[str, str] | None = None

    @property
    def hex(self) -> str:
        """The hash alone. Raises ImageRefused for any other than sha256."""
        if not is_digest(self.digest):
            raise ImageRefused("The image is refused: it names a part by no sha256 digest.")
        return self.digest.removeprefix("sha256:")


class Index(msgspec.Struct, frozen=True, rename="camel"):
    """Several images of one name, one for each platform."""

    manifests: list[Descriptor]
    media_type: str = ""


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """One image: its config and its layers, the lowest first."""

    config: Descriptor
    layers: list[Descriptor]
    media_type: str = ""


class RootFS(msgspec.Struct, frozen=True):
    """The hashes of the layers as they are when unpacked."""

    diff_ids: list[str]


class Run(msgspec.Struct, frozen=True, rename="pascal"):
    """What the image's maker wants to be run, and how."""

    env: list[str] | None = None
    working_dir: str = ""
    user: str = ""
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None


class Config(msgspec.Struct, frozen=True):
    """The image's own description."""

    rootfs: RootFS
    os: str = ""
    architecture: str = ""
    variant: str = ""
    created: str | None = None
    config: Run | None = None

    @property
    def platform(self) -> Platform:
        """What it runs on."""
        return Platform(self.os, self.architecture, self.variant)


Document = TypeVar("Document", Index, Manifest, Config)


def is_digest(text: str) -> bool:
    """Tell whether a text is a digest of the one kind that is taken."""
    return bool(_DIGEST.match(text))


def decode(raw: bytes, kind: type[Document]) -> Document:
    """Return a document. Raises ImageRefused for what is none."""
    if len(raw) > MAX_DOCUMENT:
        raise ImageRefused("The image is refused: a description of it is too long.")
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        why = printable(str(error))[:120]
        raise ImageRefused(f"The image is refused: its {kind.__name__} is none ({why}).") from None


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str = ""
    manifests: Any = None
    schema_version: int = 2


def is_index(raw: bytes, media_type: str = "") -> bool:
    """Tell whether a document names several images rather than being one.

    `media_type` is what points to it says. Raises ImageRefused for what is neither.
    """
    try:
        form = msgspec.json.decode(raw, type=_Form)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise ImageRefused("The image is refused: its manifest is no JSON.") from None
    kind = form.media_type or media_type
    if form.schema_version != 2:
        raise ImageRefused("The image is refused: its manifest is of Docker's oldest form.")
    if kind in INDEXES or (not kind and form.manifests is not None):
        return True
    if kind and kind not in MANIFESTS:
        name = printable(kind)[:80]
        raise ImageRefused(f"The image is refused: it is no image of a machine ({name}).")
    return False


def host_platform() -> Platform:
    """Return what images for this host say of themselves."""
    machine = platform.machine()
    return Platform("linux", _PROCESSORS.get(machine, machine))


def fits(found: Platform, host: Platform) -> bool:
    """Tell whether an image for one platform runs on another."""
    return (found.os, found.architecture) == (host.os, host.architecture)


def choose(index: Index, host: Platform) -> Descriptor:
    """Return the image for `host`. Raises ImageRefused, naming what there is."""
    for one in index.manifests:
        if one.platform is not None and fits(one.platform, host):
            return one
    others = {one.platform.text for one in index.manifests if one.platform is not None}
    raise wrong_platform(sorted(others - {"unknown/unknown"}), host)


def wrong_platform(found: list[str], host: Platform) -> ImageRefused:
    """Return the error of an image that is for other machines."""
    names = ", ".join(found[:8]) or "no platform that it names"
    return ImageRefused(
        f"The image is refused: it is for {names}; this host runs {host.text}.",
        f"Import one that is built for {host.text}: cloche image import REF",
    )


def check_manifest(manifest: Manifest) -> None:
    """Raise ImageRefused for an image whose parts are not of a kind that can be taken."""
    kinds = {one.media_type for one in manifest.layers} - _LAYERS
    if manifest.config.media_type not in _CONFIGS or kinds:
        odd = sorted(kinds) or [manifest.config.media_type]
        name = printable(odd[0])[:80]
        raise ImageRefused(f"The image is refused: it is no image of a machine ({name}).")
    if not 0 < len(manifest.layers) <= MAX_LAYERS:
        raise ImageRefused(f"The image is refused: it has {len(manifest.layers)} layers.")
    if any(one.size < 0 for one in (manifest.config, *manifest.layers)):
        raise ImageRefused("The image is refused: a part of it has no possible size.")
