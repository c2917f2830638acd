"""The journal of one merge: what was planned, and how far it got.

A merge's folder holds `journal.jsonl` (the plan, then one line for each state reached, each
synced before the next step), `images.tar` with `pre/N` (what step N replaced), `post/N` (text it
wrote, for a later undo) and `asked/N` (text that a later merge builds on), and `late/N` (what
somebody wrote in the very moment of the merge).

    PLANNED    temporary names may exist
    PREPARED   every new content lies ready, what goes is kept (its places in `images.tar` stand
               in this line); steps may be done
    COMMITTED  every step is done; old contents may still lie under temporary names
    DONE       nothing of ours is left in the workspace
    ABORTED    everything was taken back
    UNDONE     a later undo put everything back
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from .durable import append_line, sync_path
from .errors import DecisionUnknown, StoreDamaged
from .lines import is_binary
from .safe_text import decode, encode
from .writeback_images import ARCHIVE, Images, ImageWriter, Span
from .writeback_ops import Exactly, MergedUnit, Op
from .writeback_tree import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from .writeback_ops import MergePlan, Side, SideKind, Wish

State = Literal["PLANNED", "PREPARED", "COMMITTED", "DONE", "ABORTED", "UNDONE"]

_VERSION: Final = 2
"""2 keeps contents in one archive; what 1 left, in files of their own, is read as well."""

_FILE: Final = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """What a journal says: enough to roll back, to finish or to undo."""

    merge: str
    folder: Path
    workspace: str
    root: tuple[int, int]
    ops: tuple[Op, ...]
    names: tuple[bytes, ...]
    written: tuple[bytes, ...]
    state: State
    asked: dict[bytes, Asked]
    """What was asked for of each written path; empty for the undo of a merge."""
    restored: frozenset[bytes]
    """Names of paths that an undo put back though it could not put back all of them."""
    images: Images
    """What is kept of it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a merge was to make of one path, the user's own edits left out."""

    path: bytes | None
    kind: SideKind
    executable: bool
    digest: str
    image: str
    """Name of its content among the kept ones; empty where it is not kept."""
    units: tuple[MergedUnit, ...]
    follows: str
    """The earlier merge that it builds on, if any."""


