"""What is accepted wholly is merged without comparing its lines, and comes out the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.decisions import Decisions, Mark, Overlay, Uniform
from snapshot.merged import Merged
from snapshot.review import (
    ChangedFile,
    FileReview,
    Planned,
    WholeReview,
    accepts_all,
    plan_reviews,
)
from snapshot.writeback_ops import Side
from tests.snapshot.merge_help import Nodes, reviews, write_nodes
from tests.snapshot.test_review_sets import world
from tests.snapshot.tree_strategies import PATHS, trees, without_full_folders

ALL = Uniform("accepted")


def without_lines(review: FileReview, decisions: Decisions) -> Planned:
    """Return what stands for a file in a merge where its lines need not be known."""
    if not accepts_all(review.file.path, review.units, decisions):
        return review
    return WholeReview(review.file, review.base, review.agent, review.units)


def test_the_result_is_that_of_all_lines_and_aspects() -> None:
    made = reviews(*world(2_000))
    for review in made:
        whole = without_lines(review, ALL)
        assert isinstance(whole, WholeReview)
        assert whole.result(ALL) == review.result(ALL)
    assert len(made) > 1_800


@settings(max_examples=300)
@given(trees(), trees(), trees(), st.data())
def test_any_merge_is_planned_as_with_lines(
    base: Nodes, agent: Nodes, now: Nodes, data: st.DataObject
) -> None:
    made = reviews(without_full_folders(base), without_full_folders(agent))
    decisions = Overlay(ALL, data.draw(some_left_out(made)))
    earlier = (
        {b"a": Merged("m", b"a", Side("file", b"1\nTWO\n"))} if data.draw(st.booleans()) else {}
    )
    folder = Path(tempfile.mkdtemp())
    try:
        write_nodes(folder, now)
        plans = [
            plan_reviews(planned, decisions, folder, earlier=earlier.get)
            for planned in (made, [without_lines(one, decisions) for one in made])
        ]
        assert plans[0] == plans[1]
    finally:
        shutil.rmtree(folder)


@st.composite
def some_left_out(draw: st.DrawFn, made: list[FileReview]) -> list[Mark]:
    """Return other marks for the units of some paths."""
    paths = draw(st.sets(st.sampled_from(PATHS)))
    return [
        Mark(one.file.path, unit.id, draw(st.text("aro", min_size=unit.size, max_size=unit.size)))
        for one in made
        if one.file.path in paths
        for unit in one.units
    ]


def test_an_edit_or_an_open_line_needs_the_lines() -> None:
    file = ChangedFile(b"f", "modified", mode="100644", old_mode="100644")
    review = FileReview(file, b"1\n2\n", b"one\ntwo\n")
    (unit,) = review.units
    assert accepts_all(b"f", review.units, ALL)
    assert not accepts_all(b"f", (), ALL)
    assert not accepts_all(b"f", review.units, Overlay(ALL, [Mark(b"f", unit.id, "aaao")]))

    class Edited(Uniform):
        def edit(self, path: bytes, unit: str) -> bytes | None:
            return b"mine\n"

    assert not accepts_all(b"f", review.units, Edited("accepted"))
