"""Small trees for merge tests: a base on disk, an agent's version, and what lies there after."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapshot.decisions import Decisions, Uniform
from snapshot.review import ChangedFile, FileReview, plan_merge, review_file
from snapshot.writeback import MergeOutcome, MergePlan, UndoOutcome, run_merge, undo_merge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from snapshot.review import Kind
    from snapshot.writeback import Refusal

ALL = Uniform("accepted")

Node = tuple[str, bytes]
"""Git mode and content (a link's target)."""

Nodes = dict[bytes, Node]


def text(content: str | bytes, mode: str = "100644") -> Node:
    return mode, content.encode() if isinstance(content, str) else content


def link(target: str) -> Node:
    return "120000", target.encode()


FOLDER: Node = ("040000", b"")


@dataclass
class Entry:
    """What one path is: enough to see any difference."""

    kind: str
    mode: int
    content: bytes

    def __repr__(self) -> str:
        return f"{self.kind} {self.mode:o} {self.content!r}"


def tree_of(root: Path) -> dict[str, Entry]:
    """Return every path below a folder with kind, mode and content."""
    found: dict[str, Entry] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name = str(path.relative_to(root))
        if stat.S_ISLNK(status.st_mode):
            found[name] = Entry("link", 0, os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(status.st_mode):
            found[name] = Entry("file", stat.S_IMODE(status.st_mode), path.read_bytes())
        elif stat.S_ISDIR(status.st_mode):
            found[name] = Entry("dir", stat.S_IMODE(status.st_mode), b"")
        else:
            found[name] = Entry("special", stat.S_IMODE(status.st_mode), b"")
    return found


def write_nodes(root: Path, nodes: Mapping[bytes, Node]) -> None:
    for name, (mode, content) in nodes.items():
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == "040000":
            os.makedirs(path, exist_ok=True)
        elif mode == "120000":
            os.symlink(content, path)
        else:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o755 if mode == "100755" else 0o644)


def changed(
    base: Nodes, agent: Nodes, renames: Mapping[bytes, bytes] | None = None
) -> list[ChangedFile]:
    """Return the changes from base to agent; `renames` maps new paths to old ones."""
    moved = dict(renames or {})
    files: list[ChangedFile] = []
    for path in sorted(base.keys() | agent.keys()):
        if path in moved.values() and path not in agent:
            continue
        old = base.get(moved.get(path, path))
        new = agent.get(path)
        if old != new or path in moved:
            files.append(_changed(path, old, new, moved.get(path)))
    return files


def reviews(
    base: Nodes, agent: Nodes, renames: dict[bytes, bytes] | None = None
) -> list[FileReview]:
    """Return the changed files of a tree with their lines."""
    return [
        review_file(file, lambda f: base[f.old_path or f.path][1], lambda f: agent[f.path][1])
        for file in changed(base, agent, renames)
    ]


def _changed(
    path: bytes, old: Node | None, new: Node | None, old_path: bytes | None
) -> ChangedFile:
    kind: Kind = "modified"
    if old_path is not None:
        kind = "renamed"
    elif old is None:
        kind = "added"
    elif new is None:
        kind = "deleted"
    elif old[0][:3] != new[0][:3]:
        kind = "type"
    elif old[1] == new[1]:
        kind = "mode"
    return ChangedFile(path, kind, old_path, new[0] if new else "", old[0] if old else "")


@dataclass
class Scene:
    """A workspace on disk that holds `base`, and an agent that made `agent` of it."""

    root: Path
    merges: Path
    base: Nodes
    agent: Nodes
    renames: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    gone_dirs: tuple[bytes, ...] = ()
    allow_links: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        self.root.mkdir(exist_ok=True)
        write_nodes(self.root, self.base)

    @property
    def files(self) -> list[ChangedFile]:
        return changed(self.base, self.agent, self.renames)

    def plan(self, decisions: Decisions = ALL) -> MergePlan:
        return plan_merge(
            self.files,
            decisions,
            lambda file: self.base[file.old_path or file.path][1],
            lambda file: self.agent[file.path][1],
            self.root,
            gone_dirs=self.gone_dirs,
            allow_links=self.allow_links,
        )

    def merge(
        self, decisions: Decisions = ALL, tick: Callable[[str], None] = lambda _: None
    ) -> MergeOutcome:
        return run_merge(lambda: self.plan(decisions), self.merges, tick)

    def undo(self, merge: str, tick: Callable[[str], None] = lambda _: None) -> UndoOutcome:
        return undo_merge(self.merges, merge, tick)

    def expected(self) -> dict[str, tuple[str, bytes]]:
        """Return kind and content of every path of the agent's tree, folders left out."""
        return {
            os.fsdecode(path): (mode, content)
            for path, (mode, content) in self.agent.items()
            if mode != "040000"
        }

    def found(self) -> dict[str, tuple[str, bytes]]:
        """Return git mode and content of what is on disk, folders left out."""
        return {
            name: ("120000" if entry.kind == "link" else _file_mode(entry.mode), entry.content)
            for name, entry in tree_of(self.root).items()
            if entry.kind in ("link", "file")
        }


def _file_mode(mode: int) -> str:
    return "100755" if mode & 0o100 else "100644"


def everything() -> tuple[Nodes, Nodes, dict[bytes, bytes], tuple[bytes, ...]]:
    """Return base, agent, renames and gone folders with every sort of step in them."""
    base: Nodes = {
        b"edit": text("1\n2\n3\n4\n5\n"),
        b"keep": text("untouched\n"),
        b"gone/one": text("1\n"),
        b"gone/deep/two": text("2\n"),
        b"moved": text("a\nb\nc\nd\n"),
        b"run.sh": text("#!/bin/sh\n"),
        b"stop.sh": text("#!/bin/sh\n", "100755"),
        b"link": link("edit"),
        b"file-to-link": text("was a file\n"),
        b"link-to-file": link("keep"),
        b"file-to-dir": text("was a file\n"),
        b"dir-to-file/x": text("x\n"),
        b"binary": text(b"\0\1\2"),
        b"emptied": text("something\n"),
    }
    agent: Nodes = {
        b"edit": text("1\nTWO\n3\n4\n5\n6\n"),
        b"keep": base[b"keep"],
        b"sub/renamed": text("a\nB\nc\nd\n"),
        b"run.sh": text("#!/bin/sh\n", "100755"),
        b"stop.sh": text("#!/bin/sh\nexit\n"),
        b"link": link("keep"),
        b"file-to-link": link("keep"),
        b"link-to-file": text("is a file\n"),
        b"file-to-dir/in/here": text("deep\n"),
        b"dir-to-file": text("is a file\n"),
        b"binary": text(b"\0\1\3\4"),
        b"emptied": text(""),
        b"new/empty": text(""),
        b"new/exec": text("#!/bin/sh\n", "100755"),
        b"new/folder": FOLDER,
    }
    return base, agent, {b"sub/renamed": b"moved"}, (b"gone", b"gone/deep")


def scene(tmp_path: Path, base: Nodes, agent: Nodes, **more: object) -> Scene:
    return Scene(tmp_path / "ws", tmp_path / "merges", base, agent, **more)  # type: ignore[arg-type]  # fields of any type


def full(tmp_path: Path) -> Scene:
    base, agent, renames, gone = everything()
    return scene(tmp_path, base, agent, renames=renames, gone_dirs=gone)


def reasons(refusals: tuple[Refusal, ...]) -> dict[bytes, str]:
    return {refusal.path: refusal.reason for refusal in refusals}
