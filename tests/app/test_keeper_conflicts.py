"""Conflicts solved in the log, and merges that build on earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Decide, MergeRequest
from app.protocol_review import ConflictChoice, EditRequest, Resolve, StepReport
from snapshot.writeback_plan import ALREADY, KEPT
from tests.app.keeper_bench import NUMBERS, Bench, agent_writes, bench_of, hunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.protocol import MergeReport

AGENTS = NUMBERS.replace("\n5\n", "\nagent\n").replace("\n20\n", "\ntwenty\n")
MINE = NUMBERS.replace("\n5\n", "\nmine\n")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(
        tmp_path, {"a.txt": NUMBERS, "gone.txt": "gone\n", "data.bin": b"\0base"}
    ) as made:
        yield made


def merge(bench: Bench, *accept: str) -> MergeReport:
    return bench.desk.merge(MergeRequest(accept=accept))


def now(bench: Bench, name: str = "a.txt") -> str:
    return (bench.workspace / name).read_text()


@pytest.mark.parametrize(
    ("choice", "lines"),
    [
        ("base", "5\n"),
        ("yours", "mine\n"),
        ("agent", "agent\n"),
        ("both", "mine\nagent\n"),
        ("both-reversed", "agent\nmine\n"),
        ("text", "neither\n"),
    ],
)
async def test_a_conflict_is_solved_by_a_choice_that_outlives_the_keeper(
    bench: Bench, choice: ConflictChoice, lines: str
) -> None:
    await agent_writes(bench, AGENTS)
    (bench.workspace / "a.txt").write_text(MINE)
    report = merge(bench, "a.txt")
    assert (report.written, report.conflicts) == ((), ("a.txt",))
    assert [one.reason for one in report.reasons] == ["you changed the same lines"]
    (conflict,) = bench.desk.conflicts.all()
    assert (conflict.base, conflict.yours, conflict.agent) == (b"5\n", b"mine\n", b"agent\n")
    assert (conflict.path, conflict.kind, conflict.line, conflict.choice) == (
        "a.txt",
        "lines",
        5,
        "",
    )
    bench.desk.conflicts.resolve(Resolve("a.txt", choice, conflict.id, b"neither\n"))
    bench.desk.close()
    bench.open()
    (solved,) = bench.desk.conflicts.all("a.txt")
    assert (solved.id, solved.choice) == (conflict.id, choice)
    assert merge(bench).written == ("a.txt",)
    wanted = AGENTS.replace("\nagent\n", f"\n{lines}")
    assert now(bench) == wanted
    assert bench.desk.conflicts.all() == (), "what was solved stays solved"
    assert merge(bench).skipped[0].reason == ALREADY
    assert now(bench) == wanted


async def test_a_resolution_holds_for_these_three_sides_only(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    (bench.workspace / "a.txt").write_text(MINE)
    bench.desk.decide([Decide("a.txt", "accepted")])
    bench.desk.conflicts.resolve(Resolve("a.txt", "agent"))
    (bench.workspace / "a.txt").write_text(MINE.replace("mine", "more of mine"))
    (conflict,) = bench.desk.conflicts.all()
    assert conflict.choice == ""
    assert merge(bench).conflicts == ("a.txt",)
    (bench.workspace / "a.txt").write_text(MINE)
    (conflict,) = bench.desk.conflicts.all()
    assert conflict.choice == "agent"
    assert bench.desk.undo_decision() == StepReport(solutions=1)
    (conflict,) = bench.desk.conflicts.all()
    assert conflict.choice == ""
    assert bench.desk.redo_decision()
    bench.desk.conflicts.resolve(Resolve("a.txt", "open", conflict.id))
    (conflict,) = bench.desk.conflicts.all()
    assert conflict.choice == ""


@pytest.mark.parametrize("choice", ["yours", "agent"])
async def test_whole_entries_are_chosen_between(bench: Bench, choice: ConflictChoice) -> None:
    bench.guest.put(b"data.bin", b"\0agent")
    bench.guest.remove(b"gone.txt")
    await agent_writes(bench, "agent's\n", b"new.txt")
    mine = {"data.bin": b"\0mine", "gone.txt": b"not gone\n", "new.txt": b"mine\n"}
    for name, data in mine.items():
        (bench.workspace / name).write_bytes(data)
    report = merge(bench, "*", "data.bin")
    assert set(report.conflicts) == set(mine)
    conflicts = {one.path: one for one in bench.desk.conflicts.all()}
    assert {path: one.yours for path, one in conflicts.items()} == mine
    assert {one.kind for one in conflicts.values()} == {"whole"}
    with pytest.raises(AppError, match="cannot be chosen"):
        bench.desk.conflicts.resolve(Resolve("data.bin", "both"))
    for path in mine:
        bench.desk.conflicts.resolve(Resolve(path, choice))
    report = merge(bench)
    if choice == "yours":
        assert {one.reason for one in report.skipped} == {KEPT}
        assert {name: (bench.workspace / name).read_bytes() for name in mine} == mine
        return
    assert set(report.written) == set(mine)
    assert (bench.workspace / "data.bin").read_bytes() == b"\0agent"
    assert now(bench, "new.txt") == "agent's\n"
    assert not (bench.workspace / "gone.txt").exists()
    bench.desk.undo(report.merge)
    assert {name: (bench.workspace / name).read_bytes() for name in mine} == mine


async def test_what_cannot_be_solved_is_refused(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    bench.desk.decide([Decide("a.txt", "accepted")])
    for wrong in (Resolve("a.txt", "agent"), Resolve("nothing", "agent")):
        with pytest.raises(AppError) as caught:
            bench.desk.conflicts.resolve(wrong)
        assert caught.value.code == "not-found"


async def test_what_a_merge_was_asked_for_is_recorded_as_one_step(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    dry = bench.desk.merge(MergeRequest(hunks=(hunk(bench).id,), dry_run=True))
    assert (dry.open, bench.desk.open_units) == (1, 2)
    report = bench.desk.merge(MergeRequest(hunks=(hunk(bench).id,)))
    assert (report.open, bench.desk.open_units) == (1, 1)
    assert (hunk(bench).decision, hunk(bench).merged) == ("accepted", True)
    assert (hunk(bench, index=1).decision, hunk(bench, index=1).merged) == ("open", False)
    bench.desk.merge(MergeRequest(reject=("a.txt",)))
    assert bench.desk.open_units == 0
    assert bench.desk.undo_decision()
    assert hunk(bench).decision == "accepted"


async def test_what_a_merge_wrote_is_no_edit_of_mine(bench: Bench) -> None:
    bench.guest.remove(b"gone.txt")
    bench.guest.put(b"new.txt", b"new\n", 0o755)
    await agent_writes(bench, AGENTS)

    def drifted() -> set[str]:
        return {file.path for file in bench.desk.changes().files if file.drift}

    merge(bench, "*", "new.txt")
    assert drifted() == set()
    (bench.workspace / "a.txt").write_text(AGENTS + "mine\n")
    (bench.workspace / "new.txt").chmod(0o644)
    (bench.workspace / "gone.txt").write_text("back\n")
    assert drifted() == {"a.txt", "new.txt", "gone.txt"}


async def test_more_of_a_new_file_is_merged_later(bench: Bench) -> None:
    await agent_writes(bench, "one\ntwo\nthree\n", b"new.txt")
    unit = hunk(bench, "new.txt").id
    bench.desk.decide([Decide("new.txt", "accepted", (unit,), (1,))])
    merge(bench)
    assert now(bench, "new.txt") == "two\n"
    (bench.workspace / "new.txt").write_text("two\nmine\n")
    bench.desk.decide([Decide("new.txt", "accepted", (unit,), (0,))])
    assert not hunk(bench, "new.txt").merged
    assert merge(bench).conflicts == ()
    assert now(bench, "new.txt") == "one\ntwo\nmine\n"


async def test_the_agents_second_version_of_merged_lines_is_no_conflict(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    merge(bench, "a.txt")
    await agent_writes(bench, AGENTS.replace("agent", "better"))
    assert (hunk(bench).merged, hunk(bench, index=1).merged) == (False, True)
    report = merge(bench, "a.txt")
    assert (report.written, report.conflicts) == (("a.txt",), ())
    assert now(bench) == AGENTS.replace("agent", "better")
    await agent_writes(bench, AGENTS.replace("agent", "worse"))
    bench.desk.decide([Decide("a.txt", "rejected", (hunk(bench).id,))])
    assert merge(bench).written == ()
    assert now(bench) == AGENTS.replace("agent", "better"), "what was merged stays"


async def test_a_merged_rename_takes_more_of_the_file(bench: Bench) -> None:
    bench.guest.remove(b"a.txt")
    await agent_writes(bench, AGENTS, b"moved.txt")
    rename = hunk(bench, "moved.txt")
    assert rename.aspect == "rename"
    bench.desk.merge(MergeRequest(hunks=(rename.id,)))
    assert now(bench, "moved.txt") == NUMBERS
    report = merge(bench, "moved.txt")
    assert (report.written, report.conflicts) == (("moved.txt",), ())
    assert now(bench, "moved.txt") == AGENTS


async def test_an_undone_merge_is_nothing_to_build_on(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    first = bench.desk.merge(MergeRequest(hunks=(hunk(bench).id,)))
    second = merge(bench, "a.txt")
    assert now(bench) == AGENTS
    bench.desk.undo(first.merge)
    assert now(bench) == NUMBERS.replace("\n20\n", "\ntwenty\n")
    assert merge(bench).written == ("a.txt",), "it is accepted, and not there"
    assert now(bench) == AGENTS
    bench.desk.undo(second.merge)


async def test_my_edits_after_a_merge_survive_the_next(bench: Bench) -> None:
    await agent_writes(bench, AGENTS)
    bench.desk.merge(MergeRequest(hunks=(hunk(bench).id,)))
    (bench.workspace / "a.txt").write_text(now(bench).replace("\nagent\n", "\nagent, by me\n"))
    merge(bench, "a.txt")
    assert now(bench) == AGENTS.replace("\nagent\n", "\nagent, by me\n")
    bench.desk.edit(EditRequest("a.txt", hunk(bench).id, b"another\n"))
    assert not hunk(bench).merged
    assert merge(bench).conflicts == ("a.txt",), "both of us changed it since"
