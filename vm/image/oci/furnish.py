"""What the agent's world needs and an image for containers does not bring.

The guest's first process mounts over these places. It follows no link there and moves away what is
no real folder or file (vm/guest/place.c); here all of them become what they must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.errors import ImageRefused
from vm.image.oci.packing import read_files
from vm.image.oci.tree import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from vm.image.oci.limits import Budget
    from vm.image.oci.tree import Tree

VERSION: Final = 1
"""Goes up with every change that makes other images out of the same layers."""

AGENT: Final = 1000
"""User and group id of the agent, in every image."""

_COVERED: Final = {"dev": 0o755, "proc": 0o755, "sys": 0o755, "run": 0o755, "tmp": 0o1777}
"""Folders that something is mounted over: what the image has in them is never seen."""

_TABLE_LIMIT: Final = 1 << 20
"""Bytes of /etc/passwd and the like."""

_ELF: Final = b"\x7fELF\x02\x01"
_MACHINES: Final = {"amd64": 62, "arm64": 183}
"""ELF's numbers of processors (e_machine in elf(5)) by the names that images use."""

_BUNDLES: Final = (
    "etc/ssl/certs/ca-certificates.crt",
    "etc/ssl/cert.pem",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
)
"""Where programs look for certificate authorities."""


@dataclass(frozen=True, slots=True)
class Furnished:
    """What was found on the way."""

    shell: str
    """The shell that people would choose."""
    notes: list[str]
    """What the user should know of the image."""


def furnish(tree: Tree, layers: Sequence[Path], architecture: str, budget: Budget) -> Furnished:
    """Make a tree ready to be the agent's world.

    Raises ImageRefused for an image without a shell, for nothing could be run in it.
    """
    shell = "/bin/bash" if _runs(tree, "bin/bash") else "/bin/sh"
    _check_shell(tree, layers, architecture, budget)
    _accounts(tree, layers, shell, budget)
    for name, mode in _COVERED.items():
        _cover(tree, name, mode)
    _own(tree.folder("workspace"))
    tree.folder("root").mode = 0o700
    etc = tree.folder("etc")
    for file in (b"hosts", b"hostname", b"machine-id"):
        etc.children[file] = Node("file", 0o644, data=b"")
    etc.children.pop(b"resolv.conf", None)  # the builder's network is not the session's
    return Furnished(shell, _notes(tree))


def _runs(tree: Tree, path: str) -> bool:
    node = tree.find(path)
    return node is not None and node.kind == "file" and bool(node.mode & 0o111)


def _check_shell(tree: Tree, layers: Sequence[Path], architecture: str, budget: Budget) -> None:
    node = tree.find("bin/sh")
    if node is None or not _runs(tree, "bin/sh"):
        raise ImageRefused(
            "The image is refused: it has no /bin/sh, and nothing could be started in it.",
            "Import one with a shell (often the same name with another tag): "
            "cloche image import REF",
        )
    head = read_files(layers, {"sh": (node, 20)}, budget).get("sh", b"")
    machine = int.from_bytes(head[18:20], "little")
    if not head.startswith(_ELF) or machine != _MACHINES.get(architecture):
        raise ImageRefused(
            f"The image is refused: its /bin/sh is no program for {architecture}.",
        )


def _accounts(tree: Tree, layers: Sequence[Path], shell: str, budget: Budget) -> None:
    wanted: dict[str, tuple[Node, int]] = {}
    for name in ("passwd", "group"):
        node = tree.find(f"etc/{name}")
        if node is not None and node.kind == "file":
            if node.size > _TABLE_LIMIT:
                raise ImageRefused(f"The image is refused: its /etc/{name} is too long.")
            wanted[name] = (node, _TABLE_LIMIT)
    found = read_files(layers, wanted, budget)
    rows = {
        "passwd": (
            b"root:x:0:0:root:/root:/bin/sh",
            f"agent:x:{AGENT}:{AGENT}:agent:/home/agent:{shell}".encode(),
        ),
        "group": (b"root:x:0:", f"agent:x:{AGENT}:".encode()),
    }
    etc = tree.folder("etc")
    for name, (root, agent) in rows.items():
        table = accounts(found.get(name, b""), root, agent)
        etc.children[name.encode()] = Node("file", 0o644, data=table)
    _own(tree.folder("home/agent"))


def accounts(table: bytes, root: bytes, agent: bytes) -> bytes:
    """Return /etc/passwd or /etc/group with the agent in it, and with root where it has none.

    The agent's row stands before other names of its number, so that it is who the number means.
    """
    lines = [line for line in table.split(b"\n") if line and _field(line, 0) != b"agent"]
    if not any(_field(line, 0) == b"root" for line in lines):
        lines.insert(0, root)
    number = b"%d" % AGENT
    place = next((n for n, line in enumerate(lines) if _field(line, 2) == number), len(lines))
    lines.insert(place, agent)
    return b"\n".join(lines) + b"\n"


def _field(line: bytes, number: int) -> bytes:
    fields = line.split(b":")
    return fields[number] if len(fields) > number else b""


def _own(folder: Node) -> None:
    folder.uid = folder.gid = AGENT
    folder.mode = 0o755


def _cover(tree: Tree, name: str, mode: int) -> None:
    folder = tree.folder(name)
    folder.children.clear()
    folder.mode, folder.uid, folder.gid = mode, 0, 0


def _notes(tree: Tree) -> list[str]:
    dropped = tree.dropped
    notes: list[str] = []
    if dropped.privileged:
        notes.append(_counted(len(dropped.privileged), "program", "lost setuid or setgid"))
    if dropped.devices:
        notes.append(_counted(dropped.devices, "device", "left out: /dev is Cloche's"))
    if not _any_file(tree, _BUNDLES):
        notes.append("it has no certificate authorities: HTTPS fails until you install them")
    return notes


def _counted(count: int, what: str, fate: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'} {fate}"


def _any_file(tree: Tree, paths: Iterable[str]) -> bool:
    return any(node is not None and node.kind == "file" for node in map(tree.find, paths))
