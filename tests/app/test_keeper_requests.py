"""Asking for changes at the desk: what is asked once, and what is named as standing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Decide, HunkInfo, MergeRequest
from app.protocol_review import CommentRequest, Resolve
from tests.app.keeper_bench import NUMBERS, Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AGENTS = NUMBERS.replace("\n5\n", "\nfive\n").replace("\n20\n", "\ntwenty\n")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(tmp_path, {"a.txt": NUMBERS, "b.txt": NUMBERS}) as made:
        made.guest.put(b"a.txt", AGENTS.encode())
        made.guest.put(b"b.txt", AGENTS.encode())
        yield made


def hunks(bench: Bench, path: str = "a.txt") -> tuple[HunkInfo, ...]:
    return next(file.hunks for file in bench.desk.changes().files if file.path == path)


async def test_a_request_holds_what_was_not_sent_yet(bench: Bench) -> None:
    await bench.take()
    desk = bench.desk
    assert desk.requests.request().text == ""
    first, second = (hunk.id for hunk in hunks(bench))
    desk.decide([Decide("a.txt", "rejected", (first,), reason="keep the digit")])
    desk.decide([Decide("a.txt", "accepted", (second,)), Decide("b.txt", "accepted")])
    note = desk.remarks.write(CommentRequest("b.txt", "add a test", start=20))
    desk.merge(MergeRequest(reject=("b.txt",), dry_run=True))
    request = desk.requests.request()
    assert (request.rejected, request.comments, request.left_out) == (1, 1, 0)
    for part in (
        "1. b.txt:20\n   > twenty\n   add a test",
        "2. a.txt:5\n   > -5\n   > +five\n   keep the digit",
        "Accepted; leave it as it is:\n- a.txt (1 of 2 hunks)\n- b.txt",
    ):
        assert part in request.text
    desk.requests.note_sent(request.items)
    assert desk.requests.request().text == ""
    assert [comment.sent for comment in desk.remarks.all()] == [True]
    bench.desk.close()
    bench.open()
    desk = bench.desk
    assert desk.requests.request().text == ""
    desk.remarks.write(CommentRequest("b.txt", "add two tests", id=note.id))
    assert desk.requests.request().items == (note.id,), "other words are not sent yet"
    desk.decide([Decide("a.txt", "rejected", (first,), reason="really")])
    assert desk.requests.request().rejected == 1


async def test_what_was_merged_is_named_apart_from_what_is_accepted(bench: Bench) -> None:
    await bench.take()
    first, second = (hunk.id for hunk in hunks(bench))
    bench.desk.merge(MergeRequest(hunks=(first,), accept=("b.txt",)))
    bench.desk.remarks.write(CommentRequest("", "go on"))
    bench.desk.decide([Decide("a.txt", "accepted", (second,))])
    text = bench.desk.requests.request().text
    assert "leave it as it is:\n- a.txt (1 of 2 hunks)\n- b.txt\n\nAccepted;" in text
    assert text.endswith("Accepted; leave it as it is:\n- a.txt (1 of 2 hunks)")


async def test_a_merge_solves_conflicts_as_it_is_told(bench: Bench) -> None:
    await bench.take()
    mine = NUMBERS.replace("\n5\n", "\nmine\n")
    (bench.workspace / "a.txt").write_text(mine)
    asked = MergeRequest(accept=("a.txt",), resolve=(Resolve("a.txt", "both"),), dry_run=True)
    assert bench.desk.merge(asked).written == ("a.txt",)
    assert bench.desk.open_units == 4, "a dry run records nothing"
    bench.desk.merge(MergeRequest(accept=("a.txt",), resolve=(Resolve("a.txt", "both"),)))
    both = AGENTS.replace("\nfive\n", "\nmine\nfive\n")
    assert (bench.workspace / "a.txt").read_text() == both
    with pytest.raises(AppError) as caught:
        bench.desk.merge(MergeRequest(resolve=(Resolve("a.txt", "yours"),)))
    assert caught.value.code == "not-found"
