"""Failing, dying and meddling at a chosen step of a merge; scenes in memory, without syncing."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import warnings
from typing import TYPE_CHECKING

from snapshot import renameat
from tests.sampling import FULL
from tests.snapshot.merge_help import Scene, everything

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from snapshot.writeback_ops import Op


def nothing(*_: object) -> None:
    """Stand in for what a test leaves out."""


def refuse(*_: object) -> None:
    """Stand in for `renameat2` on a file system that has none of its flags."""
    raise renameat.Unsupported(errno.EINVAL, os.strerror(errno.EINVAL))


def full(where: Path) -> Scene:
    """Return a scene with every sort of step, and a file of the user beside it."""
    where.mkdir()
    base, agent, moved, gone = everything()
    made = Scene(where / "ws", where / "merges", base, agent, moved, gone)
    (made.root / "mine").write_text("not part of it\n")
    return made


def ticks_of(where: Path) -> list[str]:
    """Return the names of all steps of that scene's merge."""
    names: list[str] = []
    full(where).merge(tick=names.append)
    return names


def spread(kinds: Sequence[str], stride: int) -> set[int]:
    """Return the numbers of the steps that are the first, the last, or a `stride`th of a kind."""
    found: dict[str, list[int]] = {}
    for number, kind in enumerate(kinds):
        found.setdefault(kind, []).append(number)
    return {n for steps in found.values() for n in (steps[0], steps[-1], *steps[::stride])}


def some_steps(where: Path, path: bytes = b"") -> list[tuple[int, str]]:
    """Return number and name of each step of the full scene's merge; without `FULL` of a sample.

    Of each phase (`stage`, `rename`, …) that is the first step, the last, the first that makes
    some kind of entry out of some other, and those about `path` and its folder.
    """
    made = full(where)
    ops = made.plan().ops
    names: list[str] = []
    made.merge(tick=names.append)
    if FULL:
        return list(enumerate(names))
    phases, changed = zip(*(_phase_and_op(name, ops) for name in names), strict=True)
    turns = [
        f"{phase} {op.pre.kind} {op.post.kind}" if op else phase
        for phase, op in zip(phases, changed, strict=True)
    ]
    chosen = spread(phases, len(names)) | {turns.index(turn) for turn in turns}
    about = (path, os.path.dirname(path)) if path else ()
    chosen |= {number for number, op in enumerate(changed) if op and op.path in about}
    return [(number, names[number]) for number in sorted(chosen)]


def _phase_and_op(name: str, ops: Sequence[Op]) -> tuple[str, Op | None]:
    """Return the first word of a step's name, and what it does where it is one of many."""
    phase, _, number = name.partition(" ")
    return phase, ops[int(number)] if number else None


def fail_at(number: int, act: Callable[[], None]) -> Callable[[str], None]:
    """Return a tick that acts when it is called for the `number`th time."""
    count = iter(range(1 << 30))

    def tick(_name: str) -> None:
        if next(count) == number:
            act()

    return tick


def die() -> None:
    """End this process as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_and_die(work: Callable[[], object]) -> int:
    """Run something in a forked child that is meant to be killed; its wait status."""
    return os.waitpid(_fork(work), 0)[1]


@contextlib.contextmanager
def forked(work: Callable[[], object]) -> Generator[int]:
    """Run something without an end in a forked child; it is killed with the block. Its pid."""
    child = _fork(work)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _fork(work: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        # Newer Pythons warn when threads of other tests are alive; the child uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child
