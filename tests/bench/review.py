"""The review's speed beside what else is there: git and difflib on the same input, 2,000 files.

`python -m tests.bench.review --json [--runs N]`. Parts and goals:

* `engines`: CPU of comparing 10,000 lines with 1 % scattered edits: ours at most twice that of
  `git diff --no-index --histogram` (its process, start included), at least ten times less than
  difflib with `autojunk=False`.
* `long`: 100,000 lines compared in at most 500 ms of CPU.
* `merge`: 2,000 files merged in at most 3 s, everything synced (wall time, this disk's), beside the
  bare calls for the same files: written, synced, exchanged and the old ones removed, one by one.
* `plan`: the same merge planned where every line is accepted, with and without comparing lines.
* `screen`: the same review opened at 200×60, in a process of its own: at most 1 s of CPU until the
  list is usable and at most 16 ms for any turn of the event loop, at most 250 MB held at its
  highest. 50,000 lines: first frame at most 400 ms.
* `steps`: one row, one page and the next hunk in 50,000 lines: at most 8, 16 and 30 ms of CPU in
  our own widgets, 95th percentile. What the whole of each step costs, Textual's part included, is
  printed beside it (`review_ui` says how the two are told apart).
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snapshot import renameat
from snapshot.diff import diff
from snapshot.lines import split
from snapshot.review import FileReview, WholeReview, plan_reviews
from tests.bench.diff import cpu_ms, edited, pair, python_file
from tests.bench.processes import peak
from tests.bench.report import publish, repeat, runs_wanted, summary
from tests.snapshot.merge_help import ALL, Nodes, Scene, changed, text, write_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES: Final = 2_000
GIT_TIMES: Final = 2.0
DIFFLIB_TIMES: Final = 10.0
STEPS_MS: Final = {"row": 8, "page": 16, "next_hunk": 30}


def git_cpu_ms(old: Path, new: Path) -> float:
    """CPU milliseconds of one `git diff`, the process's start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["git", "diff", "--no-index", "--histogram", "--no-color", str(old), str(new)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


def ours_cpu_ms(old: bytes, new: bytes) -> float:
    """CPU milliseconds of the whole way from bytes to blocks, as git's is."""
    return cpu_ms(lambda: diff(split(old), split(new)))


def difflib_cpu_ms(old: Sequence[bytes], new: Sequence[bytes]) -> float:
    """CPU milliseconds of the standard library without its heuristic."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return cpu_ms(matcher.get_opcodes)


def engines(runs: int, lines: int = 10_000) -> dict[str, Any]:
    """The three on the same two files, in turns."""
    old, new = pair("scatter", lines)
    sides = b"".join(old), b"".join(new)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("old", "new")]
        for path, side in zip(paths, sides, strict=True):
            path.write_bytes(side)
        ours_cpu_ms(*sides)
        turns = [(ours_cpu_ms(*sides), git_cpu_ms(*paths)) for _ in range(max(5, runs))]
    ours, git = (summary([turn[n] for turn in turns]) for n in range(2))
    slow = difflib_cpu_ms(old, new)
    return {
        "lines": lines,
        "ours_ms": ours,
        "git_ms": git,
        "difflib_ms": round(slow, 1),
        "times_git": round(ours["min"] / max(git["min"], 0.001), 2),
        "difflib_times": round(slow / ours["min"], 1),
    }


def long(runs: int) -> dict[str, Any]:
    """One file of 100,000 lines."""
    old, new = pair("scatter", 100_000)
    return {"diff_100k_ms": repeat(lambda: cpu_ms(lambda: diff(old, new)), runs)}


def many_nodes() -> tuple[Nodes, Nodes]:
    """Two thousand Python files of 120 lines, a few edits in each."""
    base: Nodes = {
        b"d%d/f%d.py" % (n % 50, n): text(b"".join(python_file(120)) + b"%d\n" % n)
        for n in range(FILES)
    }
    agent: Nodes = {
        path: text(b"".join(edited(content.splitlines(keepends=True), 0.02, n)) + b"# end\n")
        for n, (path, (_, content)) in enumerate(base.items())
    }
    return base, agent


def bare_calls(where: Path, base: Nodes, agent: Nodes) -> float:
    """Seconds of what no merge can do without, each call after the other and without a journal."""
    write_nodes(where, base)
    os.sync()
    began = time.perf_counter()
    for name, (_, content) in agent.items():
        path = os.path.join(os.fsencode(where), name)
        descriptor = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, content)
        os.fsync(descriptor)
        os.close(descriptor)
        renameat.exchange(-100, path + b".new", -100, path)  # AT_FDCWD
        os.unlink(path + b".new")
    return time.perf_counter() - began


def merge(runs: int) -> dict[str, Any]:
    """Merge and take back, everything synced; a file system's other load is in it."""
    base, agent = many_nodes()
    merged: list[float] = []
    undone: list[float] = []
    spent: list[float] = []
    bare: list[float] = []
    for _ in range(max(1, min(runs, 3))):
        with tempfile.TemporaryDirectory(dir=os.environ.get("CLOCHE_BENCH_DISK")) as folder:
            scene = Scene(Path(folder) / "ws", Path(folder) / "merges", base, agent)
            bare.append(bare_calls(Path(folder) / "bare", base, agent))
            os.sync()  # what the scene itself left to write is not the merge's
            began, cpu = time.perf_counter(), time.process_time()
            outcome = scene.merge()
            merged.append(time.perf_counter() - began)
            spent.append(time.process_time() - cpu)
            assert len(outcome.written) == FILES
            began = time.perf_counter()
            scene.undo(outcome.merge)
            undone.append(time.perf_counter() - began)
    return {
        "merge_2000_files_s": summary(merged),
        "merge_2000_files_cpu_s": summary(spent),
        "bare_calls_s": summary(bare),
        "times_bare": round(min(merged) / min(bare), 2),
        "load": os.getloadavg()[0],
        "undo_2000_files_s": summary(undone),
    }


