"""Images in the store: `store/images/<name>/` with its `image.json`, found and checked cheaply.

`images/<name>` is a link to `images/.built/<digest>/`, and an `ImageSet` holds the paths behind the
link. So a session, or a checkpoint of one, keeps the files that it began with when the image is
built again.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from vm.errors import ImageMissing, VMError
from vm.image.recipes import RECIPES
from vm.install import PROGRAMS, USUAL_PATH

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2
"""Version of `image.json`; an image of another one is built again."""

KERNEL, VMLINUX, INITRAMFS, BASE = "vmlinuz", "vmlinux", "toolkit.cpio.gz", "base.squashfs"
FILES = (KERNEL, VMLINUX, INITRAMFS, BASE)
RECORD = "image.json"
BUILT = ".built"
REMOVED = ".removed-"
"""Beginning of the name of a folder whose files are being deleted."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RECORD_LIMIT = 4 << 20


@dataclass(frozen=True, slots=True)
class ImageSet:
    """One built image: everything that a guest boots from, by path."""

    name: str
    kernel: Path
    """The distribution's bzImage."""
    vmlinux: Path
    """The same kernel as an uncompressed ELF file, for machines that boot PVH (q35 and microvm)."""
    initramfs: Path
    """`toolkit.cpio.gz`; never boots alone, see `write_initrd`."""
    base: Path
    """`base.squashfs`, the root of the agent's world."""
    digest: str
    """blake3 (hex) over the digests of the four files; of an imported one, over its origin, too."""
    kernel_release: str
    """As `uname -r` prints it in the guest."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """What programs in its guests get where nothing else is said."""


class FileRecord(msgspec.Struct, frozen=True):
    """What is remembered of one file: enough to notice damage without reading it."""

    size: int
    mtime_ns: int
    blake3: str


class Imported(msgspec.Struct, frozen=True):
    """Where an imported image came from, and what its maker says of it."""

    reference: str
    """As it can be imported again: `docker://HOST/NAME:TAG`, `oci:…` or `docker-archive:…`."""
    digest: str
    """What the reference meant then: of an index where there was one, else of the manifest."""
    manifest: str
    config: str
    layers: list[str]
    platform: str
    created: str = ""
    env: dict[str, str] = {}
    """The image's ENV: what programs in its guests get where nothing else is said."""
    working_dir: str = ""
    """Kept, not obeyed: agents begin in the workspace."""
    shell: str = ""
    """The best shell that it has."""
    user: str = ""
    """Kept, not obeyed: agents run as Cloche's own user."""
    entrypoint: list[str] = []
    cmd: list[str] = []
    plain_http: bool = False
    """Whether its registry may be spoken to without TLS."""
    notes: list[str] = []
    """What was changed or is missing, for people."""


class ImageRecord(msgspec.Struct, frozen=True):
    """The content of `image.json`: what the image is and how it came to be."""

    format: int
    name: str
    digest: str
    kernel_release: str
    files: dict[str, FileRecord]
    toolkit_source: str
    """What the toolkit was built from: `build.toolkit_source()` of that time."""
    base_source: str
    """What decides the base system; while it is the same, `base.squashfs` is taken over."""
    suite: str
    built: str
    """UTC, ISO 8601."""
    tools: dict[str, str]
    toolkit_packages: list[str]
    base_packages: list[str]
    imported: Imported | None = None
    """None where the base system was built here from packages."""
    programs: bool = False
    """Whether it has the folder of what a line of shell installed, whose programs come first."""


def image_folder(store: Path, name: str) -> Path:
    """Return the folder of an image; VMError for a name that is none."""
    if not _NAME.fullmatch(name):
        raise VMError(
            f"{name!r} is no name for an image.",
            "Use lower-case letters, digits, dots, hyphens and underscores.",
        )
    return store / "images" / name


def find_image(store: Path, name: str = "base") -> ImageSet:
    """Return the image called `name`, checked by recorded sizes and times.

    Raises ImageMissing (hint: the build command) when it is absent, damaged or of an old format.
    """
    folder = image_folder(store, name)
    return image_set(folder.resolve(), read_record(folder))


def list_images(store: Path) -> list[ImageSet]:
    """Return every whole image of the store by name; what is no image is passed over."""
    found: list[ImageSet] = []
    for name in names(store):
        with contextlib.suppress(ImageMissing):
            found.append(find_image(store, name))
    return found


def names(store: Path) -> list[str]:
    """Return every name of an image, of damaged ones too."""
    folder = store / "images"
    found = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    return [name for name in found if _NAME.fullmatch(name)]  # our own files begin with a dot


