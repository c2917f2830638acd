"""Mirror and review desk: generations, decisions, merges, over a real snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.keeper import generation, merging
from app.keeper.review_service import page_of
from app.protocol import Changes, Decide, FileChange, MergeRequest
from app.protocol_review import StepReport
from snapshot.errors import SnapshotError
from snapshot.review import NOTHING_TO_WRITE
from snapshot.writeback import Refusal, run_merge, undo_merge
from tests.app.keeper_bench import NUMBERS, Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from snapshot.review import ChangedFile, FileReview
    from snapshot.undo import UndoOutcome
    from snapshot.writeback import MergePlan
    from snapshot.writeback_run import MergeOutcome


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(tmp_path, {"a.txt": NUMBERS, "src/b.txt": "b\n", "gone.txt": "gone\n"}) as made:
        yield made


def edited(bench: Bench) -> None:
    """Change lines 2 and 29, add a program, remove a file."""
    text = NUMBERS.replace("2\n", "two\n", 1).replace("29\n", "twenty-nine\n")
    bench.guest.put(b"a.txt", text.encode())
    bench.guest.put(b"tool.sh", b"#!/bin/sh\n", 0o755)
    bench.guest.remove(b"gone.txt")


def kinds(bench: Bench) -> dict[str, str]:
    return {file.path: file.kind for file in bench.desk.changes().files}


async def test_nothing_changed_is_a_generation_too(bench: Bench) -> None:
    assert await bench.take()
    assert (bench.mirror.generation, kinds(bench)) == (1, {})
    assert not await bench.take()
    assert bench.mirror.generation == 1


async def test_a_pass_finds_the_net_change_and_fetches_each_content_once(bench: Bench) -> None:
    edited(bench)
    assert await bench.take()
    assert kinds(bench) == {"a.txt": "modified", "gone.txt": "deleted", "tool.sh": "added"}
    assert sorted(bench.guest.fetched) == [b"a.txt", b"tool.sh"]
    assert bench.guest.synced == 1
    bench.guest.put(b"new", b"new\n")
    assert await bench.take(freeze=True)
    assert bench.guest.frozen
    assert bench.guest.fetched[2:] == [b"new"]


async def test_a_new_keeper_goes_on_with_the_same_generation(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    before = bench.desk.changes()
    bench.desk.close()
    bench.open()
    assert bench.desk.changes() == before
    assert not await bench.take()


async def test_a_content_that_changed_while_it_was_read_is_taken_later(bench: Bench) -> None:
    bench.guest.put(b"busy", b"half\n")
    bench.guest.torn.add(b"busy")
    await bench.take()
    (file,) = bench.desk.changes().files
    assert (file.path, file.agent) == ("busy", "")
    assert file.note
    assert not await bench.take()
    bench.guest.torn.clear()
    assert await bench.take()
    (file,) = bench.desk.changes().files
    assert (file.note, file.added) == ("", 1)


async def test_a_content_that_vanished_does_not_stop_the_others(bench: Bench) -> None:
    bench.guest.put(b"one", b"1\n")
    bench.guest.put(b"two", b"2\n")
    bench.guest.failing.add(b"one")
    await bench.take()
    notes = {file.path: bool(file.note) for file in bench.desk.changes().files}
    assert notes == {"one": True, "two": False}


async def test_a_hostile_listing_is_refused_and_the_last_generation_stays(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    before = bench.desk.changes()
    bench.guest.put(b"../../escape", b"x")
    with pytest.raises(SnapshotError):
        await bench.take()
    assert bench.desk.changes() == before


async def test_a_merge_compares_lines_only_where_some_of_them_are_accepted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(bench)
    bench.guest.folder(b"src")
    bench.guest.put(b"src/b.txt", b"undecided\n")
    await bench.take()
    compared: list[bytes] = []
    review = generation.Generation.review

    def noted(self: generation.Generation, file: ChangedFile) -> FileReview:
        compared.append(file.path)
        return review(self, file)

    bench.desk.decide([Decide(name, "accepted") for name in ("a.txt", "gone.txt", "tool.sh")])
    monkeypatch.setattr(generation.Generation, "review", noted)
    assert len(bench.desk.merge(MergeRequest(dry_run=True)).written) == 3
    assert compared == []
    hunk = bench.desk.changes().files[0].hunks[0]
    bench.desk.decide([Decide("a.txt", "open", (hunk.id,))])
    compared.clear()
    assert len(bench.desk.merge(MergeRequest()).written) == 3
    assert set(compared) == {b"a.txt"}
    assert (bench.workspace / "a.txt").read_text() == NUMBERS.replace("29\n", "twenty-nine\n")
    assert not (bench.workspace / "gone.txt").exists()


async def test_names_that_are_not_utf8_pass_through(bench: Bench) -> None:
    bench.guest.put(b"caf\xe9 [1]", b"x\n")
    await bench.take()
    (file,) = bench.desk.changes().files
    merged = bench.desk.merge(MergeRequest(accept=(file.path,)))
    assert merged.written == (file.path,)
    assert (bench.workspace.joinpath("caf\udce9 [1]")).read_bytes() == b"x\n"


async def test_decisions_are_recorded_undone_and_redone(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    hunks = [hunk.id for hunk in bench.desk.changes().files[0].hunks]
    bench.desk.decide([Decide("a.txt", "accepted", (hunks[0],)), Decide("gone.txt", "rejected")])

    def decided() -> dict[str, str]:
        return {file.path: file.decision for file in bench.desk.changes().files}

    assert decided() == {"a.txt": "mixed", "gone.txt": "rejected", "tool.sh": "open"}
    assert bench.desk.undo_decision()
    assert set(decided().values()) == {"open"}
    assert bench.desk.undo_decision() == StepReport()
    assert bench.desk.redo_decision()
    assert decided()["gone.txt"] == "rejected"
    report = bench.desk.merge(MergeRequest())
    assert report.written == ("a.txt",)
    assert (bench.workspace / "a.txt").read_text() == NUMBERS.replace("2\n", "two\n", 1)


async def test_single_lines_of_a_hunk_are_decided(bench: Bench) -> None:
    bench.guest.folder(b"src")
    bench.guest.put(b"src/b.txt", b"b\nfirst\nsecond\n")
    await bench.take()
    (file,) = bench.desk.changes().files
    bench.desk.decide([Decide("src/b.txt", "accepted", (file.hunks[0].id,), (1,))])
    bench.desk.merge(MergeRequest())
    assert (bench.workspace / "src" / "b.txt").read_text() == "b\nsecond\n"


async def test_decisions_about_nothing_are_refused(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    with pytest.raises(AppError) as caught:
        bench.desk.decide([Decide("nothing", "accepted")])
    assert caught.value.code == "not-found"
    with pytest.raises(SnapshotError):
        bench.desk.decide([Decide("a.txt", "accepted", ("no-hunk",))])


async def test_merge_takes_literal_paths_first_and_patterns_second(bench: Bench) -> None:
    for name in (b"[ab].txt", b"b.txt", b"deep"):
        bench.guest.put(name, b"x\n") if name != b"deep" else bench.guest.folder(name)
    bench.guest.put(b"deep/c.txt", b"x\n")
    await bench.take()

    def would(*accept: str, reject: tuple[str, ...] = ()) -> set[str]:
        request = MergeRequest(accept=accept, reject=reject, dry_run=True)
        return set(bench.desk.merge(request).written)

    assert would("[ab].txt") == {"[ab].txt"}
    assert would("[abc].txt") == {"b.txt", "deep/c.txt"}
    assert would("*.txt", reject=("deep",)) == {"[ab].txt", "b.txt"}
    assert would("./b.txt") == {"b.txt"}
    for pattern in ("*.none", "a/b/"):
        with pytest.raises(AppError) as caught:
            would(pattern)
        assert caught.value.code == "not-found"


async def test_a_pattern_accepts_nothing_that_is_held_and_a_name_does(bench: Bench) -> None:
    edited(bench)
    bench.guest.put(b".envrc", b"export X=1\n")
    await bench.take()

    def dry(*accept: str, reject: tuple[str, ...] = ()) -> tuple[set[str], dict[str, str]]:
        request = MergeRequest(accept=accept, reject=reject, dry_run=True)
        report = bench.desk.merge(request)
        return set(report.written), {one.path: one.reason for one in report.held}

    risks = {file.path: file.risk for file in bench.desk.changes().files if file.tier == "held"}
    assert set(risks) == {"tool.sh", ".envrc"}
    assert dry("*") == ({"a.txt", "gone.txt"}, risks)
    assert dry("*.sh") == (set(), {"tool.sh": risks["tool.sh"]})
    for both in (("*", "tool.sh"), ("tool.sh", "*")):
        written, held = dry(*both)
        assert (written, set(held)) == ({"a.txt", "gone.txt", "tool.sh"}, {".envrc"})
    assert dry("*", "./tool.sh", ".envrc")[1] == {}
    assert dry("*", reject=("tool.sh", ".envrc")) == ({"a.txt", "gone.txt"}, {})


async def test_a_pattern_leaves_rejected_what_was_rejected_and_a_name_does_not(
    bench: Bench,
) -> None:
    edited(bench)
    await bench.take()
    first, second = bench.desk.changes().files[0].hunks
    bench.desk.decide([Decide("a.txt", "rejected", (first.id,), reason="no")])
    bench.desk.decide([Decide("gone.txt", "rejected")])

    def dry(*accept: str, reject: tuple[str, ...] = ()) -> tuple[set[str], tuple[str, ...]]:
        request = MergeRequest(accept=accept, reject=reject, dry_run=True)
        report = bench.desk.merge(request)
        return set(report.wrote) | set(report.deleted), report.kept

    assert dry("*") == ({"a.txt"}, ("a.txt", "gone.txt"))
    for both in (("*", "gone.txt"), ("gone.txt", "*")):
        assert dry(*both) == ({"a.txt", "gone.txt"}, ("a.txt",))
    assert dry("*", reject=("a.txt", "gone.txt")) == (set(), ())
    assert dry("a.txt") == ({"a.txt"}, ())
    bench.desk.merge(MergeRequest(accept=("*",)))
    units = {unit.id: unit for file in bench.desk.changes().files for unit in file.hunks}
    assert (units[first.id].decision, units[first.id].reason) == ("rejected", "no")
    assert units[second.id].decision == "accepted"
    wanted = NUMBERS.replace("29\n", "twenty-nine\n")
    assert (bench.workspace / "a.txt").read_text() == wanted


async def test_a_mode_without_a_file_is_named_and_not_called_accepted(bench: Bench) -> None:
    edited(bench)
    bench.guest.put(b"empty.sh", b"", 0o755)
    await bench.take()
    files = {file.path: file for file in bench.desk.changes().files}
    for name in ("tool.sh", "empty.sh"):
        for unit in files[name].hunks:
            bench.desk.decide(
                [Decide(name, "accepted" if unit.aspect == "mode" else "rejected", (unit.id,))]
            )
    for request in (MergeRequest(dry_run=True), MergeRequest(accept=("*",))):
        report = bench.desk.merge(request)
        left = {one.path: one.reason for one in report.skipped}
        assert left == dict.fromkeys(("empty.sh", "tool.sh"), NOTHING_TO_WRITE)
    assert "of 2 hunks" not in bench.desk.requests.request().text
    assert not (bench.workspace / "tool.sh").exists()


async def test_merge_and_undo_tell_what_they_leave_on_disk(bench: Bench) -> None:
    edited(bench)
    bench.guest.remove(b"src/b.txt")
    bench.guest.folder(b"src")
    bench.guest.put(b"src/c.txt", b"b\n")
    await bench.take()
    assert kinds(bench)["src/c.txt"] == "renamed"
    asked = ("a.txt", "gone.txt", "tool.sh", "src/c.txt")
    wrote, deleted = {"a.txt", "tool.sh", "src/c.txt"}, {"gone.txt", "src/b.txt"}
    for dry in (True, False):
        report = bench.desk.merge(MergeRequest(accept=asked, dry_run=dry))
        assert (set(report.wrote), set(report.deleted)) == (wrote, deleted)
        assert set(report.written) == set(asked)
    undone = bench.desk.undo(report.merge)
    assert set(undone.wrote) == {"a.txt", "gone.txt", "src/b.txt"}
    assert set(undone.deleted) == {"tool.sh", "src/c.txt"}
    assert set(undone.restored) == set(asked)


async def test_what_an_undo_leaves_to_you_is_not_told_as_done(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    report = bench.desk.merge(MergeRequest(accept=("a.txt", "tool.sh")))
    (bench.workspace / "tool.sh").write_text("mine\n")
    undone = bench.desk.undo(report.merge)
    assert (undone.wrote, undone.deleted, undone.conflicts) == (("a.txt",), (), ("tool.sh",))


async def test_what_is_held_stays_open_and_keeps_what_was_decided(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    assert [one.path for one in bench.desk.merge(MergeRequest(accept=("*",))).held] == ["tool.sh"]
    decided = {file.path: file.decision for file in bench.desk.changes().files}
    assert decided == {"a.txt": "accepted", "gone.txt": "accepted", "tool.sh": "open"}
    bench.desk.decide([Decide("tool.sh", "accepted")])
    report = bench.desk.merge(MergeRequest(accept=("*",)))
    assert (report.written, report.held) == (("tool.sh",), ())


async def test_what_the_command_line_accepts_is_recorded(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    bench.desk.merge(MergeRequest(accept=("gone.txt",)))
    decided = {file.path: file.decision for file in bench.desk.changes().files}
    assert decided == {"a.txt": "open", "gone.txt": "accepted", "tool.sh": "open"}
    assert not (bench.workspace / "gone.txt").exists()


async def test_accept_safe_leaves_out_what_can_execute(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    report = bench.desk.merge(MergeRequest(accept_safe=True, dry_run=True))
    assert set(report.written) == {"a.txt", "gone.txt"}


async def test_hunks_are_accepted_by_unique_prefix(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    hunk = bench.desk.changes().files[0].hunks[1].id
    bench.desk.merge(MergeRequest(hunks=(hunk[:8],)))
    assert (bench.workspace / "a.txt").read_text() == NUMBERS.replace("29\n", "twenty-nine\n")
    with pytest.raises(AppError):
        bench.desk.merge(MergeRequest(hunks=("zzz",)))


async def test_a_conflict_writes_nothing_and_is_named(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    mine = NUMBERS.replace("2\n", "zwei\n", 1)
    (bench.workspace / "a.txt").write_text(mine)
    report = bench.desk.merge(MergeRequest(accept=("a.txt",)))
    assert (report.written, report.conflicts) == ((), ("a.txt",))
    assert (bench.workspace / "a.txt").read_text() == mine


async def test_my_own_edits_elsewhere_survive_merge_and_undo(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    mine = NUMBERS.replace("15\n", "fifteen\n")
    (bench.workspace / "a.txt").write_text(mine)
    files = {file.path: file for file in bench.desk.changes().files}
    assert files["a.txt"].drift
    assert not files["gone.txt"].drift
    report = bench.desk.merge(MergeRequest(accept=("a.txt",)))
    assert report.notices == ("a.txt: merged with your changes",)
    both = mine.replace("2\n", "two\n", 1).replace("29\n", "twenty-nine\n")
    assert (bench.workspace / "a.txt").read_text() == both
    undone = bench.desk.undo(report.merge[:-2])
    assert (undone.restored, undone.conflicts) == (("a.txt",), ())
    assert (bench.workspace / "a.txt").read_text() == mine
    with pytest.raises(AppError):
        bench.desk.undo("nothing")


async def test_a_weaker_guarantee_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    edited(bench)
    await bench.take()
    weaker = (Refusal(b".", "One step had a weaker guarantee."),)

    def run(plan: Callable[[], MergePlan], merges: Path) -> MergeOutcome:
        return replace(run_merge(plan, merges), notices=weaker)

    def undo(merges: Path, merge: str) -> UndoOutcome:
        return replace(undo_merge(merges, merge), notices=weaker)

    monkeypatch.setattr(merging, "run_merge", run)
    monkeypatch.setattr(merging, "undo_merge", undo)
    report = bench.desk.merge(MergeRequest(accept=("gone.txt",)))
    assert report.notices == ("One step had a weaker guarantee.",)
    assert bench.desk.undo(report.merge).notices == report.notices


async def test_touching_a_file_is_no_drift(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    (bench.workspace / "a.txt").write_text(NUMBERS)
    assert not bench.desk.changes().files[0].drift
    (bench.workspace / "a.txt").chmod(0o755)
    assert bench.desk.changes().files[0].drift


async def test_links_are_changes_of_their_target(bench: Bench) -> None:
    bench.guest.link(b"link", b"a.txt")
    await bench.take()
    (file,) = bench.desk.changes().files
    assert (file.kind, file.mode) == ("added", "120000")
    bench.desk.merge(MergeRequest(accept=("link",)))
    assert (bench.workspace / "link").readlink().name == "a.txt"


def test_pages_hold_whole_files_and_always_one() -> None:
    files = tuple(FileChange(f"{'x' * 1000}{number}", "added") for number in range(2000))
    changes = Changes("s", 1, files)
    found: list[FileChange] = []
    while len(found) < len(files):
        page = page_of(changes, len(found))
        assert page.total == 2000
        assert page.changes.files
        found += page.changes.files
    assert tuple(found) == files
    assert page_of(changes, 5000).changes.files == ()


async def test_a_file_that_was_renamed_and_edited_is_one_change(bench: Bench) -> None:
    bench.guest.remove(b"a.txt")
    bench.guest.put(b"moved.txt", NUMBERS.replace("2\n", "two\n", 1).encode())
    await bench.take()
    (file,) = bench.desk.changes().files
    assert (file.path, file.old_path, file.kind) == ("moved.txt", "a.txt", "renamed")
    assert [hunk.aspect for hunk in file.hunks] == ["rename", ""]


async def test_a_byte_order_mark_is_no_line_in_the_numbers_of_hunks(bench: Bench) -> None:
    bench.guest.put(b"a.txt", b"\xef\xbb\xbf" + NUMBERS.replace("20\n", "twenty\n").encode())
    await bench.take()
    (file,) = bench.desk.changes().files
    spans = [(h.old_start, h.old_lines, h.new_start, h.new_lines) for h in file.hunks]
    assert spans[-1] == (20, 1, 20, 1)


async def test_a_lost_content_is_fetched_again(bench: Bench) -> None:
    bench.guest.put(b"new", b"new\n")
    await bench.take()
    (file,) = bench.desk.changes().files
    (bench.folder / "blobs" / file.agent[:2] / file.agent).unlink()
    bench.desk.close()
    bench.open()
    (lost,) = bench.desk.changes().files
    assert lost.note
    assert await bench.take()
    assert bench.desk.changes().files == (file,)


async def test_what_waits_for_a_decision_is_counted(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    assert bench.desk.open_units == 5  # two hunks, a new file's content and mode, a deletion
    files = [file.path for file in bench.desk.changes().files]
    bench.desk.decide([Decide(path, "rejected") for path in files])
    assert bench.desk.open_units == 0
    bench.desk.undo_decision()
    bench.desk.decide([Decide(path, "accepted") for path in files])
    bench.desk.merge(MergeRequest())
    assert bench.desk.open_units == 0
    bench.guest.put(b"later", b"later\n")
    await bench.take()
    assert bench.desk.open_units == 1


async def test_merges_in_force_are_known_also_to_the_next_keeper(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    assert bench.desk.changes().last_merge == ""
    first = bench.desk.merge(MergeRequest(accept=("a.txt",)))
    second = bench.desk.merge(MergeRequest(accept=("tool.sh", "gone.txt")))
    bench.desk.close()
    bench.open()
    changes = bench.desk.changes()
    assert (changes.last_merge, changes.last_merge_files) == (second.merge, 2)
    assert all(file.merged for file in changes.files)
    bench.desk.undo(second.merge)
    changes = bench.desk.changes()
    assert changes.last_merge == first.merge
    assert [file.path for file in changes.files if file.merged] == ["a.txt"]
    bench.desk.undo(first.merge)
    assert bench.desk.changes().last_merge == ""


async def test_a_viewed_mark_outlives_the_keeper_and_not_a_change(bench: Bench) -> None:
    edited(bench)
    await bench.take()
    bench.desk.view("a.txt", viewed=True)
    bench.desk.view("tool.sh", viewed=True)
    bench.desk.view("tool.sh", viewed=False)
    bench.desk.close()
    bench.open()
    await bench.take()
    assert viewed(bench) == ["a.txt"]
    bench.guest.put(b"a.txt", b"other\n")
    await bench.take()
    assert viewed(bench) == []
    with pytest.raises(AppError):
        bench.desk.view("never.txt", viewed=True)


def viewed(bench: Bench) -> list[str]:
    return [file.path for file in bench.desk.changes().files if file.viewed]
