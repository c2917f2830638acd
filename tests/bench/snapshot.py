"""Snapshot of a 50,000-file tree, hashing included, beside `cp -a` of the same tree.

Both warm, on one file system, nothing synced; the runs alternate so that both meet the same load.
Goal: at most 1.5 times `cp -a`. `--tree DIR` measures an existing tree instead of a made one.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from snapshot.capture import IMAGE, CaptureOptions, SnapshotReport, take_snapshot
from tests.bench.report import publish, summary

FILES = 50_000
IN_A_FOLDER = 25
LARGEST = 2_000_000


def make_tree(root: Path, files: int) -> None:
    """Write `files` files of word-like text: median about 4 kB, mean about 11 kB, some large."""
    source = random.Random(1)
    words = [f"{source.getrandbits(40):x}".encode() for _ in range(3000)]
    text = b" ".join(source.choice(words) for _ in range(400_000))
    for number in range(files):
        folder = number // IN_A_FOLDER
        place = root / f"pkg{folder % 40}" / f"mod{folder // 40 % 25}" / f"part{folder}"
        if number % IN_A_FOLDER == 0:
            place.mkdir(parents=True, exist_ok=True)
        size = min(int(source.lognormvariate(8.3, 1.4)), LARGEST)
        start = source.randrange(len(text) - size)
        (place / f"file_{number}.py").write_bytes(text[start : start + size])


def copied(tree: Path, place: Path) -> float:
    """Seconds of `cp -a`."""
    started = time.perf_counter()
    subprocess.run(["cp", "-a", str(tree), str(place / "copy")], check=True)
    taken = time.perf_counter() - started
    shutil.rmtree(place / "copy")
    return taken


def captured(tree: Path, place: Path) -> tuple[float, SnapshotReport]:
    """Seconds of one snapshot, and its report."""
    (place / IMAGE).unlink(missing_ok=True)  # as `cp` does not remove the copy of the run before
    started = time.perf_counter()
    report = take_snapshot(tree, place, CaptureOptions())
    return time.perf_counter() - started, report


def measure(tree: Path, place: Path, runs: int) -> dict[str, object]:
    """Alternate both, once to warm up, then `runs` times."""
    copies: list[float] = []
    captures: list[float] = []
    hashes: list[float] = []
    copied(tree, place)
    _, report = captured(tree, place)
    for _ in range(runs):
        copies.append(copied(tree, place))
        taken, report = captured(tree, place)
        captures.append(taken)
        hashes.append(report.hash_seconds)
    return {
        "files": report.files,
        "bytes": report.bytes,
        "cp_a_s": summary(copies),
        "snapshot_s": summary(captures),
        "hash_s": summary(hashes),
        "hash_share": round(statistics.median(hashes) / statistics.median(captures), 3),
        "ratio_of_medians": round(statistics.median(captures) / statistics.median(copies), 3),
        "ratio_of_minima": round(min(captures) / min(copies), 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Make the tree where needed, measure, print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--folder", type=Path, help="where to work (default: the temporary one)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cloche-bench-", dir=wanted.folder) as name:
        tree, place = wanted.tree, Path(name) / "out"
        place.mkdir()
        if tree is None:
            tree = Path(name) / "tree"
            make_tree(tree, wanted.files)
        publish(measure(tree, place, max(1, wanted.runs)))


if __name__ == "__main__":
    main()