def pointed(store: Path, name: str) -> str:
    """Return the digest of the version that a name means; empty where it means none."""
    try:
        target = os.readlink(image_folder(store, name))
    except OSError:
        return ""
    folder, _, digest = target.rpartition("/")
    return digest if folder == BUILT and is_digest(digest) else ""


def is_digest(text: str) -> bool:
    """Tell whether a text has the form of an image's digest."""
    return bool(_DIGEST.fullmatch(text))


def find_built(store: Path, name: str, digest: str) -> ImageSet:
    """Return the image with this digest, whatever the name `name` means by now.

    Raises ImageMissing when its files are gone or damaged.
    """
    folder = image_folder(store, name).parent / BUILT / digest
    if not _DIGEST.fullmatch(digest):
        raise _missing(folder, "has no digest for a name")
    return image_set(folder.resolve(), read_record(folder))


def read_record(folder: Path) -> ImageRecord:
    """Return the record of the image in `folder`, having checked its files against it.

    Raises ImageMissing.
    """
    try:
        record = decode_record(folder)
    except FileNotFoundError as error:
        raise _missing(folder, "is not built") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise _missing(folder, "has a damaged record") from error
    if record.format != FORMAT or set(record.files) != set(FILES):
        raise _missing(folder, "is of another version of Cloche", remedy(record))
    for name, expected in record.files.items():
        if not _matches(folder / name, expected):
            raise _missing(folder, f"is damaged ({name})", remedy(record))
    return record


def remedy(record: ImageRecord) -> str:
    """Return the command that makes an image anew."""
    if record.imported is None:
        return f"cloche image build {record.name}"
    way = " --plain-http" if record.imported.plain_http else ""
    return f"cloche image import{way} {record.imported.reference} --name {record.name}"


def decode_record(folder: Path) -> ImageRecord:
    """Return what the record in `folder` says, whatever became of the files.

    Raises OSError, and msgspec.MsgspecError for what is no record.
    """
    path = folder / RECORD
    if path.stat().st_size > _RECORD_LIMIT:
        raise msgspec.ValidationError(f"The record is longer than {_RECORD_LIMIT} bytes.")
    return msgspec.json.decode(path.read_bytes(), type=ImageRecord)


def _matches(path: Path, expected: FileRecord) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    if found.st_size != expected.size:
        return False
    # a copied store has other times: then the bytes decide
    return found.st_mtime_ns == expected.mtime_ns or file_digest(path) == expected.blake3


def _missing(folder: Path, why: str, hint: str = "") -> ImageMissing:
    name = folder.name
    known = f"cloche image build {name}" if name in RECIPES else "See them: cloche image list"
    return ImageMissing(f"The image {name} {why}.", hint or known)


def image_set(folder: Path, record: ImageRecord) -> ImageSet:
    """Return the paths and facts of a checked image."""
    return ImageSet(
        name=record.name,
        kernel=folder / KERNEL,
        vmlinux=folder / VMLINUX,
        initramfs=folder / INITRAMFS,
        base=folder / BASE,
        digest=record.digest,
        kernel_release=record.kernel_release,
        env=_environment(record),
    )


def _environment(record: ImageRecord) -> dict[str, str]:
    imported = record.imported
    if imported is None:
        return {"PATH": f"{PROGRAMS}/bin:{USUAL_PATH}"} if record.programs else {}
    return {**imported.env, "SHELL": imported.shell} if imported.shell else dict(imported.env)


def record_files(folder: Path) -> dict[str, FileRecord]:
    """Return the records of an image's files as they are now."""
    return {name: _record_file(folder / name) for name in FILES}


def _record_file(path: Path) -> FileRecord:
    found = path.stat()
    return FileRecord(found.st_size, found.st_mtime_ns, file_digest(path))


def file_digest(path: Path) -> str:
    """Return blake3 (hex) of a file."""
    return blake3().update_mmap(os.fspath(path)).hexdigest()


def set_digest(
    files: dict[str, FileRecord], name: str = "", imported: Imported | None = None
) -> str:
    """Return the digest of an image: over the names and digests of its files.

    Of an imported one, over its name and where it came from, too: two imports may have the same
    bytes, and each has a record of its own.
    """
    text = "".join(f"{file} {files[file].blake3}\n" for file in sorted(files))
    if imported is not None:
        text += f"{name} {imported.reference} {imported.digest}\n"
    return blake3(text.encode()).hexdigest()
