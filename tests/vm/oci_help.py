"""Layers and images made by hand for the tests of imports."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vm.image.oci.limits import Budget
from vm.image.oci.packing import archive
from vm.image.oci.stream import unpacked
from vm.image.oci.tarread import LayerReader
from vm.image.oci.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00" + bytes(44)
"""The beginning of a program for amd64."""


@dataclass(frozen=True)
class Entry:
    """One member of a layer."""

    name: str
    data: bytes = b""
    type: bytes = tarfile.REGTYPE
    target: str = ""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: float = 0
    pax: tuple[tuple[str, str], ...] = ()


def folder(name: str, mode: int = 0o755, **facts: Any) -> Entry:
    return Entry(name, type=tarfile.DIRTYPE, mode=mode, **facts)


def link(name: str, target: str) -> Entry:
    return Entry(name, type=tarfile.SYMTYPE, target=target, mode=0o777)


def hard(name: str, target: str) -> Entry:
    return Entry(name, type=tarfile.LNKTYPE, target=target)


SHELL = (folder("bin"), Entry("bin/sh", ELF, mode=0o755))


def layer(*entries: Entry, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return the tar of some entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.mode = entry.type, entry.target, entry.mode
            info.uid, info.gid, info.mtime = entry.uid, entry.gid, entry.mtime
            info.size = len(entry.data)
            info.pax_headers = dict(entry.pax)
            tar.addfile(info, io.BytesIO(entry.data))
    return out.getvalue()


def put_layers(place: Path, layers: Sequence[bytes]) -> list[Path]:
    paths = [place / f"layer{number}" for number in range(len(layers))]
    for path, data in zip(paths, layers, strict=True):
        path.write_bytes(data)
    return paths


def tree_of(paths: Sequence[Path], budget: Budget | None = None) -> Tree:
    budget = budget or Budget()
    tree = Tree(budget)
    for path in paths:
        with unpacked(path, budget) as stream:
            tree.apply(LayerReader(stream, budget).members())
            stream.digest()
    return tree


@dataclass(frozen=True)
class Found:
    """One path of a merged image; `twin` is the first name of a file that has several."""

    kind: str
    mode: int
    owner: tuple[int, int]
    mtime: int
    content: bytes
    twin: str


def read_back(stream: bytes) -> dict[str, Found]:
    """Return what a merged archive holds; no path may stand in it twice."""
    found: dict[str, Found] = {}
    with tarfile.open(
        fileobj=io.BytesIO(stream), encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for info in tar:
            assert info.name not in found
            reader = tar.extractfile(info) if info.isfile() or info.islnk() else None
            content = reader.read() if reader else info.linkname.encode("utf-8", "surrogateescape")
            kind = {b"0": "file", b"1": "file", b"2": "link", b"5": "folder", b"6": "fifo"}
            found[info.name] = Found(
                kind[info.type], info.mode, (info.uid, info.gid), int(info.mtime), content,
                info.linkname if info.islnk() else info.name if info.isfile() else "",
            )  # fmt: skip
    return found


def merge(place: Path, *layers: bytes, budget: Budget | None = None) -> dict[str, Found]:
    """Merge layers as an import does, and return what comes out."""
    paths = put_layers(place, layers)
    tree = tree_of(paths, budget)
    return read_back(b"".join(archive(tree, paths, Budget())))


def names(found: dict[str, Found]) -> set[str]:
    return set(found)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Layout:
    """An OCI layout in the making."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.blobs = place / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)
        self.entries: list[dict[str, Any]] = []

    def blob(self, data: bytes, kind: str) -> dict[str, Any]:
        (self.blobs / digest(data)[7:]).write_bytes(data)
        return {"digest": digest(data), "size": len(data), "mediaType": kind}

    def document(self, value: Any, kind: str) -> dict[str, Any]:
        return self.blob(json.dumps(value).encode(), f"application/vnd.oci.image.{kind}.v1+json")

    def image(
        self, *layers: bytes, arch: str = "amd64", system: str = "linux", **changed: Any
    ) -> dict[str, Any]:
        """Put an image in and return what points to it; `changed` are fields of its config."""
        tar = "application/vnd.oci.image.layer.v1.tar+gzip"
        blobs = [self.blob(gzip.compress(data, mtime=0), tar) for data in layers]
        diffs = {"type": "layers", "diff_ids": [digest(data) for data in layers]}
        config = {"os": system, "architecture": arch, "rootfs": diffs, **changed}
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.document(config, "config"),
            "layers": blobs,
        }
        return self.document(manifest, "manifest")

    def index(self, *images: dict[str, Any]) -> dict[str, Any]:
        kind = "application/vnd.oci.image.index.v1+json"
        value = {"schemaVersion": 2, "mediaType": kind, "manifests": list(images)}
        return self.document(value, "index")

    def tag(self, entry: dict[str, Any], tag: str = "latest") -> Layout:
        """Let a tag mean an image or an index."""
        note = {"org.opencontainers.image.ref.name": tag}
        self.entries = [*self.entries, {**entry, "annotations": note}]
        (self.place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        index = {"schemaVersion": 2, "manifests": self.entries}
        (self.place / "index.json").write_text(json.dumps(index))
        return self
