"""Comments, reasons and edits at the review desk: what they survive, and what undoes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Decide, MergeRequest
from app.protocol_review import MAX_COMMENT, CommentRequest, EditRequest, StepReport
from snapshot.errors import SnapshotError
from tests.app.keeper_bench import NUMBERS, Bench, agent_writes, bench_of, hunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LATE = NUMBERS.replace("20\n", "this was twenty, a longer line\n")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(tmp_path, {"a.txt": NUMBERS, "gone.txt": "gone\n"}) as made:
        yield made


async def test_a_comment_moves_with_its_hunk_and_is_outdated_without_it(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    made = bench.desk.remarks.write(CommentRequest("a.txt", " why? ", start=20))
    assert (made.text, made.start, made.end, made.hunk) == ("why?", 20, 20, hunk(bench).id)
    assert (made.quote, made.outdated, made.sent) == (
        "this was twenty, a longer line\n",
        False,
        False,
    )
    await agent_writes(bench, "one more\ntwo more\n" + LATE)
    (moved,) = bench.desk.remarks.all()
    assert (moved.start, moved.end, moved.outdated) == (22, 22, False)
    await agent_writes(bench, LATE.replace("longer", "LONGER"))
    (old,) = bench.desk.remarks.all()
    assert (old.start, old.outdated, old.quote) == (20, True, made.quote)
    await agent_writes(bench, LATE)
    assert bench.desk.remarks.all() == (made,)


async def test_a_comment_survives_a_path_that_is_no_change_any_more(bench: Bench) -> None:
    await agent_writes(bench, "new\n", b"new.txt")
    made = bench.desk.remarks.write(CommentRequest("new.txt", "no"))
    bench.guest.remove(b"new.txt")
    await bench.take()
    assert [file.path for file in bench.desk.changes().files] == []
    (left,) = bench.desk.remarks.all()
    assert (left.id, left.text, left.outdated) == (made.id, "no", True)


async def test_comments_on_context_a_file_and_the_review(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    context = bench.desk.remarks.write(CommentRequest("a.txt", "here", "old", 2, 3))
    whole = bench.desk.remarks.write(CommentRequest("a.txt", "all of it"))
    review = bench.desk.remarks.write(CommentRequest("", "thanks"))
    of_hunk = bench.desk.remarks.write(CommentRequest("a.txt", "this", hunk=hunk(bench).id))
    assert (context.hunk, context.quote) == ("", "2\n3\n")
    assert (whole.start, whole.end) == (0, 0)
    assert (of_hunk.start, of_hunk.end) == (20, 20)
    assert bench.desk.changes().files[0].comments == 3
    await agent_writes(bench, LATE + "31\n")
    outdated = {comment.id for comment in bench.desk.remarks.all() if comment.outdated}
    assert outdated == {whole.id}, "the old side did not change, nor did the hunk"
    assert review.id not in outdated


async def test_comments_are_in_the_log_with_undo_and_for_the_next_keeper(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    first = bench.desk.remarks.write(CommentRequest("a.txt", "first", start=20))
    bench.desk.decide([Decide("a.txt", "rejected", reason="no words")])
    again = bench.desk.remarks.write(CommentRequest("a.txt", "second", id=first.id[:4]))
    assert (again.id, again.start, again.text) == (first.id, 20, "second")
    bench.desk.remarks.remove(first.id)
    assert bench.desk.remarks.all() == ()
    bench.desk.close()
    bench.open()
    assert bench.desk.undo_decision() == StepReport(comments=1)
    assert [comment.text for comment in bench.desk.remarks.all()] == ["second"]
    assert bench.desk.undo_decision()
    assert [comment.text for comment in bench.desk.remarks.all()] == ["first"]
    assert bench.desk.undo_decision()
    assert (hunk(bench).decision, hunk(bench).reason) == ("open", "")
    assert bench.desk.redo_decision()
    assert (hunk(bench).decision, hunk(bench).reason) == ("rejected", "no words")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CommentRequest("a.txt", " \n"), "usage"),
        (CommentRequest("a.txt", "x" * (MAX_COMMENT + 1)), "usage"),
        (CommentRequest("a.txt", "x", start=31), "usage"),
        (CommentRequest("a.txt", "x", start=5, end=4), "usage"),
        (CommentRequest("a.txt", "x", start=-1), "usage"),
        (CommentRequest("nothing", "x"), "not-found"),
        (CommentRequest("a.txt", "x", hunk="no"), "not-found"),
        (CommentRequest("a.txt", "x", id="no"), "not-found"),
    ],
)
async def test_comments_on_nothing_are_refused(
    bench: Bench, request_: CommentRequest, code: str
) -> None:
    await agent_writes(bench, LATE)
    with pytest.raises((AppError, SnapshotError)) as caught:
        bench.desk.remarks.write(request_)
    assert getattr(caught.value, "code", "") == code
    assert bench.desk.remarks.all() == ()


async def test_a_reason_goes_with_its_rejection(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    bench.desk.decide([Decide("a.txt", "rejected", reason="no")])
    bench.desk.decide([Decide("a.txt", "accepted")])
    assert hunk(bench).reason == ""
    bench.desk.undo_decision()
    assert (hunk(bench).decision, hunk(bench).reason) == ("rejected", "no")


async def test_rejected_lines_that_come_back_are_known(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    bench.desk.decide([Decide("a.txt", "rejected")])
    assert not hunk(bench).rejected_before, "it never went"
    moved = "this was twenty, a longer line\n"
    await agent_writes(bench, LATE.replace("19\n", "19!\n"))
    assert not hunk(bench).rejected_before, "it is another change now"
    await agent_writes(bench, NUMBERS.replace("\n5\n", "\n5\n" + moved))
    assert not hunk(bench).rejected_before, "here nothing goes away in return"
    bench.desk.decide([Decide("a.txt", "rejected")])
    await agent_writes(bench, NUMBERS.replace("\n25\n", "\n25\n" + moved))
    assert hunk(bench).decision == "open"
    assert hunk(bench).rejected_before
    bench.desk.decide([Decide("a.txt", "accepted")])
    assert not hunk(bench).rejected_before


async def test_an_edit_stands_in_place_of_a_hunk(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    before = bench.desk.hunk_result("a.txt", hunk(bench).id)
    assert (before.content, before.proposed) == (b"20\n", b"this was twenty, a longer line\n")
    bench.desk.edit(EditRequest("a.txt", hunk(bench).id, b"mine\nand more"))
    assert (hunk(bench).decision, hunk(bench).edited) == ("accepted", True)
    bench.desk.close()
    bench.open()
    after = bench.desk.hunk_result("a.txt", hunk(bench).id)
    assert (after.content, after.edited) == (b"mine\nand more", True)
    bench.desk.merge(MergeRequest())
    wanted = NUMBERS.replace("20\n", "mine\nand more\n")
    assert (bench.workspace / "a.txt").read_text() == wanted


async def test_any_later_decision_drops_an_edit_and_undo_brings_it_back(bench: Bench) -> None:
    await agent_writes(bench, LATE)
    bench.desk.edit(EditRequest("a.txt", hunk(bench).id, b"mine\n"))
    bench.desk.decide([Decide("a.txt", "accepted", (hunk(bench).id,))])
    assert (hunk(bench).decision, hunk(bench).edited) == ("accepted", False)
    bench.desk.undo_decision()
    assert hunk(bench).edited
    bench.desk.undo_decision()
    assert (hunk(bench).decision, hunk(bench).edited) == ("open", False)
    bench.desk.redo_decision()
    assert hunk(bench).edited
    await agent_writes(bench, LATE.replace("longer", "other"))
    assert (hunk(bench).decision, hunk(bench).edited) == ("open", False)
    await agent_writes(bench, LATE)
    assert hunk(bench).edited, "the hunk is the same again"


async def test_edits_of_files_that_come_or_go(bench: Bench) -> None:
    bench.guest.put(b"new.txt", b"one\ntwo\n")
    bench.guest.remove(b"gone.txt")
    await bench.take()
    bench.desk.edit(EditRequest("new.txt", hunk(bench, "new.txt").id, b"own\n"))
    bench.desk.edit(EditRequest("gone.txt", hunk(bench, "gone.txt").id, b"stays\n"))
    report = bench.desk.merge(MergeRequest())
    assert report.written == ("gone.txt", "new.txt")
    assert (bench.workspace / "new.txt").read_text() == "own\n"
    assert (bench.workspace / "gone.txt").read_text() == "stays\n"


async def test_only_lines_can_be_edited(bench: Bench) -> None:
    bench.guest.put(b"tool", b"\0", 0o755)
    await bench.take()
    with pytest.raises(AppError, match="Only lines"):
        bench.desk.edit(EditRequest("tool", hunk(bench, "tool").id, b""))


async def test_a_wide_yes_keeps_the_users_own_lines(bench: Bench) -> None:
    bench.guest.put(b"b.txt", b"more\n")
    await agent_writes(bench, LATE)
    bench.desk.edit(EditRequest("a.txt", hunk(bench).id, b"mine\n"))
    bench.desk.decide([Decide("a.txt", "accepted"), Decide("b.txt", "accepted")])
    assert hunk(bench).edited
    for request in (
        MergeRequest(accept=("*",), dry_run=True),
        MergeRequest(hunks=(hunk(bench).id,), accept_safe=True),
        MergeRequest(accept=("*",)),
    ):
        bench.desk.merge(request)
        assert hunk(bench).edited
    assert (bench.workspace / "a.txt").read_text() == NUMBERS.replace("20\n", "mine\n")
    bench.desk.decide([Decide("a.txt", "accepted", (hunk(bench).id,))])
    assert not hunk(bench).edited, "about this hunk alone it means the agent's lines"
