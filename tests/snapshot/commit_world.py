"""A user's repository and an agent's clone of it, whose commits come over as bundles."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING

from snapshot.git_import import Quarantine, Taken, UserRepository, find_repository
from tests.snapshot.capture_helpers import git, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SESSION = "0123456789"


def sha(kind: str, data: bytes) -> str:
    return hashlib.sha1(b"%b %d\0" % (kind.encode(), len(data)) + data).hexdigest()


def tree(*rows: tuple[int, bytes, str]) -> bytes:
    return b"".join(b"%o %b\0" % (mode, name) + bytes.fromhex(item) for mode, name, item in rows)


def pack(objects: list[tuple[str, bytes]]) -> bytes:
    """Make a pack of whole objects, without asking git whether they may be."""
    data = b"PACK" + struct.pack(">II", 2, len(objects))
    for kind, body in objects:
        number = {"commit": 1, "tree": 2, "blob": 3}[kind]
        size, head = len(body) >> 4, (number << 4) | (len(body) & 15)
        while size:
            data += bytes((head | 0x80,))
            head, size = size & 0x7F, size >> 7
        data += bytes((head,)) + zlib.compress(body)
    return data + hashlib.sha1(data).digest()


class World:
    """A user's repository, and what an agent hands over of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "ws"
        self.workspace.mkdir()
        git(self.workspace, "init", "-q", "-b", "main")
        write(self.workspace, {"a.txt": "a\n", "sub/b.txt": "b\n", ".env": "TOKEN=1\n"})
        git(self.workspace, "add", "-f", ".")
        git(self.workspace, "commit", "-q", "-m", "first")
        self.agent = folder / "agent"
        git(folder, "clone", "-q", str(self.workspace), str(self.agent))
        self.quarantine = folder / "quarantine"

    @property
    def user(self) -> UserRepository:
        return find_repository(self.workspace, SESSION)

    def commit(self, message: str, files: Mapping[str, str | bytes], *words: str) -> str:
        write(self.agent, files)
        git(self.agent, "add", "-f", ".")
        git(self.agent, "commit", "-q", "-m", message, *words)
        return git(self.agent, "rev-parse", "HEAD").strip()

    def bundle(self, *refs: str) -> bytes:
        words = ["git", "bundle", "create", "-q", "-", *refs, "--not", *self.user.heads]
        return subprocess.run(words, cwd=self.agent, capture_output=True, check=True).stdout

    def take(self, bundle: bytes) -> Taken:
        return Quarantine(self.quarantine).take(bundle, self.user, (b".env",))

    def crafted(
        self,
        *rows: tuple[int, bytes, str],
        blobs: tuple[bytes, ...] = (),
        inner: tuple[bytes, ...] = (),
    ) -> bytes:
        """Return a bundle with one commit on the user's HEAD whose tree has these rows."""
        parent = git(self.workspace, "rev-parse", "HEAD").strip()
        root = tree(*rows)
        body = (
            f"tree {sha('tree', root)}\nparent {parent}\nauthor A <a@b.example> 1 +0000\n"
            "committer A <a@b.example> 1 +0000\n\nhello\n"
        ).encode()
        trees = [("tree", one) for one in (*inner, root)]
        objects = [*(("blob", blob) for blob in blobs), *trees, ("commit", body)]
        head = f"# v2 git bundle\n-{parent} \n{sha('commit', body)} refs/heads/x\n\n".encode()
        return head + pack(objects)
