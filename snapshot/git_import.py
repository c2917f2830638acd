"""Taking an agent's commits: a bundle is indexed in a jail, looked at, and only then moved on.

`index-pack --strict` refuses broken objects, trees with `.git` in any of its disguises and bad
`.gitmodules`; git's own `fetch` from a bundle skips these checks (seen with 2.39). What is read
afterwards is read by `git_commits`, `git_trees` and `git_store`, which bound every object.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .bundle import read_bundle, refused
from .errors import SnapshotError
from .git_commits import CommitReader
from .git_dir import Dir, find
from .git_index import object_format
from .git_jail import run_git
from .git_store import Store
from .safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from .bundle import Bundle
    from .git_commits import AgentCommit

MAX_BUNDLE: Final = 256 << 20
"""Bytes of a bundle."""

_STRICT: Final = "--strict=gitmodulesParse=error,gitmodulesMissing=error"
"""git only remarks on a .gitmodules that cannot be parsed; with names it refuses it."""

_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a bundle held, the newest commit of each branch first."""

    branches: tuple[tuple[str, str], ...]
    commits: tuple[AgentCommit, ...]
    left_out: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class UserRepository:
    """The user's repository of a workspace, as paths."""

    common: Path
    heads: tuple[str, ...]
    """Commits of its branches and its HEAD."""

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self.common / "objects"


def find_repository(workspace: Path, session: str) -> UserRepository:
    """Find the repository of a workspace.

    Raises:
        SnapshotError: there is none, or it is not one of SHA-1.

    """
    tree = os.fsencode(os.path.realpath(workspace))
    fd = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = find(tree, tree, fd)
    finally:
        os.close(fd)
    if isinstance(found, str):
        raise SnapshotError(f"The workspace's repository cannot be used: {found}.", "git status")
    here, common = found
    try:
        config = common.read(b"config", 1 << 20) or b""
        if b"objectformat" in config.lower():
            raise SnapshotError(
                "The workspace's repository names its objects by SHA-256.",
                "Take the changes as files: cloche review ID",
            )
        return UserRepository(Path(os.fsdecode(common.path)), tuple(_heads(here, common, session)))
    finally:
        here.close()
        common.close()


def _heads(here: Dir, common: Dir, session: str) -> Iterator[str]:
    """Yield the commits that the repository has names for: branches, HEAD, what came earlier."""
    wanted = (b"refs/heads", b"refs/cloche/" + session.encode())
    values = [here.read(b"HEAD", 4096) or b""]
    for line in (common.read(b"packed-refs", 16 << 20) or b"").split(b"\n"):
        name, _, ref = line.partition(b" ")
        if ref.startswith(wanted):
            values.append(name)
    for folder in wanted:
        base, _, last = folder.rpartition(b"/")
        values += [common.read(ref, 4096) or b"" for ref in _below(common, base, last)]
    for value in dict.fromkeys(value.strip() for value in values):
        if len(value) == 40 and set(value) <= set(b"0123456789abcdef"):
            yield value.decode()


def _below(common: Dir, base: bytes, last: bytes) -> list[bytes]:
    place: Dir | None = common
    opened: list[Dir] = []
    try:
        for part in base.split(b"/"):
            place = place.enter(part) if place else None
            if place is None:
                return []
            opened.append(place)
        return [base + b"/" + name for name in place.files_below(last)] if place else []
    finally:
        for item in opened:
            item.close()


class Quarantine:
    """A bare repository of ours that holds an agent's commits until the user wants them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, bundle: bytes, user: UserRepository, withheld: Collection[bytes] = ()) -> Taken:
        """Index a bundle and read what is in it; what was in the quarantine before goes.

        Raises:
            BundleRefused: it is damaged, builds on what is not there, or holds what git refuses.
            ToolMissing: git or bubblewrap is not installed.

        """
        if len(bundle) > MAX_BUNDLE:
            raise refused(f"they are larger than {MAX_BUNDLE >> 20} MiB")
        head = read_bundle(bundle)
        self._make(user.objects)
        try:
            self._index(bundle[head.pack :], user.objects)
            return self._look(head, user, withheld)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _make(self, objects: Path) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        for name in ("objects/info", "objects/pack", "refs"):
            (self._folder / name).mkdir(parents=True, mode=0o700)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")
        (self._folder / "config").write_text(_CONFIG)
        if "\n" in str(objects) or str(objects).startswith(('"', "#")):
            raise refused("the workspace's path cannot be written into a git configuration")
        (self._folder / "objects" / "info" / "alternates").write_text(f"{objects}\n")

    def _index(self, pack: bytes, objects: Path) -> None:
        words = ["index-pack", _STRICT, "--fix-thin", "--stdin", f"--max-input-size={MAX_BUNDLE}"]
        done = run_git(self._folder, words, stdin=pack, readable=[objects])
        if done.code != 0:
            raise refused(f"git says '{_reason(done.err)}'")

    def _look(self, head: Bundle, user: UserRepository, withheld: Collection[bytes]) -> Taken:
        known = {*head.needs, *map(str.encode, user.heads)}
        with self.reader(user, withheld, known) as reader:
            commits = reader.commits([name for _, name in head.branches])
        branches = tuple((branch.decode(), name.decode()) for branch, name in head.branches)
        return Taken(branches, tuple(commits), head.left_out)

    @contextmanager
    def reader(
        self,
        user: UserRepository,
        withheld: Collection[bytes] = (),
        known: Collection[bytes] = (),
    ) -> Generator[CommitReader]:
        """Open the objects of the quarantine and of the user's repository to be read."""
        folders = [Dir.open(os.fsencode(path)) for path in (self._folder / "objects", user.objects)]
        opened = [folder for folder in folders if folder is not None]
        store = Store(opened, object_format("sha1"))
        try:
            yield CommitReader(store, withheld, known)
        finally:
            store.close()
            for folder in opened:
                folder.close()

    def publish(self, user: UserRepository, session: str, taken: Sequence[tuple[str, str]]) -> None:
        """Move the objects into the user's repository and write refs/cloche/SESSION/BRANCH.

        Raises:
            SnapshotError: a file or ref cannot be written.

        """
        packs = self._folder / "objects" / "pack"
        for suffix in (".pack", ".idx"):  # in this order: git sees a pack by its index
            for path in sorted(packs.glob(f"*{suffix}")):
                _copy(path, user.objects / "pack" / path.name)
        lines = [f"update refs/cloche/{session}/{branch} {name}\n" for branch, name in taken]
        done = run_git(user.common, ["update-ref", "--stdin"], stdin="".join(lines).encode())
        if done.code != 0:
            text = f"The refs were not written: git says '{_reason(done.err)}'."
            raise SnapshotError(text, "git fsck")


def _reason(said: str) -> str:
    """Return the first complaint of a git process, printable."""
    lines = [line for line in said.splitlines() if line.strip()] or ["nothing"]
    wrong = [line for line in lines if line.startswith(("error:", "fatal:"))]
    return safe_line((wrong or lines)[0]).text[:200]


def _copy(source: Path, target: Path) -> None:
    """Copy one file under its name whole, or not at all; one that is there is the same."""
    if target.exists():
        return
    draft = target.with_name(f"tmp_cloche_{os.getpid()}{source.suffix}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
    try:
        with os.fdopen(fd, "wb") as out, source.open("rb") as data:
            shutil.copyfileobj(data, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())
        os.rename(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