class Journal:
    """An open journal; every call is on disk when it returns."""

    def __init__(self, folder: Path, fd: int, images: ImageWriter) -> None:
        self.folder = folder
        self._fd = fd
        self.images = images

    @classmethod
    def create(cls, folder: Path, merge: str, plan: MergePlan) -> Journal:
        """Make a merge's folder and write its plan."""
        folder.mkdir(mode=0o700, parents=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        images = ImageWriter(folder)
        journal = cls(folder, -1, images)
        try:
            journal._fd = os.open(folder / _FILE, flags, 0o600)
            append_line(
                journal._fd,
                {
                    "v": _VERSION,
                    "merge": merge,
                    "workspace": os.path.abspath(plan.workspace),
                    "root": plan.root,
                    "names": [decode(name) for name in plan.names],
                    "written": [decode(name) for name in plan.written],
                    "ops": [_op_to_json(op) for op in plan.ops],
                    "asked": _asked(images, plan),
                },
            )
            for path in (folder, folder.parent):
                sync_path(path)
        except BaseException:
            journal.close()
            raise
        return journal

    def prepared(self) -> None:
        """Note that all lies ready, and where what is kept lies."""
        append_line(self._fd, {"state": "PREPARED", "images": self.images.index})

    def reach(self, state: State) -> None:
        """Note that a state was reached."""
        append_line(self._fd, {"state": state})

    def close(self) -> None:
        """Close the files; closing twice is fine."""
        self.images.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def note_state(folder: Path, state: State, restored: Iterable[bytes] = ()) -> None:
    """Note in the journal of an earlier merge that a state was reached, and what was put back."""
    names = [decode(name) for name in restored]
    fd = os.open(folder / _FILE, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        append_line(fd, {"state": state, "restored": names} if names else {"state": state})
    finally:
        os.close(fd)


def read_journal(folder: Path) -> Record | None:
    """Return what a merge's folder says; None if not even the plan is whole.

    Raises:
        DecisionUnknown: there is no such folder.
        StoreDamaged: the plan cannot be understood.

    """
    try:
        lines = (folder / _FILE).read_bytes().split(b"\n")
    except FileNotFoundError as error:
        if folder.is_dir():
            return None
        raise DecisionUnknown(
            f"There is no merge {folder.name}.", "See which merges there are: cloche changes ID"
        ) from error
    if len(lines) < 2:
        return None
    try:
        return _record(folder, json.loads(lines[0]), _last_state(lines[1:]))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged(
            f"The journal in {folder} cannot be understood.",
            f"Compare the workspace with what it replaced: tar -xf '{folder / ARCHIVE}'",
        ) from error


class _Reached(NamedTuple):
    """What the lines after the plan say."""

    state: State
    restored: frozenset[bytes]
    images: Mapping[str, Span]


def _last_state(lines: Sequence[bytes]) -> _Reached:
    """Return the last state that was noted and what was put back; a torn last line was not."""
    state: State = "PLANNED"
    restored: set[bytes] = set()
    images: dict[str, Span] = {}
    for line in lines[:-1]:
        value = json.loads(line)
        if value["state"] not in get_args(State):
            raise ValueError(value["state"])
        state = value["state"]
        restored.update(encode(name) for name in value.get("restored", ()))
        found = value.get("images", {}).items()
        images |= {name: (int(start), int(size)) for name, (start, size) in found}
    return _Reached(state, frozenset(restored), images)


def _record(folder: Path, value: dict[str, Any], reached: _Reached) -> Record:
    device, inode = value["root"]
    return Record(
        value["merge"],
        folder,
        value["workspace"],
        (device, inode),
        tuple(_op_from_json(op) for op in value["ops"]),
        tuple(encode(name) for name in value["names"]),
        tuple(encode(name) for name in value["written"]),
        reached.state,
        {encode(name): _asked_from_json(asked) for name, asked in value.get("asked", {}).items()},
        reached.restored,
        Images(folder, reached.images),
    )


def _asked(kept: ImageWriter, plan: MergePlan) -> dict[str, Any]:
    """Return what is asked for of the written paths; texts that no step writes are kept aside."""
    steps = enumerate(plan.ops)
    images = {(op.wish, op.post.digest): f"post/{n}" for n, op in steps if op.mergeable}
    written = set(plan.written)
    asked: dict[str, Any] = {}
    for number, wish in enumerate(plan.wishes):
        if wish.name in written and wish.exactly is None:
            image = images.get((number, wish.result.digest), "")
            name = _keep(kept, number, wish.result, image)
            asked[decode(wish.name)] = _asked_to_json(wish, name)
    return asked


def _keep(kept: ImageWriter, number: int, side: Side, image: str) -> str:
    """Return under which name a text is kept that a later merge builds on."""
    if side.kind != "file" or side.known_digest or is_binary(side.content):
        return ""
    if image:
        return image
    kept.add(f"asked/{number}", (side.content,))
    return f"asked/{number}"


def _asked_to_json(wish: Wish, image: str) -> list[Any]:
    side = wish.result
    path = None if wish.new_path is None else decode(wish.new_path)
    return [path, side.kind, side.executable, side.digest, image, wish.units, wish.follows]


def _asked_from_json(value: list[Any]) -> Asked:
    path, kind, executable, digest, image, units, follows = value
    return Asked(
        None if path is None else encode(path),
        kind,
        bool(executable),
        str(digest),
        str(image),
        tuple(MergedUnit(*unit) for unit in units),
        str(follows),
    )


def _op_to_json(op: Op) -> dict[str, Any]:
    return {
        "path": decode(op.path),
        "pre": _entry_to_json(op.pre),
        "post": _entry_to_json(op.post),
        "temp_dir": decode(op.temp_dir),
        "wish": op.wish,
        "mergeable": op.mergeable,
    }


def _op_from_json(value: dict[str, Any]) -> Op:
    return Op(
        encode(value["path"]),
        _entry_from_json(value["pre"]),
        _entry_from_json(value["post"]),
        b"",
        encode(value["temp_dir"]),
        int(value["wish"]),
        mergeable=bool(value["mergeable"]),
    )


def _entry_to_json(entry: Entry) -> list[Any]:
    return [entry.kind, entry.mode, entry.digest, entry.size, entry.uid, entry.gid]


def _entry_from_json(value: list[Any]) -> Entry:
    kind, mode, digest, size, uid, gid = value
    return Entry(kind, int(mode), str(digest), int(size), int(uid), int(gid))


def drop_images(folder: Path) -> None:
    """Drop the contents kept for a merge that was taken back whole: nobody needs them again."""
    with contextlib.suppress(OSError):
        # What cannot be removed costs room; nothing reads it again.
        os.unlink(folder / ARCHIVE)
    for name in ("pre", "post", "asked"):
        shutil.rmtree(folder / name, ignore_errors=True)


def write_attributes(kept: ImageWriter, number: int, attributes: dict[str, bytes]) -> None:
    """Keep the extended attributes of what a step takes away."""
    if attributes:
        encoded = {name: base64.b64encode(value).decode() for name, value in attributes.items()}
        kept.add(f"pre/{number}.xattrs", (json.dumps(encoded).encode(),))


def read_exactly(kept: Images, number: int, entry: Entry) -> Exactly:
    """Return what an entry had besides its content, to give it back. Raises StoreDamaged."""
    name = f"pre/{number}.xattrs"
    try:
        encoded: dict[str, str] = json.loads(kept.read(name))
        pairs = tuple((name, base64.b64decode(value)) for name, value in encoded.items())
    except FileNotFoundError:
        pairs = ()
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreDamaged(
            f"{kept.path(name)} does not hold what it must.",
            "Restore the file from your history.",
        ) from error
    return Exactly(entry.mode, entry.uid, entry.gid, pairs)
