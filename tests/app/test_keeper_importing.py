"""A patch that was exported, edited and brought back: it becomes decisions, or is refused whole."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.protocol import Decide, MergeRequest
from app.wire_text import to_text
from snapshot.decisions import DecisionLog, Mark, Overlay, Uniform
from snapshot.facts import edit_fact
from snapshot.lines import split_plain
from snapshot.patch import export_patch
from snapshot.patch_read import PatchRefused, apply_hunks, read_patch
from snapshot.review import ChangedFile, FileReview
from snapshot.selection import select
from tests.app.keeper_bench import NUMBERS, Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AGENTS = NUMBERS.replace("\n5\n", "\nfive\n").replace("\n20\n", "\ntwenty\nmore\n")
OPEN = Uniform("open")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    files = {
        "a.txt": NUMBERS,
        "gone.txt": "gone\n",
        "moved.txt": NUMBERS.replace("7", "seven"),
        "emptied.txt": "full\n",
    }
    with bench_of(tmp_path, files) as made:
        guest = made.guest
        guest.put(b"a.txt", AGENTS.encode(), 0o755)
        guest.put(b"new.txt", b"one\ntwo")
        guest.put(b"empty.txt", b"")
        guest.put(b"emptied.txt", b"")
        guest.put(b"caf\xe9 b/x", b"latin\xe9\n")
        guest.folder(b"caf\xe9 b")
        guest.remove(b"gone.txt")
        guest.remove(b"moved.txt")
        guest.put(b"to.txt", NUMBERS.replace("7", "seven").replace("\n9\n", "\nnine\n").encode())
        guest.link(b"link", b"a.txt")
        yield made


def patch_of(bench: Bench) -> bytes:
    files = bench.desk.files.values()
    return export_patch((bench.desk.review(file) for file in files), Uniform("accepted"))


async def _every_kind(bench: Bench) -> None:
    """Let the agent make each kind of change, alone and together with others."""
    guest = bench.guest
    for name in (b"moved.txt", b"both.txt", b"all.txt", b"gone.txt", b"void"):
        guest.remove(name)
    guest.folder(b"to")
    guest.folder(b"run b")
    guest.put(b"to/moved", NUMBERS.replace("7", "seven").encode())
    guest.put(b"to/both", NUMBERS.replace("8", "eight").encode(), 0o755)
    guest.put(b"to/all", NUMBERS.replace("9", "nine").replace("2\n", "two\n").encode(), 0o755)
    guest.put(b"run b/sh", b"one\n", 0o755)
    guest.put(b"empty run", b"", 0o755)
    guest.put(b"new run", b"one\n", 0o755)
    guest.link(b"file", b"target")
    guest.link(b"link", b"target")


EVERY_KIND = {
    "moved.txt": NUMBERS.replace("7", "seven"),
    "both.txt": NUMBERS.replace("8", "eight"),
    "all.txt": NUMBERS.replace("9", "nine"),
    "gone.txt": "gone\n",
    "void": "",
    "run b/sh": "one\n",
    "file": "file\n",
}


async def test_no_kind_of_change_is_exported_that_cannot_be_brought_back(tmp_path: Path) -> None:
    with bench_of(tmp_path, EVERY_KIND) as bench:
        await _every_kind(bench)
        await bench.take()
        files = list(bench.desk.files.values())
        assert {file.kind for file in files} == {"added", "deleted", "mode", "renamed", "type"}
        for file in files:
            review = bench.desk.review(file)
            bench.desk.import_patch(export_patch([review], Uniform("accepted")))
            now = states(bench)
            assert {path for path, state in now.items() if state != "open"} == {to_text(file.path)}
            assert now[to_text(file.path)] == "accepted"
            assert bench.desk.undo_decision()
        bench.desk.import_patch(patch_of(bench))
        assert set(states(bench).values()) == {"accepted"}


async def test_a_file_without_changed_lines_gets_none_by_a_patch(tmp_path: Path) -> None:
    lines = b"--- a/run b/sh\n+++ b/run b/sh\n@@ -1 +1 @@\n-one\n+two\n"
    kept = b"--- a/file\n+++ b/file\n@@ -0,0 +1 @@\n+target\n"
    wrong = b"deleted file mode 100644\n@@ -1 +0,0 @@\n-another\n"
    with bench_of(tmp_path, EVERY_KIND) as bench:
        await _every_kind(bench)
        await bench.take()
        for patch in (lines, kept, b"diff --git a/file b/file\n" + wrong):
            with pytest.raises(PatchRefused):
                bench.desk.import_patch(patch)


async def test_part_of_a_change_without_lines_is_left_open(tmp_path: Path) -> None:
    with bench_of(tmp_path, EVERY_KIND) as bench:
        await _every_kind(bench)
        await bench.take()
        bench.desk.import_patch(
            b"diff --git a/both.txt b/to/both\nrename from both.txt\nrename to to/both\n"
        )
        (both,) = (file for file in bench.desk.changes().files if file.path == "to/both")
        assert {unit.aspect: unit.decision for unit in both.hunks} == {
            "rename": "accepted",
            "mode": "open",
        }


def states(bench: Bench) -> dict[str, str]:
    return {file.path: file.decision for file in bench.desk.changes().files}


async def test_a_whole_patch_accepts_everything_and_undo_takes_it_back(bench: Bench) -> None:
    await bench.take()
    report = bench.desk.import_patch(patch_of(bench))
    left = {path: state for path, state in states(bench).items() if state != "accepted"}
    assert left == {}
    assert (len(report.paths), report.edited) == (len(states(bench)), 0)
    assert bench.desk.undo_decision()
    assert set(states(bench).values()) == {"open"}


async def test_dropped_hunks_stay_open_and_rejected_ones_rejected(bench: Bench) -> None:
    await bench.take()
    text = patch_of(bench)
    begin = text.index(b"diff --git a/a.txt")
    end = text.index(b"diff --git", begin + 1)
    first = text.index(b"@@ ", begin)
    second = text.index(b"@@ -17", first + 3)
    hunks = [unit.id for unit in bench.desk.changes().files[0].hunks if not unit.aspect]
    bench.desk.decide([Decide("a.txt", "rejected", (hunks[0],), reason="no")])
    report = bench.desk.import_patch(text[begin:first] + text[second:end])
    assert report.paths == ("a.txt",)
    units = {unit.id: unit for unit in bench.desk.changes().files[0].hunks}
    assert (units[hunks[0]].decision, units[hunks[0]].reason) == ("rejected", "no")
    assert units[hunks[1]].decision == "accepted"
    assert set(states(bench).values()) == {"open", "mixed"}


async def test_lines_that_were_edited_are_the_users(bench: Bench) -> None:
    await bench.take()
    text = patch_of(bench).replace(b"+five\n", b"+FIVE\n").replace(b"+more\n", b"+more\r\n")
    for _ in range(2):  # once more changes nothing
        bench.desk.import_patch(text)
        a = bench.desk.changes().files[0]
        assert [unit.edited for unit in a.hunks if not unit.aspect] == [True, True]
    bench.desk.merge(MergeRequest(reject=("new.txt",)))
    wanted = AGENTS.replace("five\n", "FIVE\n").replace("more\n", "more\r\n")
    assert (bench.workspace / "a.txt").read_bytes() == wanted.encode()


async def test_a_line_that_was_taken_out_is_a_choice_of_lines(bench: Bench) -> None:
    await bench.take()
    text = (
        patch_of(bench).replace(b"+more\n", b"").replace(b"@@ -17,7 +17,8 @@", b"@@ -17,7 +17,7 @@")
    )
    bench.desk.import_patch(text)
    last = bench.desk.changes().files[0].hunks[-1]
    assert (last.edited, sorted(last.marks)) == (False, ["a", "a", "o"])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"+five\n", b"+five\n+six\n", "another length"),
        (b" 8\n", b" 9\n", "does not fit"),
        (b" 8\n", b"-8\n+eight\n", "agent did not change"),
        (b"@@ -2,7 +2,7 @@", b"@@ -3,7 +3,7 @@", "does not fit"),
        (b"a/a.txt", b"a/other.txt", ""),
        (b"--- a/a.txt\n+++ b/a.txt", b"--- a/none\n+++ b/none", "otherwise"),
        (b"@@ -2,7 +2,7 @@", b"@@ nonsense @@", "no header"),
        (b"diff --git a/a.txt", b"diff --cc a.txt\ndiff --git a/a.txt", "binary file or a merge"),
    ],
)
async def test_what_does_not_fit_is_refused_whole(
    bench: Bench, old: bytes, new: bytes, why: str
) -> None:
    await bench.take()
    text = patch_of(bench)
    assert old in text
    if not why:
        bench.desk.import_patch(text.replace(old, new, 1))
        return
    with pytest.raises(PatchRefused, match=why):
        bench.desk.import_patch(text.replace(old, new, 1))
    assert set(states(bench).values()) == {"open"}


async def test_changes_that_are_not_the_agents_are_refused(bench: Bench) -> None:
    await bench.take()
    text = b"--- a/a.txt\n+++ b/a.txt\n@@ -12,1 +12,1 @@\n-12\n+twelve\n"
    for wrong in (text, text.replace(b"a.txt", b"none.txt")):
        with pytest.raises(PatchRefused, match="did not change"):
            bench.desk.import_patch(wrong)
    for nothing in (b"", b"no patch\n"):
        with pytest.raises(PatchRefused, match="no change"):
            bench.desk.import_patch(nothing)


word = st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"}\n", b"x\r\n", b"\x0c\n", b"\xe9\n"])
body = st.lists(word, max_size=30).flatmap(
    lambda lines: st.sampled_from([b"", b"end"]).map(lambda end: b"".join(lines) + end)
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body, body, st.integers(0, 2**32))
def test_an_export_brought_back_makes_the_same_bytes(base: bytes, agent: bytes, seed: int) -> None:
    if base == agent:
        return
    file = ChangedFile(b"f", "modified", None, "100644", "100644")
    review = FileReview(file, base, agent)
    pick = random.Random(seed)
    marks = [Mark(b"f", h.id, "".join(pick.choices("ao", k=h.size))) for h in review.hunks]
    decisions = Overlay(OPEN, marks)
    result = review.result(decisions)
    if result is None or result.content == base:
        return
    (patch,) = read_patch(export_patch([review], decisions))
    lines = apply_hunks(split_plain(base), patch.hunks)
    assert b"".join(lines) == result.content
    selected = select(review, result.content)
    assert selected is not None
    again = Overlay(_Edits({(b"f", one.hunk.id): one.edit for one in selected}), ())
    taken = {one.hunk.id: one.marks for one in selected}
    made = review.result(_Chosen(taken, again))
    assert (made.content if made else base) == result.content


class _Edits:
    def __init__(self, edits: dict[tuple[bytes, str], bytes | None]) -> None:
        self._edits = edits

    def marks(self, path: bytes, unit: str, size: int) -> str:
        return OPEN.marks(path, unit, size)

    def edit(self, path: bytes, unit: str) -> bytes | None:
        return self._edits.get((path, unit))


class _Chosen:
    def __init__(self, marks: dict[str, str], under: Overlay) -> None:
        self._marks = marks
        self._under = under

    def marks(self, path: bytes, unit: str, size: int) -> str:
        return self._marks.get(unit) or self._under.marks(path, unit, size)

    def edit(self, path: bytes, unit: str) -> bytes | None:
        return self._under.edit(path, unit)


def test_of_two_facts_of_one_key_the_last_counts(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "log")
    for _ in range(2):
        log.record((), [edit_fact(b"f", "u", None), edit_fact(b"f", "u", b"x")])
        assert log.edit(b"f", "u") == b"x"
    log.close()
