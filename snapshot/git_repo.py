"""A workspace's repository, rebuilt for the guest as a plain `.git` folder.

What is inside a `.git` is chosen name by name: refs, objects, index, the state of a merge; never
hooks, logs, credentials, worktree or submodule administration. A linked worktree or a submodule
(where `.git` is a file) becomes a repository of its own. A `.git` file or a `commondir` is
untrusted text: it is followed out of the workspace only where the place it names points back.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from snapshot.display import printable
from snapshot.git_borrowing import GitLeftOut, object_folders
from snapshot.git_config import BadConfig, parse
from snapshot.git_dir import Dir, find
from snapshot.git_history import Objects, TooManyFiles, head_entries
from snapshot.git_index import MAX_BYTES as MAX_INDEX
from snapshot.git_index import GitIndex, UnreadableIndex
from snapshot.git_sanitise import minimal, object_hash, sanitise, uses_worktree_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_PACKED_REFS: Final = 64 << 20
MAX_REFS: Final = 200_000

_SMALL: Final = 64 << 10
_RELISTS: Final = 3
_REF: Final = re.compile(rb"(?:ref: refs/[^\x00-\x20\x7f]+|[0-9a-f]{40}|[0-9a-f]{64})\n?")
_PACKED: Final = re.compile(
    rb"(?:[0-9a-f]{40}|[0-9a-f]{64}) refs/[^\x00-\x20\x7f]+|\^[0-9a-f]{40,64}|# pack-refs[ -~]*"
)
_OBJECT_FOLDER: Final = re.compile(rb"[0-9a-f]{2}")
_LOOSE: Final = re.compile(rb"[0-9a-f]{38}|[0-9a-f]{62}")
_PACK: Final = re.compile(
    rb"pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|idx|rev|bitmap|mtimes|keep|promisor)"
)
_STATE: Final = (
    *(b"MERGE_HEAD", b"MERGE_MSG", b"MERGE_MODE", b"SQUASH_MSG", b"CHERRY_PICK_HEAD"),
    *(b"REVERT_HEAD", b"ORIG_HEAD", b"BISECT_LOG"),
)
_INFO: Final = (b"exclude", b"attributes", b"sparse-checkout")
_OWN_REFS: Final = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/")
"""Refs that each worktree has for itself."""


@dataclass(frozen=True, slots=True)
class Member:
    """One path of the rebuilt `.git`: a folder, bytes, or a file that lies in `directory`."""

    path: bytes
    kind: Literal["dir", "data", "file"]
    mode: int
    data: bytes = b""
    directory: Dir | None = None
    name: bytes = b""


class GitRepo:
    """One repository of the workspace, read when the walk comes to it."""

    def __init__(
        self,
        workspace: bytes,
        folder: bytes,
        own: Dir,
        common: Dir,
        borrowed: dict[object, bytes],
        *,
        alternates: bool = False,
    ) -> None:
        """Read what must be of one moment: HEAD, refs and index, before any object.

        `workspace` is its real absolute path, `folder` the working tree in it, `own` the tree's git
        folder, `common` the one that holds refs and objects (the same but for a linked worktree),
        `borrowed` the object folders that the image holds already, by identity; `alternates` as in
        CaptureOptions. Raises GitLeftOut.
        """
        self.folder = folder
        self.notices: list[str] = []
        self._workspace = workspace
        self._own, self._common, self._borrowed = own, common, borrowed
        self._config, self._hash = self._read_config()
        self._head = self._read_ref(own, b"HEAD")
        if self._head is None:
            raise GitLeftOut("it has no readable HEAD")
        self._packed = self._read_packed()
        self._refs = self._read_refs()
        self._objects, notices = object_folders(workspace, folder, common, alternates=alternates)
        self.notices += notices
        self.index = self._read_index()

    @property
    def prefix(self) -> bytes:
        """The working tree's path with a slash, or nothing for the workspace itself."""
        return self.folder + b"/" if self.folder else b""

    def exclude(self) -> bytes:
        """Read `info/exclude`."""
        return self._common.read(b"info/exclude", _SMALL) or b""

    def heads(self) -> list[bytes]:
        """Give the object names that HEAD and all refs point to, HEAD first."""
        named = dict(self._named())
        values = [self._head_object(), *named.values()]
        return list(dict.fromkeys(value for value in values if value))

    def objects(self) -> Objects:
        """Open the objects for reading; the caller closes them."""
        return Objects(self._objects, self._hash)

    def members(self, left_out: Callable[[bytes], bool]) -> Iterator[Member]:
        """Give everything of the rebuilt `.git`; `left_out` is as for GitIndex.render."""
        root = self.prefix + b".git"
        for name in (b"", b"/info", b"/refs", b"/refs/heads", b"/refs/tags"):
            yield Member(root + name, "dir", 0o755)
        for name in (b"/objects", b"/objects/info", b"/objects/pack"):
            yield Member(root + name, "dir", 0o755)
        for name, data in self._small_files():
            yield Member(root + b"/" + name, "data", 0o644, data)
        if self.index is not None:
            yield Member(root + b"/index", "data", 0o644, self.index.render(left_out))
        yield from self._ref_members(root)
        yield from self._object_members(root + b"/objects")

    def close(self) -> None:
        """Close every folder that is open."""
        for folder in {self._own, self._common, *self._objects}:
            folder.close()

    def _read_config(self) -> tuple[bytes, str]:
        data = self._common.read(b"config", 1 << 20) or b""
        kind = object_hash(data)
        try:
            if any(item.name == "extensions.refstorage" for item in parse(data)):
                raise GitLeftOut("it keeps its refs in a format that is not supported (reftable)")
            more = b""
            if uses_worktree_config(data):
                more = self._own.read(b"config.worktree", 1 << 20) or b""
            return sanitise(data, more), kind
        except BadConfig as error:
            self.notices.append(f"The git config of '{self._shown}' was replaced: {error}.")
            return minimal(kind), kind

    @property
    def _shown(self) -> str:
        return printable(self.folder) or "."

    def _read_ref(self, place: Dir, name: bytes) -> bytes | None:
        data = place.read(name, 4096)
        return data if data is not None and _REF.fullmatch(data) else None

    def _read_packed(self) -> bytes:
        data = self._common.read(b"packed-refs", MAX_PACKED_REFS) or b""
        return b"".join(line + b"\n" for line in data.split(b"\n") if _PACKED.fullmatch(line))

    def _read_refs(self) -> dict[bytes, bytes]:
        shared = self._own is self._common
        found = dict(
            self._loose(self._common, lambda name: shared or not name.startswith(_OWN_REFS))
        )
        if not shared:
            found.update(self._loose(self._own, lambda name: name.startswith(_OWN_REFS)))
        return found

    def _loose(self, place: Dir, wanted: Callable[[bytes], bool]) -> Iterator[tuple[bytes, bytes]]:
        for count, name in enumerate(place.files_below(b"refs")):
            if count >= MAX_REFS:
                self.notices.append(
                    f"'{self._shown}' has more than {MAX_REFS} refs: some are lost."
                )
                return
            value = self._read_ref(place, name) if wanted(name) else None
            if value is not None:
                yield name, value

    def _named(self) -> Iterator[tuple[bytes, bytes]]:
        for line in self._packed.splitlines():
            value, _, name = line.partition(b" ")
            if name and not line.startswith((b"#", b"^")):
                yield name, value
        for name, value in self._refs.items():
            if not value.startswith(b"ref: "):
                yield name, value.strip()

    def _head_object(self) -> bytes | None:
        value = (self._head or b"").strip()
        return dict(self._named()).get(value[5:]) if value.startswith(b"ref: ") else value

    def _read_index(self) -> GitIndex | None:
        found = self._own.read_stat(b"index", MAX_INDEX)
        if found is None:
            return None
        try:
            return GitIndex.read(found[0], self.prefix, self._hash, found[1].st_mtime_ns)
        except UnreadableIndex as error:
            self.notices.append(
                f"The index of '{self._shown}' was made anew from HEAD: {error}; what was staged"
                " counts as not staged in the snapshot."
            )
        objects = self.objects()
        try:
            entries = head_entries(objects, self._head_object() or b"")
        except TooManyFiles:
            return None
        finally:
            objects.close()
        return GitIndex(self.prefix, self._hash, entries).prepared()

    def _small_files(self) -> Iterator[tuple[bytes, bytes]]:
        yield b"HEAD", self._head or b""
        yield b"config", self._config
        if self._packed:
            yield b"packed-refs", self._packed
        for name in _STATE:
            data = self._own.read(name, _SMALL)
            if data is not None:
                yield name, data
        shallow = self._common.read(b"shallow", 1 << 20)
        if shallow is not None and re.fullmatch(rb"(?:[0-9a-f]{40,64}\n)*", shallow):
            yield b"shallow", shallow
        for name in _INFO:
            place = self._own if name == b"sparse-checkout" else self._common
            data = place.read(b"info/" + name, 1 << 20)
            if data is not None:
                yield b"info/" + name, data

    def _ref_members(self, root: bytes) -> Iterator[Member]:
        made = {b"refs", b"refs/heads", b"refs/tags"}
        for name, value in sorted(self._refs.items()):
            parts = name.split(b"/")[:-1]
            for end in range(1, len(parts) + 1):
                folder = b"/".join(parts[:end])
                if folder not in made:
                    made.add(folder)
                    yield Member(root + b"/" + folder, "dir", 0o755)
            yield Member(root + b"/" + name, "data", 0o644, value)

    def _object_members(self, root: bytes) -> Iterator[Member]:
        """Give the objects; folders that the image has already are only pointed to."""
        pointers: list[bytes] = []
        made: set[bytes] = set()
        for folder in self._objects:
            there = self._borrowed.get(folder.identity)
            if there is not None:
                pointers.append(os.path.relpath(there, root) + b"\n")
                continue
            self._borrowed[folder.identity] = root
            yield from self._objects_of(folder, root, made)
        if pointers:
            yield Member(root + b"/info/alternates", "data", 0o644, b"".join(pointers))

    def _objects_of(self, folder: Dir, root: bytes, made: set[bytes]) -> Iterator[Member]:
        """List again until nothing new is there: a repack may move objects meanwhile."""
        for _ in range(_RELISTS):
            before = len(made)
            for name in folder.names():
                if _OBJECT_FOLDER.fullmatch(name):
                    yield from self._folder_members(folder, name, _LOOSE, root, made)
            yield from self._folder_members(folder, b"pack", _PACK, root, made)
            if len(made) == before:
                return

    def _folder_members(
        self, above: Dir, name: bytes, wanted: re.Pattern[bytes], root: bytes, made: set[bytes]
    ) -> Iterator[Member]:
        folder = above.enter(name)
        if folder is None:
            return
        try:
            place = root + b"/" + name
            for item in folder.names():
                if wanted.fullmatch(item) and place + b"/" + item not in made:
                    if name != b"pack" and place not in made:
                        made.add(place)
                        yield Member(place, "dir", 0o755)
                    made.add(place + b"/" + item)
                    yield Member(place + b"/" + item, "file", 0o444, b"", folder, item)
        finally:
            folder.close()


def open_repo(
    workspace: bytes,
    folder: bytes,
    directory: int,
    borrowed: dict[object, bytes],
    *,
    alternates: bool = False,
) -> GitRepo:
    """Open the repository of `folder` (an open working tree in `workspace`).

    `borrowed` is filled with the object folders that the image gets; `alternates` as in
    CaptureOptions. Raises GitLeftOut.
    """
    tree = os.path.join(workspace, folder) if folder else workspace
    found = find(workspace, tree, directory)
    if isinstance(found, str):
        raise GitLeftOut(found)
    try:
        return GitRepo(workspace, folder, *found, borrowed, alternates=alternates)
    except BaseException:
        for item in found:
            item.close()
        raise
