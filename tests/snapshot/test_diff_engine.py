from __future__ import annotations

import random
import time
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.diff import Block, diff
from snapshot.hunks import changed_blocks
from snapshot.intraline import changed_ranges, pair_lines
from snapshot.review_file import FileReview
from snapshot.review_sides import ChangedFile
from snapshot.rows import RowModel

if TYPE_CHECKING:
    from collections.abc import Sequence

few = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"  }\n"]), max_size=60)


def rebuild(old: Sequence[bytes], new: Sequence[bytes], blocks: Sequence[Block]) -> list[bytes]:
    """Follow the blocks from old to new and check that all between them is equal."""
    result: list[bytes] = []
    i = j = 0
    for block in blocks:
        assert old[i : block.old_start] == new[j : block.new_start]
        assert block.old_end > block.old_start or block.new_end > block.new_start
        result += [*old[i : block.old_start], *new[block.new_start : block.new_end]]
        i, j = block.old_end, block.new_end
    assert old[i:] == new[j:]
    return result + list(old[i:])


@given(few, few, st.sampled_from([0, 50, 10**6]), st.sampled_from([2, 400]))
def test_blocks_turn_old_into_new(
    old: list[bytes], new: list[bytes], budget: int, cap: int
) -> None:
    blocks = diff(old, new, budget=budget, cap=cap)
    assert rebuild(old, new, blocks) == new
    for before, after in pairwise(blocks):
        assert after.old_start > before.old_end
        assert after.new_start > before.new_end


@given(few, few)
def test_sliding_keeps_what_a_diff_means(old: list[bytes], new: list[bytes]) -> None:
    assert rebuild(old, new, changed_blocks(old, new)) == new


@given(few, few)
def test_the_same_input_gives_the_same_blocks(old: list[bytes], new: list[bytes]) -> None:
    assert changed_blocks(old, new) == changed_blocks(list(old), list(new))


@given(few)
def test_equal_sides_have_no_blocks(lines: list[bytes]) -> None:
    assert diff(lines, list(lines)) == []


def test_a_small_edit_is_found_as_it_is() -> None:
    assert diff("abcdef", "abXdeYf") == [Block(2, 3, 2, 3), Block(5, 5, 5, 6)]


def python_file(lines: int) -> list[bytes]:
    body = [
        "def f{0}(self, x):", '    """Doc."""', "    if x is None:", "        return {0}",
        "    y = x + 1", "    for k in range(3):", "        y += k", "    return y", "",
    ]  # fmt: skip
    return [(body[n % len(body)].format(n) + "\n").encode() for n in range(lines)]


def edited(lines: Sequence[bytes], share: float, seed: int = 1) -> list[bytes]:
    dice = random.Random(seed)
    result: list[bytes] = []
    for line in lines:
        throw = dice.random()
        if throw < share / 3:
            continue
        result.append(b"    edited %d\n" % dice.randrange(10**6) if throw < share / 1.5 else line)
        if share / 1.5 <= throw < share:
            result.append(b"    new %d\n" % dice.randrange(10**6))
    return result


CEILING_S = 30
"""Thirty times and more what an idle core of 2020 needs; a search without a budget takes hours."""


def worst(name: str, count: int) -> tuple[list[bytes], list[bytes]]:
    dice = random.Random(2)
    lines = python_file(count)
    if name == "different":
        return lines, [b"other %d\n" % n for n in range(count)]
    if name == "reversed":
        return lines, lines[::-1]
    if name == "shuffled":
        return lines, dice.sample(lines, count)
    if name == "braces":
        six = [dice.choice([b"{\n", b"}\n", b"\n", b"else\n", b"x\n", b"y\n"]) for _ in lines]
        return six, edited(six, 0.02)
    if name == "scatter":
        return lines, edited(lines, 0.01)
    three = [b"a\n", b"b\n", b"c\n"]
    return dice.choices(three, k=count), dice.choices(three, k=count)


@pytest.mark.parametrize(
    "name", ["different", "reversed", "shuffled", "braces", "scatter", "three symbols"]
)
def test_a_hundred_thousand_lines_end_soon(name: str) -> None:
    old, new = worst(name, 100_000)
    began = time.process_time()
    blocks = diff(old, new)
    assert time.process_time() - began < CEILING_S
    assert rebuild(old, new, blocks) == new


