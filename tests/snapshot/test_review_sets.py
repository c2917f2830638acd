"""Two thousand files with a random set of decisions each: composition, merge and patch agree."""

from __future__ import annotations

import os
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from snapshot.compose import compose
from snapshot.decisions import Mark, Overlay, Uniform
from snapshot.lines import BOM, split_plain
from snapshot.patch import check_export, export_patch
from snapshot.review import ChangedFile, FileReview, review_file
from tests.snapshot.merge_help import Node, Nodes, Scene, changed, tree_of, write_nodes

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.decisions import Decisions
    from snapshot.hunks import Hunk

SETS = 2_000
ATOMS = [
    b"x = 1", b"", b"    }", b"\treturn", b"a\rb", b"a\x0cb", b"\xff\xfe", b"--- a", b"+++ b",
    b"@@ -1 +1 @@", b"diff --git a/x b/x", b"\\ No newline", "café \u2028".encode(), b"\x1b[31m",
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("no_sync")


def side(dice: random.Random, lines: list[bytes]) -> bytes:
    """Join lines to a content, now and then with a mark in front or without a last newline."""
    content = b"".join(lines)
    if dice.random() < 0.1:
        content = BOM + content
    return content.rstrip(b"\r\n") if dice.random() < 0.15 else content


def edited(dice: random.Random, lines: list[bytes]) -> list[bytes]:
    """Take out, put in and replace some lines."""
    new = list(lines)
    for _ in range(dice.randrange(1, 7)):
        at = dice.randrange(len(new) + 1)
        if dice.random() < 0.6:
            new.insert(at, dice.choice(ATOMS) + dice.choice([b"\n", b"\n", b"\r\n"]))
        elif at < len(new):
            del new[at : at + dice.randrange(1, 3)]
    return new


def world(count: int) -> tuple[Nodes, Nodes, dict[bytes, bytes]]:
    """Return base, agent and renames: files edited, made, dropped, renamed, made to run."""
    dice = random.Random(20)
    base: Nodes = {}
    agent: Nodes = {}
    renames: dict[bytes, bytes] = {}
    for number in range(count):
        name = b"d%d/f%d" % (number % 40, number)
        before = [dice.choice(ATOMS) + b"\n" for _ in range(dice.randrange(0, 24))]
        old: Node = (dice.choice(["100644", "100644", "100755"]), side(dice, before))
        new: Node = (dice.choice([old[0], old[0], "100755"]), side(dice, edited(dice, before)))
        sort = dice.randrange(12)
        if sort != 0:
            base[name] = old
        if sort == 1:
            continue
        path = b"moved/" + name if sort in (2, 3) else name
        if path != name:
            renames[path] = name
        agent[path] = (new[0], old[1]) if sort == 3 else new
    return base, agent, renames


def decided(dice: random.Random, reviews: list[FileReview]) -> Decisions:
    """Return a random letter for each line and aspect of every file."""
    marks = [
        Mark(review.file.path, unit.id, "".join(dice.choices("aaro", k=unit.size)))
        for review in reviews
        for unit in review.units
    ]
    return Overlay(Uniform("open"), marks)


def expected(scene: Scene, reviews: list[FileReview], decisions: Decisions) -> Nodes:
    """Return the base tree with every file's own result in place."""
    tree = dict(scene.base)
    for review in reviews:
        result = review.result(decisions)
        if result is None:
            continue
        tree.pop(review.file.old_path or review.file.path, None)
        if result.path is not None:
            tree[result.path] = (result.mode, result.content)
    return tree


def test_merge_patch_and_composition_agree_on_two_thousand_sets(memory_path: Path) -> None:
    base, agent, renames = world(SETS)
    scene = Scene(memory_path / "ws", memory_path / "merges", base, agent, renames)
    reviews = [
        review_file(file, lambda f: base[f.old_path or f.path][1], lambda f: agent[f.path][1])
        for file in changed(base, agent, renames)
    ]
    assert len(reviews) > SETS * 0.9
    decisions = decided(random.Random(21), reviews)
    wanted = expected(scene, reviews, decisions)

    outcome = scene.merge(decisions)
    assert outcome.conflicts == ()
    assert {os.fsencode(name): node for name, node in scene.found().items()} == wanted

    patch = export_patch(reviews, decisions)
    check_export(patch)
    write_nodes(memory_path / "patched", base)
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(
        command, cwd=memory_path / "patched", input=patch, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    patched = tree_of(memory_path / "patched")
    merged = tree_of(scene.root)
    files = {name for name, entry in merged.items() if entry.kind == "file"}
    assert files == {name for name, entry in patched.items() if entry.kind == "file"}
    assert all(patched[name] == merged[name] for name in files)

    assert scene.undo(outcome.merge).conflicts == ()
    assert {os.fsencode(name): node for name, node in scene.found().items()} == base


def test_all_is_the_agents_bytes_and_none_is_the_base() -> None:
    base, agent, renames = world(SETS)
    for file in changed(base, agent, renames):
        review = review_file(
            file, lambda f: base[f.old_path or f.path][1], lambda f: agent[f.path][1]
        )
        assert review.result(Uniform("open")) is None
        assert review.result(Uniform("rejected")) is None
        result = review.result(Uniform("accepted"))
        assert result is not None
        if file.path in agent:
            assert (result.path, (result.mode, result.content)) == (file.path, agent[file.path])
        else:
            assert result.path is None


def test_a_composition_is_the_chosen_lines_around_what_stays() -> None:
    """Compose over tags in place of lines, so that equal lines can be told apart."""
    dice = random.Random(22)
    base, agent, renames = world(SETS)
    seen = 0
    for file in changed(base, agent, renames):
        review = review_file(
            file, lambda f: base[f.old_path or f.path][1], lambda f: agent[f.path][1]
        )
        marks = {hunk.id: "".join(dice.choices("aro", k=hunk.size)) for hunk in review.hunks}
        old = [b"o%d\n" % n for n in range(len(review.old_lines))]
        new = [b"n%d\n" % n for n in range(len(review.new_lines))]
        tags = split_plain(compose(old, new, review.hunks, lambda hunk: marks[hunk.id]))  # noqa: B023 - called before the loop goes on
        check_tags(review, marks, [tag.strip() for tag in tags])
        seen += bool(review.hunks)
    assert seen > SETS * 0.8


def check_tags(review: FileReview, marks: dict[str, str], tags: list[bytes]) -> None:
    """Compare tags with what the marks say: which lines, in which order, between which others."""
    dropped: set[int] = set()
    added: set[int] = set()
    for hunk in review.hunks:
        for change, letter in zip(hunk.changes, marks[hunk.id], strict=True):
            if letter == "a":
                dropped |= set() if change.old is None else {change.old}
                added |= set() if change.new is None else {change.new}
    old = [int(tag[1:]) for tag in tags if tag.startswith(b"o")]
    new = [int(tag[1:]) for tag in tags if tag.startswith(b"n")]
    assert old == [n for n in range(len(review.old_lines)) if n not in dropped]
    assert new == sorted(added)
    for x, y in unchanged(review):
        at = tags.index(b"o%d" % x)
        assert all(int(tag[1:]) < y for tag in tags[:at] if tag.startswith(b"n"))
        assert all(int(tag[1:]) > y for tag in tags[at:] if tag.startswith(b"n"))


def unchanged(review: FileReview) -> list[tuple[int, int]]:
    """Return old and new index of every line that is no change."""
    changes = [change for hunk in review.hunks for change in hunk.changes]
    gone = {change.old for change in changes}
    come = {change.new for change in changes}
    old = [n for n in range(len(review.old_lines)) if n not in gone]
    new = [n for n in range(len(review.new_lines)) if n not in come]
    return list(zip(old, new, strict=True))


def modified(old: list[bytes], new: list[bytes]) -> FileReview:
    file = ChangedFile(b"f", "modified", mode="100644", old_mode="100644")
    return FileReview(file, b"".join(old), b"".join(new))


def test_ids_of_hunks_outlive_a_refresh_with_other_edits() -> None:
    dice = random.Random(23)
    kept = 0
    for _ in range(300):
        old = [b"line %d\n" % n for n in range(60)]
        new = list(old)
        for _ in range(dice.randrange(1, 5)):
            new[dice.randrange(0, 40)] = b"edited %d\n" % dice.randrange(1000)
        later = [*new[:55], b"later\n", *new[55:]]
        earlier = [b"earlier\n" * dice.randrange(2), *new]
        first = modified(old, new).hunks
        ids = [hunk.id for hunk in first]
        assert [hunk.id for hunk in modified(old, later).hunks[: len(ids)]] == ids
        found = {hunk.id for hunk in modified(old, earlier).hunks}
        far = {hunk.id for hunk in first if hunk.old_start > 8}
        assert far <= found
        kept += len(far)
        assert_marks_hold(first, modified(old, later).hunks)
    assert kept > 300


def assert_marks_hold(first: tuple[Hunk, ...], second: tuple[Hunk, ...]) -> None:
    """A hunk of the same id has as many marks, so a decision fits."""
    sizes = {hunk.id: hunk.size for hunk in second}
    assert all(sizes[hunk.id] == hunk.size for hunk in first)
