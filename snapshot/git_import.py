"""Taking an agent's commits: a bundle is indexed in a jail, looked at, and only then moved on.

`index-pack --strict` refuses broken objects, trees with `.git` in any of its disguises and bad
`.gitmodules`; git's own `fetch` from a bundle skips these checks (seen with 2.39). What is read
here is read by `git_store`, which bounds every object.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dulwich.objects import parse_tree

from .bundle import read_bundle, refused
from .errors import SnapshotError
from .git_dir import Dir, find
from .git_index import object_format
from .git_jail import run_git
from .git_store import Store
from .names import NameRefused, split_path
from .patterns import is_secret
from .safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from .bundle import Bundle

MAX_BUNDLE: Final = 256 << 20
"""Bytes of a bundle."""

MAX_COMMITS: Final = 1000
MAX_FILES: Final = 2000
"""Changed paths that are listed of one commit."""

MAX_ROWS: Final = 1_000_000
"""Rows of trees that are read in all."""

MAX_MESSAGE: Final = 16 << 10

_STRICT: Final = "--strict=gitmodulesParse=error,gitmodulesMissing=error"
"""git only remarks on a .gitmodules that cannot be parsed; with names it refuses it."""

_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_COMMIT, _TREE = 1, 2
_FOLDER: Final = 0o040000
_SUBMODULE: Final = 0o160000


@dataclass(frozen=True, slots=True)
class CommitFile:
    """One path that a commit changed against its first parent."""

    path: bytes
    change: str
    """`A` added, `M` modified, `D` deleted."""
    submodule: bool = False


@dataclass(frozen=True, slots=True)
class AgentCommit:
    """One commit of the agent; its texts are the agent's, not sanitised."""

    id: str
    parents: tuple[str, ...]
    author: bytes
    at: int
    """Author's time in unix seconds, as the agent wrote it."""
    message: bytes
    files: tuple[CommitFile, ...]
    cut: bool
    """Whether it changed more paths than are listed."""
    withheld: tuple[bytes, ...]
    """Paths among them that were withheld from the agent, or look like secrets."""


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
        folders = [Dir.open(os.fsencode(path)) for path in (self._folder / "objects", user.objects)]
        opened = [folder for folder in folders if folder is not None]
        store = Store(opened, object_format("sha1"))
        try:
            reader = _Reader(store, withheld, {*head.needs, *map(str.encode, user.heads)})
            commits = reader.commits([name for _, name in head.branches])
        finally:
            store.close()
            for folder in opened:
                folder.close()
        branches = tuple((branch.decode(), name.decode()) for branch, name in head.branches)
        return Taken(branches, tuple(commits), head.left_out)

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


class _Reader:
    """Walks commits that nobody but the agent has seen."""

    def __init__(self, store: Store, withheld: Collection[bytes], known: Collection[bytes]) -> None:
        self._store = store
        self._withheld = tuple(withheld)
        self._known = frozenset(known)
        self._rows = MAX_ROWS
        self._trees: dict[bytes, bytes] = {}

    def commits(self, heads: Sequence[bytes]) -> list[AgentCommit]:
        """Return the new commits, each after its children."""
        waiting, seen, found = list(dict.fromkeys(heads)), set(self._known), list[AgentCommit]()
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            if len(found) >= MAX_COMMITS:
                raise refused(f"there are more than {MAX_COMMITS} new ones")
            commit, parents = self._commit(name)
            found.append(commit)
            waiting += parents
        return found

    def _commit(self, name: bytes) -> tuple[AgentCommit, list[bytes]]:
        data = self._read(name, _COMMIT)
        head, _, message = data.partition(b"\n\n")
        fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
        trees = [value for key, value in fields if key == b"tree"]
        parents = [value for key, value in fields if key == b"parent"]
        author = next((value for key, value in fields if key == b"author"), b"")
        who, _, when = author.rpartition(b"> ")
        files = list(self._changed(self._tree_of(parents[0]) if parents else None, trees[0]))
        listed = files[:MAX_FILES]
        secret = tuple(file.path for file in listed if self._is_withheld(file.path))
        seconds = when.split(b" ")[0]
        at = int(seconds[:12]) if seconds.isdigit() else 0
        commit = AgentCommit(
            name.decode(),
            tuple(parent.decode() for parent in parents),
            who + b">" if who else b"",
            at,
            message[:MAX_MESSAGE],
            tuple(listed),
            len(files) > len(listed),
            secret,
        )
        return commit, parents

    def _tree_of(self, name: bytes) -> bytes:
        data = self._read(name, _COMMIT)
        return data.split(b"\n", 1)[0].removeprefix(b"tree ")

    def _read(self, name: bytes, kind: int) -> bytes:
        try:
            found = self._store.read(name)
        except Exception as error:  # a damaged or crafted object makes the reader raise anything
            raise refused(
                f"the object {safe_line(name.decode(errors='replace')).text} is not there"
            ) from error
        if found.kind != kind:
            raise refused("an object is of another kind than it must be")
        return found.data

    def _tree(self, name: bytes | None) -> dict[bytes, tuple[int, bytes]]:
        if name is None:
            return {}
        rows = list(parse_tree(self._read(name, _TREE), 20))
        self._rows -= len(rows)
        if self._rows < 0:
            raise refused(f"their trees have more than {MAX_ROWS} rows")
        return {part: (mode, item) for part, mode, item in rows}

    def _changed(self, old: bytes | None, new: bytes | None) -> Iterator[CommitFile]:
        """Yield what differs between two trees; folders are entered where they differ."""
        stack: list[tuple[bytes, bytes | None, bytes | None]] = [(b"", old, new)]
        while stack:
            folder, left, right = stack.pop()
            before, after = self._tree(left), self._tree(right)
            for part in sorted(before.keys() | after.keys()):
                was, now = before.get(part), after.get(part)
                if was == now:
                    continue
                path = folder + part
                self._check(path, now)
                folders = [x[1] if x and x[0] == _FOLDER else None for x in (was, now)]
                if any(folders):
                    stack.append((path + b"/", folders[0], folders[1]))
                plain = [x if x and x[0] != _FOLDER else None for x in (was, now)]
                if any(plain):
                    yield _file(path, plain[0], plain[1])

    @staticmethod
    def _check(path: bytes, now: tuple[int, bytes] | None) -> None:
        if now is None:
            return
        try:
            split_path(path)
        except NameRefused as error:
            raise refused(f"in one of them {error}") from error

    def _is_withheld(self, path: bytes) -> bool:
        beneath = any(path == one or path.startswith(one + b"/") for one in self._withheld)
        return beneath or is_secret(path, False)


def _file(path: bytes, was: tuple[int, bytes] | None, now: tuple[int, bytes] | None) -> CommitFile:
    change = "A" if was is None else "D" if now is None else "M"
    return CommitFile(path, change, _SUBMODULE in (was or (0,))[:1] + (now or (0,))[:1])
