"""The files of an image after all its layers, as names and facts: no content, nothing on disk.

Layers are applied by the rules of the OCI image specification (layer.md): within a layer its
whiteouts come first, for they mean lower layers only. A path leads through symbolic links as it
would in the finished image, whose root no link and no `..` can leave.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from vm.errors import ImageRefused
from vm.image.oci.limits import MAX_DEPTH, MAX_HOPS, MAX_NAME, MAX_PATH, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vm.image.oci.limits import Budget
    from vm.image.oci.tarread import Member

_WHITEOUT: Final = b".wh."
_OPAQUE: Final = b".wh..wh..opq"
_PRIVATE: Final = b".wh..wh."
"""Beginning of names that a storage driver kept for itself."""

Parts = tuple[bytes, ...]
Origin = tuple[int, int]
"""Where a file's content lies: which layer, which of its members."""


@dataclass(slots=True, eq=False)
class Node:
    """One file or folder. A file with several names is the same node in several places."""

    kind: Literal["file", "folder", "link", "fifo"]
    mode: int
    uid: int = 0
    gid: int = 0
    mtime: int = 0
    size: int = 0
    target: bytes = b""
    """Where a symbolic link leads, as it stands in the layer."""
    origin: Origin | None = None
    data: bytes | None = None
    """Content that is ours instead of the layer's."""
    children: dict[bytes, Node] = field(default_factory=dict[bytes, "Node"])


@dataclass
class Dropped:
    """What is not taken over, counted, for the user to be told."""

    devices: int = 0
    privileged: list[bytes] = field(default_factory=list[bytes])
    """Names of programs that had setuid or setgid; the bits are cleared."""


