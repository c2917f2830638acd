"""A hostile process swaps paths for links while merges write: nothing outside is ever touched.

CI runs some hundred rounds; `CLOCHE_RACE_ROUNDS=10000` is the full run.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat
from snapshot.errors import MergeAborted
from snapshot.writeback import recover
from tests.snapshot.merge_faults import forked
from tests.snapshot.merge_help import Nodes, Scene, text, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_sync")

ROUNDS = int(os.environ.get("CLOCHE_RACE_ROUNDS", "300"))
SECRET = b"outside: never read, never written\n"


def outside_of(where: Path) -> Path:
    """Return a folder beside the workspace that holds what must never change."""
    outside = where / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("f", "deep/f", "new"):
        (outside / name).write_bytes(SECRET)
    return outside


def scene_of(where: Path) -> Scene:
    """Return a workspace with a folder and a file, and links of other names to the outside."""
    base: Nodes = {b"s/f": text("1\n2\n3\n"), b"s/deep/f": text("1\n2\n3\n"), b"leaf": text("1\n")}
    made = Scene(where / "ws", where / "merges", base, dict(base))
    (made.root / "trap").symlink_to("../outside")
    (made.root / "s/trap").symlink_to("../../outside/deep")
    (made.root / "leaftrap").symlink_to("../outside/f")
    return made


PAIRS = [(b"s", b"trap"), (b"s/deep", b"s/trap"), (b"leaf", b"leaftrap")]


def swap_for_ever(root: Path) -> None:
    """Let folders, file and their links change places, each time in one step."""
    fd = os.open(root, os.O_RDONLY)
    while True:
        for one, other in PAIRS:
            with contextlib.suppress(OSError):
                renameat.exchange(fd, one, fd, other)


def agents(number: int) -> Nodes:
    """Return what the agent made in one round: edits, new files, and one removal now and then."""
    nodes: Nodes = {
        b"s/f": text(f"1\n{number}\n3\n"),
        b"s/deep/f": text(f"1\n2\n{number}\n"),
        b"leaf": text(f"{number}\n"),
        b"s/new": text(f"{number}\n"),
        b"s/deep/new/x": text(f"{number}\n"),
    }
    if number % 7 == 0:
        del nodes[b"leaf"]
    return nodes


def calm(scene: Scene) -> None:
    """Put folders and links where they belong and the files back as they were."""
    fd = os.open(scene.root, os.O_RDONLY)
    for one, other in PAIRS:
        if os.path.islink(os.path.join(os.fsencode(scene.root), one)):
            renameat.exchange(fd, one, fd, other)
    os.close(fd)


def test_swapping_for_links_leads_nowhere(memory_path: Path) -> None:
    outside = outside_of(memory_path)
    scene = scene_of(memory_path)
    known = tree_of(outside)
    written = refused = 0
    with forked(lambda: swap_for_ever(scene.root)) as attacker:
        for number in range(ROUNDS):
            scene.agent = agents(number)
            try:
                written += len(scene.merge().written)
            except MergeAborted:
                refused += 1
            if number % 50 == 49:
                os.kill(attacker, signal.SIGSTOP)
                assert tree_of(outside) == known
                assert all(item.leftovers == () for item in recover(scene.merges))
                calm(scene)
                os.kill(attacker, signal.SIGCONT)
    assert tree_of(outside) == known
    assert written > 0


@pytest.mark.parametrize("swapped", [b"s", b"s/deep", b"leaf"])
def test_a_swap_at_any_step_between_plan_and_end_leads_nowhere(
    memory_path: Path, swapped: bytes
) -> None:
    outside = outside_of(memory_path)
    known = tree_of(outside)
    names: list[str] = []
    first = scene_of(memory_path)
    first.agent = agents(1)
    first.merge(tick=names.append)
    for number in range(len(names)):
        where = memory_path / f"{number}"
        where.mkdir()
        (where / "outside").symlink_to(outside)
        scene = scene_of(where)
        scene.agent = agents(1)
        with contextlib.suppress(MergeAborted):
            scene.merge(tick=swap_at(scene, number, swapped))
        assert tree_of(outside) == known, names[number]


def swap_at(scene: Scene, number: int, swapped: bytes) -> Callable[[str], None]:
    """Return a tick that swaps one pair at one step."""
    count = iter(range(1 << 30))
    other = dict(PAIRS)[swapped]

    def tick(_name: str) -> None:
        if next(count) == number:
            fd = os.open(scene.root, os.O_RDONLY)
            with contextlib.suppress(OSError):
                renameat.exchange(fd, swapped, fd, other)
            os.close(fd)

    return tick
