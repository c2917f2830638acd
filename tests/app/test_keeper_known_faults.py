"""Faults that review tools are known for, each as its smallest input and with its right value.

What of them is about lines alone stands in `tests/snapshot`; here they go through a session's desk.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from app.protocol import Decide, MergeRequest
from app.wire_text import to_bytes, to_text
from snapshot.decisions import Uniform
from snapshot.patch import export_patch
from snapshot.review import ChangedFile, FileReview
from snapshot.rows import RowModel
from snapshot.safe_text import safe_name
from tests.app.keeper_bench import Bench, bench_of
from tests.snapshot.merge_help import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.protocol import FileChange

ODD = [b"\x0c", b"\x0b", b"\x1c", b"\x1d", b"\x1e", b"\x85", b"\xc2\x85", b"\r", b"\xe2\x80\xa8"]
"""What other tools take for the end of a line; the last one is U+2028."""

NAMES = [
    b"a b", b'q"x', b"t\tab", b"n\nl", "é".encode(), "e\u0301".encode(), b"back\\slash", b"-rf",
    b"\xff", b" lead", b"trail ", b"app/[slug]/page.tsx", b"[/foo].py",
]  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Two files, two links, and a file outside that the links could reach."""
    (tmp_path / "outside").write_text("outside\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/link").symlink_to("a.txt")
    (tmp_path / "project/other").symlink_to("a.txt")
    with bench_of(tmp_path, {"a.txt": "1\n", "b.txt": "2\n"}) as made:
        yield made


def listed(bench: Bench) -> dict[str, FileChange]:
    """Return the changes by their paths."""
    return {file.path: file for file in bench.desk.changes().files}


def merge(bench: Bench, *names: str) -> MergeRequest:
    """Merge these paths by their names; everything of them must be written."""
    report = bench.desk.merge(MergeRequest(accept=names))
    assert (set(report.written), report.conflicts, report.skipped) == (set(names), (), ())
    return MergeRequest(accept=(report.merge,))


# Lines that only some tools see


def by_grep(path: Path) -> list[tuple[int, bytes]]:
    """Return the lines of a file with their numbers, as grep counts them."""
    command = ["grep", "-an", "", str(path)]
    done = subprocess.run(command, capture_output=True, check=True, env={"LC_ALL": "C"})
    lines = done.stdout.split(b"\n")[:-1]
    return [(int(line.partition(b":")[0]), line.partition(b":")[2]) for line in lines]


def test_lines_have_the_numbers_of_grep(tmp_path: Path) -> None:
    text = b"first\n" + b"".join(b"foo" + odd + b"bar\n" for odd in ODD) + b"last\n"
    (tmp_path / "f").write_bytes(text)
    made = FileReview(ChangedFile(b"f", "modified", None, "100644", "100644"), b"first\n", text)
    for view in ("unified", "split"):
        model = RowModel(made, view)
        rows = [row for row in model.rows(0, len(model)) if row.new_no is not None]
        assert [row.new_no for row in rows] == [number for number, _ in by_grep(tmp_path / "f")]
    lines = [line.removesuffix(b"\n") for line in made.new_lines]
    assert lines == [line for _, line in by_grep(tmp_path / "f")]


@pytest.mark.parametrize("odd", ODD)
def test_a_line_cannot_forge_another_file_in_a_patch(tmp_path: Path, odd: bytes) -> None:
    forged = b"x" + odd + b"diff --git a/evil b/evil" + odd + b"--- a/evil" + odd + b"+++ b/evil\n"
    old, new = b"a\n", b"a\n" + forged
    made = FileReview(ChangedFile(b"f", "modified", None, "100644", "100644"), old, new)
    patch = export_patch([made], Uniform("accepted"))
    (tmp_path / "f").write_bytes(old)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, check=True)
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == new


# Links


async def test_links_are_shown_by_their_target_decided_whole_and_never_followed(
    bench: Bench, tmp_path: Path
) -> None:
    before = tree_of(bench.workspace)
    bench.guest.link(b"new", b"b.txt")  # added
    bench.guest.link(b"link", b"b.txt")  # another target
    bench.guest.link(b"a.txt", b"b.txt")  # in the place of a file
    bench.guest.put(b"other", b"a file now\n")  # in the place of a link
    await bench.take()
    found = listed(bench)
    kinds = {name: (file.kind, file.old_mode, file.mode) for name, file in found.items()}
    assert kinds == {
        "a.txt": ("type", "100644", "120000"),
        "link": ("modified", "120000", "120000"),
        "new": ("added", "", "120000"),
        "other": ("type", "120000", "100644"),
    }
    assert {tuple(hunk.aspect for hunk in file.hunks) for file in found.values()} == {
        ("link",),
        ("type",),
    }
    blobs = bench.folder / "blobs"
    for name, target in (("link", b"b.txt"), ("new", b"b.txt"), ("a.txt", b"b.txt")):
        digest = found[name].agent
        assert (blobs / digest[:2] / digest).read_bytes() == target
    done = merge(bench, *found)
    after = tree_of(bench.workspace)
    assert {name: repr(entry) for name, entry in after.items()} == {
        "a.txt": "link 0 b'b.txt'",
        "b.txt": "file 644 b'2\\n'",
        "link": "link 0 b'b.txt'",
        "new": "link 0 b'b.txt'",
        "other": "file 644 b'a file now\\n'",
    }
    bench.desk.undo(done.accept[0])
    assert tree_of(bench.workspace) == before


