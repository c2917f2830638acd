"""Choosing lines: exact in every case that broke other tools, and checked against git."""

from __future__ import annotations

import itertools
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapshot.compose import compose
from snapshot.decisions import Mark, Overlay, Uniform
from snapshot.hunks import Hunk, build_hunks
from snapshot.lines import BOM, join, split, split_plain, usual_ending
from snapshot.patch import check_export, export_patch
from snapshot.review import ChangedFile, FileReview

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.review import Kind

ATOMS = [
    b"foo bar", b"x = 1", b"", b" ", b"\t}", b"a\rb", b"a\x0cb", b"a\x0bb", b"a\x1cb", b"a\x85b",
    b"a\xc2\x85b", b"a\xe2\x80\xa8diff --git a/x b/x", b"\xff\xfe", b"-- x", b"++ y", b"--- x",
    b"+++ y", b"@@ -1 +1 @@", b"\\ No newline at end of file", b"diff --git a/x b/x", b"\x1b[31m",
    "café".encode(), BOM + b"bom", b"\r",
]  # fmt: skip


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Return two versions of a text with every sort of line and ending."""
    ends = draw(st.sampled_from([[b"\n"], [b"\r\n"], [b"\n", b"\r\n"]]))
    line = st.builds(bytes.__add__, st.sampled_from(ATOMS), st.sampled_from(ends))
    old = draw(st.lists(line, max_size=20))
    new = list(old)
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(new)))
        if draw(st.booleans()):
            new.insert(at, draw(line))
        elif at < len(new):
            new.pop(at)
    sides = [b"".join(old), b"".join(new)]
    return tuple(  # type: ignore[return-value]  # two sides make two texts
        (BOM if draw(st.booleans()) else b"")
        + (side.rstrip(b"\r\n") if draw(st.booleans()) else side)
        for side in sides
    )


def review(old: bytes | None, new: bytes | None, path: bytes = b"f") -> FileReview:
    mode, old_mode = ("100644" if side is not None else "" for side in (new, old))
    kind: Kind = "added" if old is None else "deleted" if new is None else "modified"
    return FileReview(ChangedFile(path, kind, mode=mode, old_mode=old_mode), old, new)


def accept(old: bytes, new: bytes, *lines: tuple[str, bytes]) -> bytes:
    """Accept the named changed lines: ("-", text) of the old side, ("+", text) of the new one."""
    made = review(old, new)
    marks: list[Mark] = []
    for hunk in made.hunks:
        letters = ["a" if wanted(made, hunk, n, lines) else "r" for n in range(hunk.size)]
        marks.append(Mark(b"f", hunk.id, "".join(letters)))
    result = made.result(Overlay(Uniform("open"), marks))
    return old if result is None else result.content


def wanted(made: FileReview, hunk: Hunk, number: int, lines: tuple[tuple[str, bytes], ...]) -> bool:
    change = hunk.changes[number]
    sides = [("-", made.old_lines, change.old), ("+", made.new_lines, change.new)]
    return any(
        (sign, side[index].rstrip(b"\r\n")) in lines
        for sign, side, index in sides
        if index is not None
    )


@given(versions())
def test_all_gives_new_and_none_gives_old(pair: tuple[bytes, bytes]) -> None:
    old, new = (split(side) for side in pair)
    hunks = build_hunks(b"f", old, new)
    assert compose(old, new, hunks, lambda hunk: "a" * hunk.size) == pair[1]
    assert compose(old, new, hunks, lambda hunk: "o" * hunk.size) == pair[0]
    assert compose(old, new, hunks, lambda hunk: "r" * hunk.size) == pair[0]


@given(versions())
def test_split_and_join_are_inverse(pair: tuple[bytes, bytes]) -> None:
    for side in pair:
        assert b"".join(split(side)) == join(split(side)) == side
        assert b"".join(split_plain(side)) == side


@given(versions(), st.text("ar", min_size=1, max_size=40))
@example((b"", BOM + BOM + b"bom\n"), "ra")
def test_no_line_of_a_chosen_subset_is_glued_or_invented(
    pair: tuple[bytes, bytes], wishes: str
) -> None:
    old, new = (split(side) for side in pair)
    hunks = build_hunks(b"f", old, new)
    wish = itertools.cycle(wishes)
    result = compose(old, new, hunks, lambda hunk: "".join(itertools.islice(wish, hunk.size)))
    known = {bare(line) for line in (*old, *new)}
    first, *rest = split_plain(result) or [b""]
    # a mark and a line that begins with another one read alike, so only the first line is asked
    assert bare(first) in {b"", *known, *(BOM + line for line in known)}
    assert {bare(line) for line in rest} <= known


def bare(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(versions(), st.data())
def test_exports_apply_with_git_to_the_same_bytes(
    tmp_path: Path, pair: tuple[bytes, bytes], data: st.DataObject
) -> None:
    made = review(*pair)
    chosen = [
        Mark(b"f", hunk.id, data.draw(st.text("ar", min_size=hunk.size, max_size=hunk.size)))
        for hunk in made.hunks
    ]
    decisions = Overlay(Uniform("open"), chosen)
    result = made.result(decisions)
    patch = export_patch([made], decisions)
    if result is None or result.content == pair[0]:
        assert patch == b""
        return
    check_export(patch)
    (tmp_path / "f").write_bytes(pair[0])
    git_apply(tmp_path, patch)
    assert (tmp_path / "f").read_bytes() == result.content


def git_apply(folder: Path, patch: bytes) -> None:
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=folder, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, patch)


def test_chosen_lines_keep_their_order() -> None:
    old, new = b"//init something\nint i=0;\n", b"//init variables\nint x=0;\n"
    got = accept(old, new, ("-", b"//init something"), ("+", b"//init variables"))
    assert got == b"//init variables\nint i=0;\n"


def test_the_first_pair_of_two() -> None:
    old = b"  name: 'UserStats',\n  children: [A, B],\n"
    new = b"  name: displayName,\n  children: [A, Uses, B],\n"
    got = accept(old, new, ("-", b"  name: 'UserStats',"), ("+", b"  name: displayName,"))
    assert got == b"  name: displayName,\n  children: [A, B],\n"


def test_a_line_added_after_a_last_one_without_newline() -> None:
    assert accept(b"a\nb", b"a\nB\n", ("+", b"B")) == b"a\nb\nB\n"


def test_a_missing_newline_stays_missing() -> None:
    assert accept(b"1\n2\n3", b"1\n2\n2.2\n3\n", ("+", b"2.2")) == b"1\n2\n2.2\n3"


def test_the_last_newline_alone_is_one_change() -> None:
    made = review(b"a\n", b"a")
    assert [hunk.size for hunk in made.hunks] == [1]
    assert made.hunks[0].changes[0].kind == "ending"
    assert accept(b"a\n", b"a", ("+", b"a")) == b"a"
    assert made.notes == ("1 line: LF → no newline",)


def test_crlf_stays_where_it_is() -> None:
    old, new = b"a\r\nb\r\n", b"a\r\nnew\r\nb\r\n"
    assert accept(old, new, ("+", b"new")) == new
    assert accept(b"a\r\nb", b"a\r\nB\r\nc", ("+", b"c")) == b"a\r\nb\r\nc"


def test_changed_endings_are_summed_up() -> None:
    made = review(b"a\nb\nc\n", b"a\r\nb\r\nc\r\n")
    assert made.notes == ("3 lines: LF → CRLF",)
    assert (made.added, made.removed) == (3, 3)


@pytest.mark.parametrize("odd", [b"\x0c", b"\x0b", b"\x1c", b"\x85", "\u2028".encode(), b"\r"])
def test_only_line_feed_ends_a_line(odd: bytes) -> None:
    made = review(b"a\n", b"a\nfoo" + odd + b"diff --git a/x b/x\n")
    assert made.added == 1
    assert len(made.new_lines) == 2


@pytest.mark.parametrize(
    "line", [b"--- x", b"+++ x", b"@@ -1 +1 @@", b"\\ No newline", b"diff --git a b"]
)
def test_lines_that_look_like_a_patch_are_content(line: bytes, tmp_path: Path) -> None:
    made = review(b"a\n" + line + b"\nb\n", b"a\nb\n" + line + b"\n")
    patch = export_patch([made], Uniform("accepted"))
    assert check_export(patch) == (1, 1, 1)
    (tmp_path / "f").write_bytes(made.base or b"")
    git_apply(tmp_path, patch)
    assert (tmp_path / "f").read_bytes() == made.agent


def test_a_byte_order_mark_is_a_change_of_its_own() -> None:
    made = review(b"a\nb\n", BOM + b"A\nb\n")
    assert [block.size for block in made.hunks] == [3]
    assert made.notes == ("byte order mark added",)
    assert accept(b"a\nb\n", BOM + b"A\nb\n", ("+", BOM)) == BOM + b"a\nb\n"
    assert accept(b"a\nb\n", BOM + b"A\nb\n", ("-", b"a"), ("+", b"A")) == b"A\nb\n"
    assert accept(BOM + b"a\n", b"A\n", ("-", b"a"), ("+", b"A")) == BOM + b"A\n"
    kept = review(BOM + b"a\n", BOM + b"b\n")
    assert kept.line_number("new", 0) is None
    assert kept.line_number("new", 1) == 1
    assert kept.span(kept.hunks[0]) == (1, 1, 1, 1)


def test_latin_one_is_exact() -> None:
    old, new = b"caf\xe9\nx\n", b"caf\xe9s\nx\n"
    assert accept(old, new, ("-", b"caf\xe9"), ("+", b"caf\xe9s")) == new
    assert "not UTF-8" in review(old, new).notes


def test_emptied_and_filled_files_are_modified() -> None:
    emptied = review(b"a\n", b"").result(Uniform("accepted"))
    assert emptied is not None
    assert (emptied.path, emptied.content) == (b"f", b"")
    filled = review(b"", b"a\n").result(Uniform("accepted"))
    assert filled is not None
    assert filled.content == b"a\n"


def test_usual_endings() -> None:
    assert usual_ending([b"a\r\n", b"b\r\n", b"c\n"]) == b"\r\n"
    assert usual_ending([b"a"]) == b"\n"
    assert usual_ending([]) == b"\n"
