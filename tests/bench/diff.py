"""What diff, merge, rows, colours and write-back cost, in CPU milliseconds (process and children).

`python -m tests.bench.diff [--runs N]`. Inputs are made here and the same in every run: `scatter`
is 1 % scattered edits, `moved` a block moved to the end, `braces` six distinct lines only,
`rewrite` a regenerated file, `different` shares nothing, `shuffled` everything in another order.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from snapshot.diff import diff
from snapshot.highlight import highlight_window
from snapshot.intraline import changed_ranges
from snapshot.merge3 import merge_bytes
from snapshot.review import ChangedFile, FileReview
from snapshot.rows import RowModel
from tests.bench.report import publish, repeat, runs_wanted
from tests.snapshot.merge_help import Nodes, Scene, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (10_000, 100_000)
BODY = (
    "def f{0}(self, x):", '    """Say what f{0} does."""', "    if x is None:",
    "        return {0}", "    y = x + 1", "    for k in range(3):", "        y += k",
    "    return y", "",
)  # fmt: skip


def python_file(count: int) -> list[bytes]:
    """A file that looks like a module: many lines occur again and again."""
    return [(BODY[n % len(BODY)].format(n) + "\n").encode() for n in range(count)]


def edited(lines: Sequence[bytes], share: float, seed: int = 1) -> list[bytes]:
    """Drop, change or add `share` of the lines."""
    dice = random.Random(seed)
    result: list[bytes] = []
    for line in lines:
        throw = dice.random() / share
        if throw >= 1 / 3:
            result.append(b"    edited %d\n" % dice.randrange(10**6) if throw < 2 / 3 else line)
        if 2 / 3 <= throw < 1:
            result.append(b"    new %d\n" % dice.randrange(10**6))
    return result


def pair(name: str, count: int) -> tuple[list[bytes], list[bytes]]:
    """The two sides of one input."""
    dice = random.Random(2)
    lines = python_file(count)
    match name:
        case "scatter":
            return lines, edited(lines, 0.01)
        case "moved":
            return lines, edited(lines[count // 20 :] + lines[: count // 20], 0.005)
        case "braces":
            six = [dice.choice([b"{\n", b"}\n", b"\n", b"else\n", b"x\n", b"y\n"]) for _ in lines]
            return six, edited(six, 0.02)
        case "rewrite":
            return lines, edited(lines, 0.4)
        case "different":
            return lines, [b"other %d\n" % n for n in range(count)]
        case _:
            return lines, dice.sample(lines, count)


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds of one call, all of this process's threads together."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def engine(runs: int) -> dict[str, object]:
    """The diff engine alone."""
    found: dict[str, object] = {}
    for count in SIZES:
        for name in ("scatter", "moved", "braces", "rewrite", "different", "shuffled"):
            old, new = pair(name, count)
            found[f"{name}_{count}_ms"] = repeat(lambda: cpu_ms(lambda: diff(old, new)), runs)  # noqa: B023 - called before the loop goes on
            found[f"{name}_{count}_lines_shown"] = sum(
                block.old_end - block.old_start + block.new_end - block.new_start
                for block in diff(old, new)
            )
    return found


def review(old: bytes, new: bytes) -> FileReview:
    """One modified Python file under review."""
    return FileReview(ChangedFile(b"f.py", "modified", None, "100644", "100644"), old, new)


def screens(runs: int) -> dict[str, object]:
    """What a screen asks for: opening a large file, a page of rows, colours of a window."""
    old, new = (b"".join(side) for side in pair("scatter", 50_000))
    made = review(old, new)
    model = RowModel(made, "unified")
    source = made.text("new")
    known = highlight_window(source, "python", 0, 1 << 30).checkpoints
    return {
        "open_50k_lines_ms": repeat(lambda: cpu_ms(lambda: RowModel(review(old, new))), runs),
        "page_of_60_rows_ms": repeat(lambda: cpu_ms(lambda: model.rows(2000, 2060)), runs),
        "lex_50k_lines_ms": repeat(
            lambda: cpu_ms(lambda: highlight_window(source, "python", 0, 1 << 30)), 1
        ),
        "lex_window_of_60_ms": repeat(
            lambda: cpu_ms(lambda: highlight_window(source, "python", 40_000, 40_060, known)), runs
        ),
        "intraline_150_chars_us": repeat(lambda: cpu_ms(intraline) * 10, runs),
    }


def intraline() -> None:
    """A hundred pairs of lines with a changed word each."""
    line = "    result = self.compute(alpha, beta, gamma=1) + other.value[index] " * 2
    for number in range(100):
        changed_ranges(line, line.replace("beta", f"b{number}"))


def changeset(runs: int) -> dict[str, object]:
    """Two thousand files: review of all, merge and undo (wall time, syncing included)."""
    base: Nodes = {
        b"d%d/f%d.py" % (n % 50, n): text(b"".join(python_file(200)) + b"%d\n" % n)
        for n in range(2000)
    }
    agent: Nodes = {
        path: text(b"".join(edited(content.splitlines(keepends=True), 0.02, n)))
        for n, (path, (_, content)) in enumerate(base.items())
    }
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder) / "ws", Path(folder) / "merges", base, agent)
        reviewed = repeat(
            lambda: cpu_ms(lambda: [review(base[path][1], agent[path][1]) for path in base]),
            runs,
        )
        began = time.perf_counter()
        outcome = scene.merge()
        merged = time.perf_counter()
        scene.undo(outcome.merge)
        undone = time.perf_counter()
    return {
        "review_2000_files_ms": reviewed,
        "merge_2000_files_wall_s": round(merged - began, 3),
        "undo_2000_files_wall_s": round(undone - merged, 3),
        "merge_written": len(outcome.written),
    }


def merges(runs: int) -> dict[str, object]:
    """Three-way merges of whole files."""
    found: dict[str, object] = {}
    for count in SIZES:
        base = python_file(count)
        # Each side keeps to its half, so that the merge is clean and joined in full.
        half = count // 2
        ours = b"".join([*edited(base[:half], 0.01, 3), *base[half:]])
        theirs = b"".join([*base[: half + 9], *edited(base[half + 9 :], 0.01, 4)])
        whole = b"".join(base)
        found[f"merge3_{count}_ms"] = repeat(
            lambda: cpu_ms(lambda: merge_bytes(whole, ours, theirs)),  # noqa: B023 - called before the loop goes on
            runs,
        )
    return found


if __name__ == "__main__":
    wanted = runs_wanted()
    publish(
        {
            "engine": engine(wanted),
            "merge3": merges(wanted),
            "screens": screens(wanted),
            "changeset": changeset(wanted),
        }
    )
