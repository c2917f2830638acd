from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapshot.lines import BOM, split_plain
from snapshot.merge3 import Merge, merge_bytes, merge_lines

if TYPE_CHECKING:
    from pathlib import Path

word = st.sampled_from([b"a", b"b", b"c", b"d", b"", b"}"])
body = st.lists(word.map(lambda text: text + b"\n"), max_size=25)


@st.composite
def descendants(draw: st.DrawFn) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return a base of different lines and two edited versions of it.

    Among equal lines several diffs are equally short, and tools may choose differently.
    """
    base = [b"line %d\n" % number for number in range(draw(st.integers(1, 30)))]
    return base, edited(draw, base, b"ours"), edited(draw, base, b"theirs")


def edited(draw: st.DrawFn, base: list[bytes], who: bytes) -> list[bytes]:
    lines = list(base)
    for number in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines)))
        action = draw(st.sampled_from(["change", "add", "drop"]))
        if action == "add":
            lines.insert(at, b"%b %d\n" % (who, number))
        elif at < len(lines) and action == "change":
            lines[at] = b"%b %d\n" % (who, number)
        elif at < len(lines):
            lines.pop(at)
    return lines


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(descendants())
def test_clean_merges_are_those_of_git(
    tmp_path: Path, sides: tuple[list[bytes], list[bytes], list[bytes]]
) -> None:
    merge = merge_lines(*sides)
    for name, side in zip(("base", "ours", "theirs"), sides, strict=True):
        (tmp_path / name).write_bytes(b"".join(side))
    command = ["git", "merge-file", "-p", "-q", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode == 0) == (merge.conflicts == 0)
    if not merge.conflicts:
        assert b"".join(merge.lines()) == done.stdout


@given(body, body)
def test_identities(base: list[bytes], other: list[bytes]) -> None:
    old, new = b"".join(base), b"".join(other)
    for ours, theirs in ((old, new), (new, old), (new, new)):
        assert merge_bytes(old, ours, theirs) == new
    for sides in ((base, base, other), (base, other, base), (base, other, other)):
        merge = merge_lines(*sides)
        assert (merge.conflicts, merge.lines()) == (0, other)


@given(body, body, body)
def test_regions_tile_all_sides(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> None:
    merge = merge_lines(base, ours, theirs)
    assert tiled(merge, 1) == base
    assert tiled(merge, 2) == ours
    assert tiled(merge, 3) == theirs


def tiled(merge: Merge, side: int) -> list[bytes]:
    lines = (merge.base, merge.ours, merge.theirs)[side - 1]
    spans = [(region.base, region.ours, region.theirs)[side - 1] for region in merge.regions]
    return [line for start, end in spans for line in lines[start:end]]


@given(body, body, body)
def test_sides_are_alike(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> None:
    sides = [b"".join(side) for side in (base, ours, theirs)]
    assert merge_bytes(sides[0], sides[1], sides[2]) == merge_bytes(sides[0], sides[2], sides[1])


def test_touching_edits_conflict() -> None:
    assert merge_bytes(b"1\n2\n3\n", b"A\n2\n3\n", b"1\nB\n3\n") is None
    assert merge_bytes(b"1\n2\n3\n", b"A\n2\n3\n", b"1\n2\nB\n") == b"A\n2\nB\n"


def test_a_byte_order_mark_merges_by_itself() -> None:
    assert merge_bytes(b"a\nb\n", b"A\nb\n", BOM + b"a\nb\n") == BOM + b"A\nb\n"
    assert merge_bytes(BOM + b"a\nb\n", b"a\nb\n", BOM + b"A\nb\n") == b"A\nb\n"


def test_endings_of_untouched_lines_stay() -> None:
    base = b"1\r\n2\r\n3\r\n4\r\n5"
    assert merge_bytes(base, base + b"\r\n", b"one\r\n2\r\n3\r\n4\r\n5") == (
        b"one\r\n2\r\n3\r\n4\r\n5\r\n"
    )


def test_split_plain_keeps_a_mark_in_its_line() -> None:
    assert split_plain(BOM + b"a\n") == [BOM + b"a\n"]