def test_lines_without_counterpart_are_set_aside() -> None:
    """Without that step a rewritten file of few common lines takes the search to its cap."""
    dice = random.Random(3)
    common = [b"}\n", b"\n", b"{\n"]
    old = [dice.choice(common) if n % 2 else b"old %d\n" % n for n in range(20_000)]
    new = [dice.choice(common) if n % 2 else b"new %d\n" % n for n in range(20_000)]
    began = time.process_time()
    blocks = diff(old, new)
    assert time.process_time() - began < CEILING_S
    assert len(blocks) > 3000


def test_drift_between_pieces_does_not_spoil_the_rest() -> None:
    old, new = worst("braces", 50_000)
    shown = sum(b.old_end - b.old_start + b.new_end - b.new_start for b in diff(old, new))
    assert shown < 2500


def test_a_minified_line_is_no_trouble() -> None:
    old = b"x=1;" * 1_100_000
    began = time.process_time()
    assert diff([old], [old + b"y"]) == [Block(0, 1, 0, 1)]
    assert changed_ranges(old.decode(), old.decode() + "y") == ((), ())
    assert time.process_time() - began < CEILING_S


def memory_of(old: bytes, new: bytes) -> float:
    """Return how many times its input a review holds at most, its first rows included."""
    tracemalloc.start()
    try:
        made = FileReview(ChangedFile(b"f", "modified", None, "100644", "100644"), old, new)
        RowModel(made, "split").rows(0, 60)
        return tracemalloc.get_traced_memory()[1] / (len(old) + len(new))
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_input_and_no_faster() -> None:
    line = b"x=1;" * 1_100_000
    assert memory_of(line, line + b"y") < 3
    short, long = (
        memory_of(*(b"".join(b"%s %d\n" % (side, n) for n in range(size)) for side in (b"a", b"b")))
        for size in (10_000, 100_000)
    )
    assert long < 60  # each line of eight bytes is an object with marks and a row
    assert long < 2 * short


@given(few, few)
def test_rows_hold_every_line_once_and_in_order(old: list[bytes], new: list[bytes]) -> None:
    rows = pair_lines(old, new)
    assert [x for x, _ in rows if x is not None] == list(range(len(old)))
    assert [y for _, y in rows if y is not None] == list(range(len(new)))


def test_similar_lines_stand_side_by_side() -> None:
    old = [b"alpha = compute(1, 2)\n", b"beta = compute(3, 4)\n"]
    new = [b"# a new remark entirely\n", b"alpha = compute(1, 5)\n", b"beta = compute(3, 6)\n"]
    assert pair_lines(old, new) == [(None, 0), (0, 1), (1, 2)]


def test_large_blocks_are_paired_by_position() -> None:
    rows = pair_lines([b"a\n"] * 100, [b"b\n"] * 90)
    assert rows[:2] == [(0, 0), (1, 1)]
    assert rows[-1] == (99, None)


def test_intraline_marks_the_changed_words() -> None:
    old, new = "value = compute(alpha, 1)", "value = compute(beta, 1)"
    left, right = changed_ranges(old, new)
    assert [old[start:end] for start, end in left] == ["alpha"]
    assert [new[start:end] for start, end in right] == ["beta"]


def test_lines_that_differ_throughout_get_no_marks() -> None:
    assert changed_ranges("abc def", "xyz uvw 1 2 3") == ((), ())


@given(st.text(max_size=80), st.text(max_size=80))
def test_unmarked_text_is_equal(old: str, new: str) -> None:
    left, right = changed_ranges(old, new)
    if left or right:
        assert without(old, left) == without(new, right)


def without(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(ranges):
        text = text[:start] + text[end:]
    return text


SLIDES = [
    # A new function is shown from its head to the blank line after it.
    (
        "def a():\n    x\n\ndef c():\n    x\n",
        "def a():\n    x\n\ndef b():\n    x\n\ndef c():\n    x\n",
        (3, 6),
    ),
    # The closing brace above a new block belongs to the old one.
    (
        "int a() {\n  x;\n}\n",
        "int a() {\n  x;\n}\n\nint b() {\n  x;\n}\n",
        (3, 7),
    ),
    # One more item of a list of equal ones is the last of them.
    ("a\na\n", "a\na\na\n", (2, 3)),
]


@pytest.mark.parametrize(("old", "new", "place"), SLIDES)
def test_insertions_slide_to_where_people_put_them(
    old: str, new: str, place: tuple[int, int]
) -> None:
    left = old.encode().splitlines(keepends=True)
    right = new.encode().splitlines(keepends=True)
    assert [(b.new_start, b.new_end) for b in changed_blocks(left, right)] == [place]
