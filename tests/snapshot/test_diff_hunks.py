from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.decisions import Uniform
from snapshot.hunks import build_hunks
from snapshot.lines import BOM
from snapshot.review import ChangedFile, FileReview
from snapshot.rows import NO_NEWLINE_MARK, Layout, RowModel


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def numbered(count: int) -> list[bytes]:
    return [b"line %d\n" % number for number in range(count)]


def review(old: bytes, new: bytes, path: bytes = b"f") -> FileReview:
    return FileReview(ChangedFile(path, "modified", None, "100644", "100644"), old, new)


def test_an_id_depends_on_path_lines_and_two_lines_around() -> None:
    old = numbered(40)
    new = [*old[:20], b"new\n", *old[21:]]
    first = build_hunks(b"p", old, new)[0].id
    assert build_hunks(b"q", old, new)[0].id != first
    assert build_hunks(b"p", [b"far\n", *old], [b"far\n", *new])[0].id == first
    near = [*old[:19], b"near\n", *old[20:]]
    assert build_hunks(b"p", near, [*near[:20], b"new\n", *near[21:]])[0].id != first
    assert build_hunks(b"p", old, [*old[:20], b"other\n", *old[21:]])[0].id != first


def test_twins_are_told_apart_and_do_not_inherit() -> None:
    part = [b"a\n", b"b\n", b"x\n", b"c\n", b"d\n", *[b"-\n"] * 9]
    changed = [b"y\n" if line == b"x\n" else line for line in part]
    two = build_hunks(b"p", part * 2, changed * 2)
    assert len({hunk.id for hunk in two}) == 2
    three = build_hunks(b"p", part * 3, changed * 3)
    assert not {hunk.id for hunk in two} & {hunk.id for hunk in three}


def test_near_changes_are_one_hunk_and_far_ones_two() -> None:
    old = numbered(30)
    near = [b"x\n" if n in (5, 12) else line for n, line in enumerate(old)]
    far = [b"x\n" if n in (5, 13) else line for n, line in enumerate(old)]
    assert [h.size for h in build_hunks(b"p", old, near)] == [4]
    assert [h.size for h in build_hunks(b"p", old, far)] == [2, 2]


small = st.lists(st.sampled_from(["a", "b", "c", "", "}", "a b c"]), max_size=40).map(
    lambda words: "".join(word + "\n" for word in words).encode()
)


@given(small, small, st.sampled_from(["split", "unified"]), st.booleans())
def test_every_changed_line_is_reachable_in_every_layout(
    old: bytes, new: bytes, layout: Layout, expanded: bool
) -> None:
    made = review(old, new)
    model = RowModel(made, layout)
    if expanded:
        for gap in range(len(made.hunks) + 1):
            model = model.expand(gap)
    rows = model.rows(0, len(model))
    assert len(rows) == len(model)
    shown = {(row.hunk, row.old_change) for row in rows if row.old_change is not None}
    shown |= {(row.hunk, row.new_change) for row in rows if row.new_change is not None}
    assert shown == {(hunk.index, n) for hunk in made.hunks for n in range(hunk.size)}
    olds = [row.old for row in rows if row.old is not None]
    news = [row.new for row in rows if row.new is not None]
    assert olds == sorted(set(olds))
    assert news == sorted(set(news))
    hidden = sum(row.hidden for row in rows)
    assert len(olds) + hidden == len(made.old_lines)
    assert len(news) + hidden == len(made.new_lines)
    assert not (expanded and hidden)


@given(small, small, st.integers(-3, 50), st.integers(-3, 50))
def test_windows_are_slices(old: bytes, new: bytes, start: int, stop: int) -> None:
    model = RowModel(review(old, new), "unified")
    everything = model.rows(0, len(model))
    assert model.rows(start, stop) == everything[max(0, start) : max(0, stop)]


def test_rows_of_a_replaced_line() -> None:
    made = review(b"1\n2\n3\n", b"1\ntwo\n3\n")
    rows = RowModel(made).rows(0, 9)
    assert [row.kind for row in rows] == ["context", "replace", "context"]
    row = rows[1]
    assert (row.old_no, row.new_no, row.old_text, row.new_text) == (2, 2, "2", "two")
    assert (row.hunk, row.old_change, row.new_change) == (0, 0, 1)
    kinds = [row.kind for row in RowModel(made, "unified").rows(0, 9)]
    assert kinds == ["context", "delete", "insert", "context"]


def test_folds_hide_and_show_context() -> None:
    old = b"".join(numbered(100))
    made = review(old, old.replace(b"line 50\n", b"changed\n"))
    model = RowModel(made)
    kinds = [row.kind for row in model.rows(0, len(model))]
    assert kinds == ["fold", *["context"] * 3, "replace", *["context"] * 3, "fold"]
    assert [model.rows(0, 1)[0].hidden, model.rows(8, 9)[0].hidden] == [47, 46]
    assert model.row_of_hunk(0) == 4
    more = model.expand(0, 10)
    assert more.rows(10, 11)[0].hidden == 27
    assert len(model.expand(0).expand(1)) == 100
    assert len(more.with_layout("unified")) == len(more) + 1


def test_the_nearest_hunk_of_a_row() -> None:
    old = b"".join(numbered(100))
    made = review(old, old.replace(b"line 20\n", b"a\n").replace(b"line 70\n", b"b\n"))
    model = RowModel(made)
    assert [model.hunk_at(row) for row in (0, 4, 5, 8, 9, 12, 99)] == [0, 0, 0, 0, 1, 1, 1]
    assert RowModel(review(old, old)).hunk_at(3) is None


def test_marks_for_endings() -> None:
    rows = RowModel(review(b"a\r\nb\n", b"a\nb")).rows(0, 9)
    assert [(row.old_end, row.new_end) for row in rows] == [("␍", ""), ("", NO_NEWLINE_MARK)]
    assert [row.old_text for row in rows] == ["a", "b"]
    same = RowModel(review(b"a\r\nb\r\n", b"A\r\nb\r\n")).rows(0, 9)
    assert {row.old_end for row in same} == {""}


def test_a_byte_order_mark_has_a_row_and_no_number() -> None:
    rows = RowModel(review(b"a\n", BOM + b"a\n")).rows(0, 9)
    assert [(row.kind, row.old_no, row.new_no) for row in rows] == [
        ("insert", None, None),
        ("context", 1, 1),
    ]
    assert not any(row.suspicious for row in rows)


def test_hostile_text_is_made_visible() -> None:
    row = RowModel(review(b"a\n", b"\x1b]52;c;x\x07 \x9b \xe2\x80\xae \x85 \tb\rc\n")).rows(0, 1)[0]
    assert row.new_text is not None
    assert row.new_text == "␛]52;c;x␇ \ufffd ⇄ \ufffd \tb␍c"
    assert row.suspicious


def test_a_large_file_gives_rows_at_once() -> None:
    old = b"".join(numbered(50_000))
    made = review(old, old.replace(b"9\n", b"nine\n"))
    model = RowModel(made, "unified")
    assert len(model.rows(len(model) - 60, len(model))) == 60
    assert made.state(Uniform("accepted")) == "accepted"


@pytest.mark.parametrize("layout", ["split", "unified"])
def test_files_without_lines_have_no_rows(layout: Layout) -> None:
    made = review(b"\0a", b"\0b")
    assert made.binary
    assert len(RowModel(made, layout)) == 0
    assert RowModel(made, layout).rows(0, 5) == []