def plan(runs: int) -> dict[str, Any]:
    """CPU of planning the same merge, every line accepted: with and without comparing them."""
    base, agent = many_nodes()
    files = changed(base, agent)
    with tempfile.TemporaryDirectory() as folder:
        write_nodes(Path(folder), base)
        sides = [(file, base[file.path][1], agent[file.path][1]) for file in files]
        units = [FileReview(*one).units for one in sides]

        def compared() -> None:
            plan_reviews([FileReview(*one) for one in sides], ALL, Path(folder))

        def whole() -> None:
            reviews = [WholeReview(*one, known) for one, known in zip(sides, units, strict=True)]
            plan_reviews(reviews, ALL, Path(folder))

        turns = [(cpu_ms(compared), cpu_ms(whole)) for _ in range(runs)]
    slow, fast = (summary([turn[n] for turn in turns]) for n in range(2))
    return {"compared_ms": slow, "whole_ms": fast, "times": round(slow["min"] / fast["min"], 1)}


def in_own_process(what: str) -> dict[str, Any]:
    """Run a part of this file in a process of its own, for its memory."""
    command = [sys.executable, "-m", "tests.bench.review", "--part", what]
    done = subprocess.run(command, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _screen() -> dict[str, Any]:
    from tests.bench.review_ui import first_frame, many_files

    found = await many_files()
    found["peak_mb"] = round(peak() / 1e6, 1)
    found["first_frame_50k_ms"] = await first_frame()
    return found


async def _steps() -> dict[str, Any]:
    from tests.bench.review_ui import long_review

    return dict(await long_review(40, only=tuple(STEPS_MS)))


def part(what: str) -> dict[str, Any]:
    """Return the figures of one part."""
    return asyncio.run({"screen": _screen, "steps": _steps}[what]())


def goals(found: dict[str, Any]) -> dict[str, bool]:
    """Return which goals these figures meet."""
    return {
        "times_git": found["engines"]["times_git"] <= GIT_TIMES,
        "difflib_times": found["engines"]["difflib_times"] >= DIFFLIB_TIMES,
        "diff_100k": found["long"]["diff_100k_ms"]["min"] <= 500,
        "merge": found["merge"]["merge_2000_files_s"]["min"] <= 3,
        "list": found["screen"]["open_2000_files_ms"] <= 1000,
        "block": found["screen"]["open_2000_files_block_ms"] <= 16,
        "memory": found["screen"]["peak_mb"] <= 250,
        "first_frame": found["screen"]["first_frame_50k_ms"] <= 400,
        **{name: found["steps"][name]["own"]["p95"] <= ms for name, ms in STEPS_MS.items()},
    }


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--part"]:
        sys.stdout.write(json.dumps(part(sys.argv[2])))
        return
    runs = runs_wanted()
    found: dict[str, Any] = {
        "engines": engines(runs),
        "long": long(runs),
        "merge": merge(runs),
        "plan": plan(runs),
        "screen": in_own_process("screen"),
        "steps": in_own_process("steps"),
    }
    publish({**found, "goals": goals(found)})


if __name__ == "__main__":
    main()
