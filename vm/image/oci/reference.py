"""What people write to name an image that lies elsewhere, and what it is called here."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from vm.errors import VMError

Kind = Literal["docker", "oci", "docker-archive"]

_HOST: Final = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?\Z")
_PATH: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*\Z")
"""One component of a repository's name (distribution's reference grammar)."""

_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
_LAYOUT_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}\Z")
_LONGEST: Final = 4096
_LATEST: Final = "latest"
_SHORT: Final = 12

_ARCHIVE_TAG: Final = re.compile(r"@[0-9]{1,4}\Z|[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}\Z")
"""A name with its tag, as the archive has it, or the number of an image there (skopeo's form)."""

FORMS: Final = "docker://HOST/NAME[:TAG|@DIGEST], oci:DIR[:TAG] or docker-archive:FILE[:NAME:TAG]"


class BadReference(VMError):
    """A text that names no image."""

    code = "usage"
    way_out = f"Write it in one of these forms: {FORMS}"


@dataclass(frozen=True, slots=True)
class Reference:
    """An image that lies elsewhere: in a registry, an OCI layout or an archive."""

    kind: Kind
    place: str
    """`host/name` of a registry, else the absolute path of the folder or file."""
    tag: str = ""
    digest: str = ""
    """`sha256:…` where exactly one image is meant, whatever becomes of a tag."""

    def __str__(self) -> str:
        if self.kind == "docker":
            return f"docker://{self.place}{self.version}"
        return f"{self.kind}:{self.place}{self.version}"

    @property
    def version(self) -> str:
        """The tag or the digest with its sign before it; the digest where both are given."""
        return f"@{self.digest}" if self.digest else f":{self.tag}" if self.tag else ""

    @property
    def host(self) -> str:
        """The registry's name and port; empty for files."""
        return self.place.partition("/")[0] if self.kind == "docker" else ""

    def pinned(self, digest: str) -> Reference:
        """Return the same image by its digest."""
        return Reference(self.kind, self.place, "", digest)

    def name(self) -> str:
        """Return what the image is called in the store unless the user says something else."""
        stem, tag = self.place.rstrip("/").rpartition("/")[2], self.tag.removeprefix("@")
        if self.kind == "docker-archive":
            stem = re.sub(r"(\.tar)?(\.(gz|xz|zst|bz2))?\Z", "", stem)
            if self.tag and self.tag == tag:  # the archive's own name for it
                stem, _, tag = tag.rpartition("/")[2].partition(":")
        tag = self.digest[7 : 7 + _SHORT] or ("" if tag == _LATEST else tag)
        text = re.sub(r"[^a-z0-9._-]+", "-", f"{stem}-{tag}".lower())
        return text.strip("-._")[:63].rstrip("-._") or "imported"


def parse(text: str) -> Reference:
    """Return the image that a text names. Raises BadReference (code `usage`)."""
    if len(text) > _LONGEST or not text.isprintable():
        raise BadReference("That is no name for an image.")
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "oci":
        return _layout(rest)
    if colon and scheme == "docker-archive":
        return _archive(rest)
    return _registry(text.removeprefix("docker://"))


def _layout(rest: str) -> Reference:
    place, colon, tag = rest.rpartition(":")
    if not colon or os.path.exists(rest):  # a folder may have a colon in its name
        place, tag = rest, ""
    elif not _LAYOUT_TAG.match(tag):
        raise BadReference(f"'{tag}' is no tag of an OCI layout.")
    return _file("oci", place, tag)


def _archive(rest: str) -> Reference:
    """Cut at the first colon after which no file of a longer name is there."""
    place, tag = rest, ""
    while not os.path.exists(place) and ":" in place:
        place, _, more = place.rpartition(":")
        tag = f"{more}:{tag}" if tag else more
    if not os.path.exists(place):
        return _file("docker-archive", rest)
    if tag and not _ARCHIVE_TAG.match(tag):
        raise BadReference(f"'{tag}' is no name of an image in an archive.")
    return _file("docker-archive", place, tag)


def _file(kind: Kind, place: str, tag: str = "") -> Reference:
    if not place:
        raise BadReference(f"'{kind}:' needs a path.")
    return Reference(kind, str(Path(place).absolute()), tag)


def _registry(text: str) -> Reference:
    if "://" in text:
        raise BadReference(f"'{text.partition(':')[0]}' is no way that images come from.")
    name, at, digest = text.partition("@")
    if at and not _DIGEST.match(digest):
        raise BadReference(f"'{digest}' is no digest; one is sha256: and 64 hex digits.")
    place, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # that colon was the port's
        place, tag = name, ""
    elif not _TAG.match(tag):
        raise BadReference(f"'{tag}' is no tag.")
    host, slash, repository = place.partition("/")
    if not slash or not _is_host(host):
        raise BadReference(
            f"'{text}' does not say from which registry.",
            f"Name its host: cloche image import HOST/{name.removeprefix('/') or 'NAME'}",
        )
    if not all(_PATH.match(part) for part in repository.split("/")):
        raise BadReference(f"'{repository}' is no name of an image.")
    return Reference("docker", place, "" if digest else tag or _LATEST, digest)


def _is_host(text: str) -> bool:
    return bool(_HOST.match(text)) and ("." in text or ":" in text or text == "localhost")
