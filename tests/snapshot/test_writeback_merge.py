"""Accepted changes meet the real workspace: written, merged, or a conflict."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from snapshot.decisions import Overlay, Uniform
from snapshot.review import FileReview
from snapshot.writeback_plan import ALREADY
from tests.snapshot.merge_help import (
    FOLDER,
    Entry,
    Nodes,
    full,
    link,
    reasons,
    scene,
    text,
    tree_of,
    write_nodes,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_accepting_all_writes_the_agents_tree(tmp_path: Path) -> None:
    made = full(tmp_path)
    outcome = made.merge()
    assert (outcome.conflicts, outcome.skipped) == ((), ())
    assert made.found() == made.expected()
    assert (made.root / "new/folder").is_dir()
    assert not (made.root / "gone").exists()
    assert sorted(outcome.written) == [file.path for file in made.files]
    assert not list(made.root.rglob(".cloche-*"))


def test_nothing_accepted_writes_nothing(tmp_path: Path) -> None:
    made = full(tmp_path)
    before = tree_of(made.root)
    for choice in ("open", "rejected"):
        outcome = made.merge(Uniform(choice))
        assert (outcome.merge, outcome.written) == ("", ())
    assert tree_of(made.root) == before
    assert not made.merges.exists()


def test_merging_again_finds_it_already_there(tmp_path: Path) -> None:
    made = full(tmp_path)
    made.merge()
    after = tree_of(made.root)
    again = made.merge()
    assert (again.written, again.conflicts) == ((), ())
    assert {refusal.reason for refusal in again.skipped} == {ALREADY}
    assert tree_of(made.root) == after


def test_the_users_edit_elsewhere_in_the_file_is_kept(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n2\n3\n4\n5\n")}, {b"f": text("ONE\n2\n3\n4\n5\n")})
    (made.root / "f").write_text("1\n2\n3\n4\nfive\n")
    outcome = made.merge()
    assert (made.root / "f").read_text() == "ONE\n2\n3\n4\nfive\n"
    assert reasons(outcome.notices) == {b"f": "merged with your changes"}
    made.undo(outcome.merge)
    assert (made.root / "f").read_text() == "1\n2\n3\n4\nfive\n"


def test_the_same_line_is_a_conflict_and_nothing_of_the_file_is_written(tmp_path: Path) -> None:
    base: Nodes = {b"f": text("1\n2\n3\n4\n"), b"g": text("g\n")}
    made = scene(tmp_path, base, {b"f": text("ONE\n2\n3\nFOUR\n"), b"g": text("G\n")})
    (made.root / "f").write_text("uno\n2\n3\n4\n")
    outcome = made.merge()
    assert reasons(outcome.conflicts) == {b"f": "you changed the same lines"}
    assert outcome.written == (b"g",)
    assert (made.root / "f").read_text() == "uno\n2\n3\n4\n"


def test_rejected_lines_cannot_conflict(tmp_path: Path) -> None:
    base: Nodes = {b"f": text("".join(f"{n}\n" for n in range(20)))}
    changed_text = base[b"f"][1].replace(b"\n1\n", b"\nagent\n").replace(b"18\n", b"agent\n")
    made = scene(tmp_path, base, {b"f": text(changed_text)})
    (made.root / "f").write_bytes(base[b"f"][1].replace(b"\n1\n", b"\nmine\n"))
    review = FileReview(made.files[0], base[b"f"][1], changed_text)
    assert len(review.hunks) == 2
    outcome = made.merge(
        Overlay(Uniform("rejected"), review.decide("accepted", [review.hunks[1].id]))
    )
    assert outcome.conflicts == ()
    assert (made.root / "f").read_bytes().count(b"agent") == 1
    assert b"\nmine\n" in (made.root / "f").read_bytes()


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        ("edited", "you changed it; its removal was accepted"),
        ("deleted", ALREADY),
        ("link", "it is a link now"),
        ("folder", ALREADY),
    ],
)
def test_a_removal_meets_what_the_user_did(tmp_path: Path, meanwhile: str, reason: str) -> None:
    made = scene(tmp_path, {b"f": text("1\n")}, {})
    path = made.root / "f"
    if meanwhile == "edited":
        path.write_text("mine\n")
    else:
        path.unlink()
    if meanwhile == "link":
        path.symlink_to("elsewhere")
    if meanwhile == "folder":
        path.mkdir()
    before = tree_of(made.root)
    outcome = made.merge()
    assert reasons((*outcome.conflicts, *outcome.skipped)) == {b"f": reason}
    assert tree_of(made.root) == before


@pytest.mark.parametrize("what", ["file", "link", "folder", "fifo"])
def test_a_name_that_the_user_took_is_a_conflict(tmp_path: Path, what: str) -> None:
    made = scene(tmp_path, {}, {b"f": text("agent\n")})
    path = made.root / "f"
    if what == "file":
        path.write_text("mine\n")
    elif what == "link":
        path.symlink_to("/etc/passwd")
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    before = tree_of(made.root)
    outcome = made.merge()
    assert [refusal.path for refusal in outcome.conflicts] == [b"f"]
    assert tree_of(made.root) == before


def test_a_file_the_user_created_is_never_a_deletion(tmp_path: Path) -> None:
    made = full(tmp_path)
    (made.root / "gone/mine").write_text("mine\n")
    outcome = made.merge()
    assert outcome.conflicts == ()
    assert (made.root / "gone/mine").read_text() == "mine\n"
    assert not (made.root / "gone/deep").exists()


def test_a_folder_with_the_users_files_does_not_become_a_file(tmp_path: Path) -> None:
    made = full(tmp_path)
    (made.root / "dir-to-file/mine").write_text("mine\n")
    outcome = made.merge()
    assert reasons(outcome.conflicts) == {b"dir-to-file": "the folder holds files that stay"}
    assert (made.root / "dir-to-file/mine").read_text() == "mine\n"
    assert not (made.root / "dir-to-file/x").exists()


def test_a_file_does_not_become_a_folder_unless_its_removal_is_accepted(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"a": text("1\n")}, {b"a/b": text("2\n")})
    removal = next(file for file in made.files if file.path == b"a")
    review = FileReview(removal, b"1\n", None)
    outcome = made.merge(Overlay(Uniform("accepted"), review.decide("rejected")))
    assert reasons(outcome.conflicts) == {b"a/b": "its folder is a file now"}
    assert tree_of(made.root) == {"a": Entry("file", 0o644, b"1\n")}


def test_a_rename_carries_the_users_edit_along(tmp_path: Path) -> None:
    base: Nodes = {b"old": text("1\n2\n3\n4\n5\n")}
    made = scene(tmp_path, base, {b"new": text("ONE\n2\n3\n4\n5\n")}, renames={b"new": b"old"})
    (made.root / "old").write_text("1\n2\n3\n4\nmine\n")
    os.chmod(made.root / "old", 0o600)
    before = tree_of(made.root)
    outcome = made.merge()
    assert tree_of(made.root) == {"new": Entry("file", 0o600, b"ONE\n2\n3\n4\nmine\n")}
    made.undo(outcome.merge)
    assert tree_of(made.root) == before


@pytest.mark.parametrize("part", ["rename", "content", "both"])
def test_rename_and_edit_are_decided_apart(tmp_path: Path, part: str) -> None:
    base: Nodes = {b"old": text("1\n2\n")}
    made = scene(tmp_path, base, {b"new": text("1\nTWO\n")}, renames={b"new": b"old"})
    review = FileReview(made.files[0], b"1\n2\n", b"1\nTWO\n")
    wanted = [unit.id for unit in review.units]
    if part == "rename":
        wanted = [review.aspects[0].id]
    elif part == "content":
        wanted = [review.hunks[0].id]
    made.merge(Overlay(Uniform("open"), review.decide("accepted", wanted)))
    name = "old" if part == "content" else "new"
    content = b"1\n2\n" if part == "rename" else b"1\nTWO\n"
    assert tree_of(made.root) == {name: Entry("file", 0o644, content)}


def test_a_rename_onto_a_taken_name_changes_neither(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"old": text("1\n")}, {b"new": text("1\n")}, renames={b"new": b"old"})
    (made.root / "new").write_text("mine\n")
    before = tree_of(made.root)
    assert reasons(made.merge().conflicts) == {b"new": "its new name is taken"}
    assert tree_of(made.root) == before


def test_only_the_executable_bit_changes_with_a_mode(tmp_path: Path) -> None:
    made = scene(
        tmp_path,
        {b"on": text("1\n"), b"off": text("1\n", "100755")},
        {b"on": text("1\n", "100755"), b"off": text("1\n")},
    )
    os.chmod(made.root / "on", 0o640)
    os.chmod(made.root / "off", 0o750)
    made.merge()
    modes = {name: entry.mode for name, entry in tree_of(made.root).items()}
    assert modes == {"on": 0o750, "off": 0o640}


def test_content_without_mode_leaves_the_bit_alone(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n")}, {b"f": text("2\n", "100755")})
    review = FileReview(made.files[0], b"1\n", b"2\n")
    ids = [hunk.id for hunk in review.hunks]
    made.merge(Overlay(Uniform("open"), review.decide("accepted", ids)))
    assert tree_of(made.root) == {"f": Entry("file", 0o644, b"2\n")}


def test_the_umask_rules_new_files_only(tmp_path: Path) -> None:
    made = scene(
        tmp_path,
        {b"old": text("1\n")},
        {b"old": text("2\n"), b"new": text("n\n"), b"d/x": text("x\n", "100755")},
    )
    before = os.umask(0o077)
    try:
        made.merge()
    finally:
        os.umask(before)
    modes = {name: entry.mode for name, entry in tree_of(made.root).items()}
    assert modes == {"old": 0o644, "new": 0o600, "d": 0o700, "d/x": 0o700}


def test_capabilities_do_not_pass_to_new_content(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n", "100755")}, {b"f": text("2\n", "100755")})
    capability = b"\x01\x00\x00\x02\x00\x04\x00\x00" + bytes(12)
    try:
        os.setxattr(made.root / "f", "security.capability", capability)
    except OSError:
        pytest.skip("setting a capability is not allowed here")
    made.merge()
    assert "security.capability" not in os.listxattr(made.root / "f")


def test_a_broken_hard_link_is_told(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n")}, {b"f": text("2\n")})
    os.link(made.root / "f", tmp_path / "other")
    outcome = made.merge()
    assert "hard links" in reasons(outcome.notices)[b"f"]
    assert (tmp_path / "other").read_text() == "1\n"


def test_times_are_of_now_and_owners_stay(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n")}, {b"f": text("2\n")})
    os.utime(made.root / "f", (1, 1))
    made.merge()
    assert (made.root / "f").stat().st_mtime > 1_000_000
    if os.geteuid() == 0:
        os.chown(made.root / "f", 12345, 12345)
        made.base, made.agent = {b"f": text("2\n")}, {b"f": text("3\n")}
        made.merge()
        assert (made.root / "f").stat().st_uid == 12345


def test_a_file_with_a_note_is_never_merged(tmp_path: Path) -> None:
    made = scene(tmp_path, {}, {})
    from snapshot.review import ChangedFile, plan_reviews

    review = FileReview(ChangedFile(b"f", "added", mode="100644", note="sparse"), None, b"x")
    assert review.units == ()
    assert plan_reviews([review], Uniform("accepted"), made.root).ops == ()


def test_line_endings_and_bytes_stay_exact(tmp_path: Path) -> None:
    base = b"a\r\nb\r\nc\xff\r\n"
    made = scene(tmp_path, {b"f": text(base)}, {b"f": text(b"a\r\nb\r\nnew\r\nc\xff\r\n")})
    made.merge()
    assert (made.root / "f").read_bytes() == b"a\r\nb\r\nnew\r\nc\xff\r\n"


def test_write_nodes_is_what_tree_of_reads(tmp_path: Path) -> None:
    nodes: Nodes = {b"f": text("x", "100755"), b"l": link("f"), b"d": FOLDER}
    write_nodes(tmp_path, nodes)
    assert {name: entry.kind for name, entry in tree_of(tmp_path).items()} == {
        "f": "file",
        "l": "link",
        "d": "dir",
    }