class Tree:
    """The image as it grows from layer to layer."""

    def __init__(self, budget: Budget) -> None:
        self.root = Node("folder", 0o755)
        self.dropped = Dropped()
        self._budget = budget
        self._layer = -1

    def apply(self, members: Iterable[Member]) -> None:
        """Put a layer on top. Raises ImageRefused for what no image should hold."""
        self._layer += 1
        entries: list[tuple[Parts, Member]] = []
        for member in members:
            parts = split(member.name)
            if parts and parts[-1].startswith(_WHITEOUT):
                self._erase(parts)
            else:
                entries.append((parts, member))
        for parts, member in entries:
            self._place(parts, member)

    def find(self, path: str) -> Node | None:
        """Return what a path means, the last link followed too; None where nothing is."""
        return self._walk(split(path.encode()), make=False)

    def folder(self, path: str) -> Node:
        """Return the folder at a path; what is missing of it is made, what is in the way goes."""
        here = self.root
        for part in split(path.encode()):
            found = here.children.get(part)
            if found is None or found.kind != "folder":
                found = here.children[part] = Node("folder", 0o755)
            here = found
        return here

    def paths(self) -> Iterator[tuple[bytes, Node]]:
        """Yield every path but the root's, folders before what is in them, in order of names.

        Raises ImageRefused for a path that is longer than Linux takes.
        """
        waiting = [(b"", self.root)]
        while waiting:
            path, node = waiting.pop()
            if path:
                yield path, node
            for name in sorted(node.children, reverse=True):
                below = path + b"/" + name if path else name
                if len(below) > MAX_PATH:
                    raise ImageRefused(f"The image is refused: {shown(below, 40)}… is too long.")
                self._budget.spend_text(len(below))
                waiting.append((below, node.children[name]))

    def _erase(self, parts: Parts) -> None:
        name = parts[-1]
        parent = self._walk(parts[:-1], make=False)
        if parent is None or (name.startswith(_PRIVATE) and name != _OPAQUE):
            return
        if name == _OPAQUE:
            parent.children.clear()
            return
        gone = name.removeprefix(_WHITEOUT)
        if gone in (b"", b".", b".."):
            raise ImageRefused("The image is refused: a whiteout of it names nothing.")
        parent.children.pop(gone, None)

    def _place(self, parts: Parts, member: Member) -> None:
        if not parts:
            if member.kind != "folder":
                raise ImageRefused("The image is refused: its root is no folder.")
            return  # the root has our own mode and owner
        parent = self._parent(parts)
        found = parent.children.get(parts[-1])
        if member.kind == "folder" and found is not None and found.kind == "folder":
            _set_facts(found, member)
            return
        node = self._node(member)
        if node is None:
            parent.children.pop(parts[-1], None)
        else:
            parent.children[parts[-1]] = node

    def _node(self, member: Member) -> Node | None:
        """Return the node that a member makes; None for a device, which nothing here needs."""
        if member.kind == "device":
            self.dropped.devices += 1
            return None
        if member.kind == "hard":
            return self._linked(member)
        if member.kind == "link" and not member.target:
            raise ImageRefused(f"The image is refused: {shown(member.name)} is an empty link.")
        node = Node(member.kind, 0)
        node.target = member.target if member.kind == "link" else b""
        _set_facts(node, member)
        if member.kind == "file":
            node.size, node.origin = member.size, (self._layer, member.number)
            self._clear_privileges(node, member)
        return node

    def _linked(self, member: Member) -> Node:
        target = split(member.target)
        parent = self._walk(target[:-1], make=False) if target else None
        found = parent.children.get(target[-1]) if parent is not None else None
        if found is None or found.kind == "folder":
            why = "a folder" if found else "nothing"
            raise ImageRefused(
                f"The image is refused: the hard link {shown(member.name)} leads to {why}."
            )
        return found

    def _clear_privileges(self, node: Node, member: Member) -> None:
        if node.mode & 0o6000:
            self.dropped.privileged.append(member.name)
            node.mode &= ~0o6000

    def _parent(self, parts: Parts) -> Node:
        parent = self._walk(parts[:-1], make=True)
        assert parent is not None
        if parent.kind != "folder":
            path = shown(b"/".join(parts[:-1]))
            raise ImageRefused(f"The image is refused: {path} is no folder, yet a file is in it.")
        return parent

    def _walk(self, parts: Parts, *, make: bool) -> Node | None:
        """Return what lies at the end of a path, every link on it followed.

        With `make` missing folders are made. Raises ImageRefused for links without an end.
        """
        stack, waiting, hops = [self.root], deque(parts), 0
        self._budget.spend_steps(len(parts))
        while waiting:
            part = waiting.popleft()
            if part == b"..":
                del stack[max(1, len(stack) - 1) :]
                continue
            node = stack[-1].children.get(part)
            if node is None and make and stack[-1].kind == "folder":
                node = self._made(stack, part)
            if node is None:
                # a file on the way is told by the caller, who knows the whole path
                return stack[-1] if make else None
            if node.kind != "link":
                stack.append(node)
                continue
            hops += 1
            if hops > MAX_HOPS:
                raise ImageRefused("The image is refused: its links lead round in a circle.")
            if node.target.startswith(b"/"):
                del stack[1:]
            further = _components(node.target)
            self._budget.spend_steps(len(further))
            waiting.extendleft(reversed(further))
        return stack[-1]

    def _made(self, stack: list[Node], name: bytes) -> Node:
        self._budget.spend_entry()
        if len(stack) > MAX_DEPTH:
            raise ImageRefused(f"The image is refused: {shown(name)} lies too deep.")
        _check_name(name)
        node = stack[-1].children[name] = Node("folder", 0o755)
        return node


def split(name: bytes) -> Parts:
    """Return the components of a member's name; an absolute one means the image's root.

    Raises ImageRefused for one that leads out of the image, or that no file system takes.
    """
    parts = tuple(_components(name))
    if b".." in parts:
        raise ImageRefused(f"The image is refused: the name {shown(name)} leads out of it.")
    if len(parts) > MAX_DEPTH:
        raise ImageRefused(f"The image is refused: {shown(name, 40)}… lies too deep.")
    for part in parts:
        _check_name(part)
    return parts


def _components(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def _check_name(name: bytes) -> None:
    if len(name) > MAX_NAME:
        raise ImageRefused(f"The image is refused: the name {shown(name, 40)}… is too long.")


def _set_facts(node: Node, member: Member) -> None:
    node.mode, node.mtime = member.mode, member.mtime
    node.uid, node.gid = member.uid, member.gid
