"""Gates on what a merge costs: CPU against CPU in one run, so a busy machine changes nothing."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from tests.snapshot.merge_help import Nodes, Scene, text

pytestmark = pytest.mark.usefixtures("no_sync")

TIMES_MORE = 3
"""What a file of a large merge may cost at most beside one of a small one; measured: 0.7 to 1.2.
Anything that looks at all files for each file costs ten times as much."""


def edits(count: int) -> tuple[Nodes, Nodes]:
    """Return files in fifty folders, and an edit in each."""
    base: Nodes = {b"d%d/f%d" % (n % 50, n): text(f"line {n}\n" * 40) for n in range(count)}
    return base, {path: text(content + b"more\n") for path, (_, content) in base.items()}


def cost_of_a_file(where: Path, count: int) -> tuple[float, float]:
    """Return the CPU seconds that merging and taking back cost each file."""
    with tempfile.TemporaryDirectory(dir=where) as folder:
        scene = Scene(Path(folder) / "ws", Path(folder) / "merges", *edits(count))
        began = time.process_time()
        merge = scene.merge().merge
        between = time.process_time()
        assert len(scene.undo(merge).restored) == count
        return (between - began) / count, (time.process_time() - between) / count


def test_a_file_of_two_thousand_costs_what_one_of_two_hundred_does(memory_path: Path) -> None:
    small = [cost_of_a_file(memory_path, 200) for _ in range(5)]
    large = [cost_of_a_file(memory_path, 2000) for _ in range(2)]
    for what in (0, 1):  # merging, taking back
        few, many = (min(costs[what] for costs in found) for found in (small, large))
        assert many <= TIMES_MORE * few, (what, few, many)
