"""The finished tree as one tar stream into mksquashfs: every path once, in an order of ours.

The layers are read a second time and only what is left of them is passed on, so that neither a file
nor a half of the image is ever unpacked on this host.
"""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING, Final

from vm.errors import ImageRefused
from vm.image.oci.limits import MAX_IDS
from vm.image.oci.stream import unpacked
from vm.image.oci.tarread import LayerReader
from vm.image.tools import Watch, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from vm.image.oci.limits import Budget
    from vm.image.oci.tree import Node, Origin, Tree

OPTIONS: Final = (
    *("-tar", "-noappend", "-no-progress", "-quiet", "-comp", "zstd", "-Xcompression-level", "3"),
    *("-root-mode", "755", "-root-uid", "0", "-root-gid", "0"),
    # attributes could mean something to the overlay in the guest
    *("-no-xattrs", "-exit-on-error"),
)
PACK_SECONDS: Final = 3600.0

_PADDING: Final = bytes(tarfile.BLOCKSIZE)
_TYPES: Final = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "fifo": tarfile.FIFOTYPE,
}


def pack(tree: Tree, layers: Sequence[Path], target: Path, budget: Budget) -> None:
    """Write the image of `tree`, whose contents are in `layers`, to `target`.

    Raises ImageRefused when a layer is not what it was when the tree was made, BuildFailed when
    mksquashfs fails.
    """
    out, into = os.pipe()
    try:
        squash = spawn(["mksquashfs", "-", str(target), *OPTIONS], stdin=out)
    except BaseException:
        os.close(into)
        raise
    finally:
        os.close(out)
    watch = Watch(squash, PACK_SECONDS)
    try:
        with os.fdopen(into, "wb", 1 << 20) as pipe:
            _write_or_stop(tree, layers, pipe.write, budget)
        watch.finish("mksquashfs")
    except BrokenPipeError:
        watch.finish("mksquashfs")
        raise
    finally:
        watch.close()


def _write_or_stop(
    tree: Tree, layers: Sequence[Path], write: Callable[[bytes], object], budget: Budget
) -> None:
    for data in archive(tree, layers, budget):
        write(data)


def archive(tree: Tree, layers: Sequence[Path], budget: Budget) -> Iterator[bytes]:
    """Yield the tar of `tree`: folders first, then files layer by layer, other names of them last.

    Raises ImageRefused.
    """
    names: dict[int, list[bytes]] = {}
    wanted: dict[Origin, tuple[bytes, Node]] = {}
    ours: list[tuple[bytes, Node]] = []
    owners: set[int] = set()
    for path, node in tree.paths():
        owners |= {node.uid, node.gid}
        if node.kind != "file":
            yield header(path, node)
        elif id(node) in names:
            names[id(node)].append(path)
        else:
            names[id(node)] = []
            if node.data is not None or node.origin is None:
                ours.append((path, node))
            else:
                wanted[node.origin] = (path, node)
    if len(owners) > MAX_IDS:
        raise ImageRefused("The image is refused: it has more owners than Cloche takes.")
    for path, node in ours:
        data = node.data or b""
        yield header(path, node, len(data)) + data + _padding(len(data))
        yield from _other_names(path, node, names)
    for number, layer in enumerate(layers):
        mine = {member: found for (of, member), found in wanted.items() if of == number}
        if mine:
            yield from _of_layer(layer, mine, names, budget)
    yield _PADDING * 2


def _of_layer(
    layer: Path,
    mine: dict[int, tuple[bytes, Node]],
    names: Mapping[int, list[bytes]],
    budget: Budget,
) -> Iterator[bytes]:
    with unpacked(layer, budget) as stream:
        reader = LayerReader(stream, budget)
        for member in reader.members():
            if (found := mine.pop(member.number, None)) is None:
                continue
            path, node = found
            if member.kind != "file" or member.size != node.size:
                raise ImageRefused("The image is refused: a layer changed while it was read.")
            yield header(path, node, node.size)
            yield from reader.content()
            yield _padding(node.size)
            yield from _other_names(path, node, names)
            if not mine:
                return
    raise ImageRefused("The image is refused: a layer changed while it was read.")


def _other_names(path: bytes, node: Node, names: Mapping[int, list[bytes]]) -> Iterator[bytes]:
    for other in names[id(node)]:
        yield header(other, node, hard=path)


def header(path: bytes, node: Node, size: int = 0, hard: bytes = b"") -> bytes:
    """Return the tar header of a path; with `hard` it is another name of that one.

    In GNU's form, which holds names of any bytes and length.
    """
    info = tarfile.TarInfo(_text(path))
    info.type = tarfile.LNKTYPE if hard else _TYPES[node.kind]
    info.linkname = _text(hard or node.target)
    info.mode, info.mtime, info.size = node.mode, node.mtime, size
    info.uid, info.gid = node.uid, node.gid
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return _PADDING[: -size % tarfile.BLOCKSIZE]


def read_files(
    layers: Sequence[Path], wanted: Mapping[str, tuple[Node, int]], budget: Budget
) -> dict[str, bytes]:
    """Return the beginnings of some files by their keys, each with at most so many bytes."""
    result: dict[str, bytes] = {}
    origins: dict[Origin, list[tuple[str, int]]] = {}
    for key, (node, limit) in wanted.items():
        if node.data is not None:
            result[key] = node.data[:limit]
        elif node.origin is not None:
            origins.setdefault(node.origin, []).append((key, limit))
    for number in sorted({layer for layer, _ in origins}):
        mine = {member: keys for (of, member), keys in origins.items() if of == number}
        result |= _beginnings(layers[number], mine, budget)
    return result


def _beginnings(
    layer: Path, mine: dict[int, list[tuple[str, int]]], budget: Budget
) -> dict[str, bytes]:
    result: dict[str, bytes] = {}
    with unpacked(layer, budget) as stream:
        reader = LayerReader(stream, budget)
        for member in reader.members():
            if not mine:
                break
            if (keys := mine.pop(member.number, None)) is None:
                continue
            most = max(limit for _, limit in keys)
            data = b""
            for piece in reader.content():
                data += piece[: most - len(data)]
                if len(data) == most:
                    break
            result |= {key: data[:limit] for key, limit in keys}
    return result