async def test_a_link_that_leads_out_is_not_followed_nor_written(bench: Bench) -> None:
    outside = bench.workspace.parent / "outside"
    bench.guest.link(b"b.txt", b"../outside")
    await bench.take()
    file = listed(bench)["b.txt"]
    assert (file.tier, file.kind) == ("held", "type")
    report = bench.desk.merge(MergeRequest(accept=("b.txt",)))
    assert (report.written, [one.path for one in report.skipped]) == ((), ["b.txt"])
    assert ((bench.workspace / "b.txt").read_text(), outside.read_text()) == ("2\n", "outside\n")


# Names


async def test_every_name_is_listed_decided_written_and_taken_back(bench: Bench) -> None:
    before = tree_of(bench.workspace)
    for folder in (b"app", b"app/[slug]", b"["):
        bench.guest.folder(folder)
    for name in NAMES:
        bench.guest.put(name, b"of " + name)
    await bench.take()
    texts = {to_text(name): name for name in NAMES}
    assert set(listed(bench)) == set(texts)
    assert len(texts) == len(NAMES)  # composed and decomposed letters stay two names
    assert all(safe_name(to_bytes(text)).text.isprintable() for text in texts)
    bench.desk.decide([Decide(text, "accepted") for text in texts])
    report = bench.desk.merge(MergeRequest())
    assert (set(report.written), report.conflicts, report.skipped) == (set(texts), (), ())
    written = tree_of(bench.workspace)
    for name in NAMES:
        assert written[os.fsdecode(name)].content == b"of " + name
    bench.desk.undo(report.merge)
    assert tree_of(bench.workspace) == before


# Repositories inside


async def test_a_new_nested_repository_is_one_entry_and_its_git_never_opened(bench: Bench) -> None:
    for folder in (b"lib", b"lib/.git", b"lib/.git/hooks", b"lib/deep", b"lib/deep/.git", b"tree"):
        bench.guest.folder(folder)
    bench.guest.put(b"lib/.git/HEAD", b"ref: refs/heads/main\n")
    bench.guest.put(b"lib/.git/hooks/post-checkout", b"#!/bin/sh\n", 0o755)
    bench.guest.put(b"lib/deep/x.c", b"x\n")
    bench.guest.put(b"lib/y.c", b"y\n")
    bench.guest.put(b"tree/.git", b"gitdir: /elsewhere\n")  # a worktree, or a submodule
    bench.guest.put(b"tree/z.c", b"z\n")
    await bench.take()
    found = listed(bench)
    assert {name: file.note.partition(":")[0] for name, file in found.items()} == {
        "lib": "nested repository, 2 files",
        "tree": "nested repository, 1 file",
    }
    assert not [path for path in bench.guest.fetched if b".git" in path]
    before = tree_of(bench.workspace)
    for text in ("*", "lib"):
        report = bench.desk.merge(MergeRequest(accept=(text,)))
        assert (report.written, report.conflicts, report.held) == ((), (), ())
        assert (report.skipped[0].path, report.skipped[0].reason) == ("lib", found["lib"].note)
    assert tree_of(bench.workspace) == before
    bench.guest.entries.pop(b"tree/.git")  # it becomes an ordinary folder: so do its files
    await bench.take()
    assert set(listed(bench)) == {"lib", "tree/z.c"}
    merge(bench, "tree/z.c")
    assert (bench.workspace / "tree/z.c").read_text() == "z\n"


async def test_a_submodule_that_the_workspace_has_is_changed_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/l.c").write_text("1\n")
    (tmp_path / "project").mkdir()
    git(tmp_path / "lib", "init", "-q")
    commit(tmp_path / "lib")
    git(tmp_path / "project", "init", "-q")
    git(tmp_path / "project", "submodule", "add", "-q", str(tmp_path / "lib"), "sub")
    commit(tmp_path / "project")
    pointer = (tmp_path / "project/sub/.git").read_bytes()
    with bench_of(tmp_path, {"a.txt": "1\n"}) as bench:
        for folder in (b"sub", b".git", b".git/modules", b".git/modules/sub"):
            bench.guest.folder(folder)
        bench.guest.put(b"sub/l.c", b"2\n")
        bench.guest.put(b"sub/.git", b"gitdir: /elsewhere\n")
        bench.guest.put(b".git/modules/sub/HEAD", b"0" * 40 + b"\n")  # the pointer's commit
        bench.guest.put(b".git/index", b"another entry for sub")
        await bench.take()
        assert set(listed(bench)) == {"sub/l.c"}
        merge(bench, "sub/l.c")
        assert (bench.workspace / "sub/l.c").read_text() == "2\n"
        assert (bench.workspace / "sub/.git").read_bytes() == pointer


async def test_a_repository_made_of_known_files_hides_none_of_their_changes(bench: Bench) -> None:
    bench.guest.folder(b"moved")
    bench.guest.folder(b"moved/.git")
    bench.guest.put(b"a.txt", b"edited\n")
    bench.guest.remove(b"b.txt")
    await bench.take()
    assert {"a.txt", "b.txt", "moved"} == set(listed(bench))
    assert (listed(bench)["b.txt"].kind, listed(bench)["a.txt"].note) == ("deleted", "")


def git(where: Path, *words: str) -> None:
    """Run git in a folder of the test's own."""
    own = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *own, *words], cwd=where, check=True, capture_output=True)


def commit(where: Path) -> None:
    """Commit everything that is there."""
    git(where, "add", ".")
    git(where, "commit", "-qm", "all")
