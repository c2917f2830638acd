"""A review whose workspace, disk or change set is not what it was: one sentence, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.keeper import generation, merging
from app.protocol import Decide, MergeRequest
from snapshot.errors import MergeAborted, WorkspaceRefused
from snapshot.review_sides import MAX_TEXT
from tests.app.keeper_bench import NUMBERS, Bench, bench_of
from tests.snapshot.merge_help import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Three files, and their session."""
    made = bench_in(tmp_path / "ws", tmp_path / "session")
    yield made
    made.desk.close()


def bench_in(workspace: Path, folder: Path) -> Bench:
    """Return a session on a workspace of three files."""
    (workspace / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (workspace / name).write_text(NUMBERS)
    folder.mkdir()
    return Bench(workspace, folder)


def nothing(_fd: int) -> None:
    """Stand in for syncing."""


def ran(*command: str) -> bool:
    """Run a program of the host; whether it succeeded."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def edited(bench: Bench) -> None:
    """Let the agent edit all three and make one, and accept everything."""
    for name in (b"a.txt", b"b.txt", b"sub/c.txt"):
        bench.guest.put(name, NUMBERS.replace("2\n", "two\n", 1).encode())
    bench.guest.folder(b"sub")
    bench.guest.put(b"new.txt", b"new\n")
    await bench.take()
    paths = [file.path for file in bench.desk.changes().files]
    bench.desk.decide([Decide(path, "accepted") for path in paths])


async def test_a_workspace_that_is_deleted_while_reviewing(bench: Bench) -> None:
    await edited(bench)
    away = bench.workspace.with_name("away")
    bench.workspace.rename(away)
    before = tree_of(away)
    changes = bench.desk.changes()
    assert all(file.drift for file in changes.files if file.kind != "added")
    with pytest.raises(WorkspaceRefused) as caught:
        bench.desk.merge(MergeRequest())
    assert caught.value.hint
    with pytest.raises(WorkspaceRefused):
        bench.desk.merge(MergeRequest(dry_run=True))
    assert bench.desk.undo_decision()
    assert bench.desk.redo_decision()
    assert tree_of(away) == before
    away.rename(bench.workspace)
    assert len(bench.desk.merge(MergeRequest()).written) == 4


async def test_a_workspace_that_is_a_file_now_or_another_folder(bench: Bench) -> None:
    await edited(bench)
    away = bench.workspace.with_name("away")
    bench.workspace.rename(away)
    before = tree_of(away)
    bench.workspace.write_text("no folder\n")
    with pytest.raises(WorkspaceRefused):
        bench.desk.merge(MergeRequest())
    bench.workspace.unlink()
    bench.workspace.mkdir()
    report = bench.desk.merge(MergeRequest())
    assert report.written == ("new.txt",)  # what you removed stays removed
    assert set(report.conflicts) == {"a.txt", "b.txt", "sub/c.txt"}
    assert tree_of(away) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_a_workspace_that_is_unmounted_while_reviewing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if not ran("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)):
        pytest.skip("mounting is not allowed here")
    try:
        bench = bench_in(disk / "ws", tmp_path / "session")
        await edited(bench)
    finally:
        assert ran("umount", "-l", str(disk))
    assert bench.desk.changes().files
    with pytest.raises(WorkspaceRefused):
        bench.desk.merge(MergeRequest())
    assert list(disk.iterdir()) == []
    bench.desk.close()


async def test_read_only_files_are_written_and_stay_read_only(bench: Bench) -> None:
    for name, mode in (("a.txt", 0o444), ("b.txt", 0o400), ("sub/c.txt", 0o555)):
        (bench.workspace / name).chmod(mode)
    await edited(bench)
    report = bench.desk.merge(MergeRequest())
    assert len(report.written) == 4
    modes = [(bench.workspace / name).stat().st_mode & 0o777 for name in ("a.txt", "b.txt")]
    assert modes == [0o444, 0o400]
    bench.desk.undo(report.merge)
    assert (bench.workspace / "b.txt").read_text() == NUMBERS
    assert (bench.workspace / "b.txt").stat().st_mode & 0o777 == 0o400


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give up root")
async def test_an_immutable_folder_refuses_the_merge_whole(bench: Bench) -> None:
    await edited(bench)
    before = tree_of(bench.workspace)
    if not ran("chattr", "+i", str(bench.workspace / "sub")):
        pytest.skip("this file system knows no immutable folders")
    try:
        with pytest.raises(MergeAborted) as caught:
            bench.desk.merge(MergeRequest())
        assert "taken back" in caught.value.message
        assert tree_of(bench.workspace) == before
    finally:
        assert ran("chattr", "-i", str(bench.workspace / "sub"))
    assert len(bench.desk.merge(MergeRequest()).written) == 4


async def test_a_file_beyond_the_limit_is_decided_whole_and_never_diffed(bench: Bench) -> None:
    line = b"x" * 1023 + b"\n"
    bench.guest.put(b"huge.txt", line * (MAX_TEXT // len(line) + 1))
    await bench.take()
    (file,) = bench.desk.changes().files
    assert file.binary
    assert [hunk.aspect for hunk in file.hunks] == ["creation"]
    assert file.tier == "held"


async def test_ten_thousand_changed_files(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", nothing)  # one for each content: the disk's speed, not ours
    bench.guest.folder(b"many")
    for number in range(10_000):
        bench.guest.put(b"many/f%d.txt" % number, b"%d\n" % number)
    await bench.take()
    files = bench.desk.changes().files
    assert len(files) == 10_000
    bench.desk.decide([Decide(file.path, "accepted") for file in files[:1_000]])
    report = bench.desk.merge(MergeRequest(dry_run=True))
    assert len(report.written) == 1_000
    assert bench.desk.open_units == 9_000
    assert bench.desk.undo_decision()
    assert bench.desk.open_units == 10_000


async def test_a_change_set_that_grows_keeps_only_identical_decisions(bench: Bench) -> None:
    await edited(bench)
    known = {file.path: file.decision for file in bench.desk.changes().files}
    assert set(known.values()) == {"accepted"}
    bench.guest.put(b"b.txt", NUMBERS.replace("2\n", "TWO\n", 1).encode())
    bench.guest.put(b"later.txt", b"later\n")
    await bench.take()
    found = {file.path: file.decision for file in bench.desk.changes().files}
    assert found == {**known, "b.txt": "open", "later.txt": "open"}
    report = bench.desk.merge(MergeRequest())
    assert set(report.written) == {"a.txt", "sub/c.txt", "new.txt"}
    assert (bench.workspace / "b.txt").read_text() == NUMBERS


async def test_a_file_that_is_created_and_deleted_again_is_no_change(bench: Bench) -> None:
    bench.guest.put(b"brief.txt", b"x\n")
    await bench.take()
    assert [file.path for file in bench.desk.changes().files] == ["brief.txt"]
    del bench.guest.entries[b"brief.txt"]
    await bench.take()
    assert bench.desk.changes().files == ()
    bench.guest.remove(b"brief.txt")
    await bench.take()
    assert bench.desk.changes().files == ()


async def test_what_was_rejected_is_never_written_also_by_the_next_keeper(bench: Bench) -> None:
    await edited(bench)
    bench.guest.remove(b"b.txt")
    await bench.take()
    bench.desk.decide([Decide("a.txt", "rejected"), Decide("b.txt", "rejected")])
    first = bench.desk.merge(MergeRequest())
    bench.desk.close()
    bench.open()
    second = bench.desk.merge(MergeRequest())
    assert not {"a.txt", "b.txt"} & {*first.written, *second.written}
    assert (bench.workspace / "a.txt").read_text() == NUMBERS
    assert (bench.workspace / "b.txt").read_text() == NUMBERS


async def test_two_reviews_of_one_session_at_once(bench: Bench) -> None:
    bench.guest.folder(b"many")
    for number in range(60):
        bench.guest.put(b"many/f%d" % number, b"%d\n" % number)
    await bench.take()
    paths = [file.path for file in bench.desk.changes().files]
    failed: list[BaseException] = []
    written: list[str] = []

    def review(mine: list[str]) -> None:
        try:
            for path in mine:
                bench.desk.decide([Decide(path, "accepted")])
                bench.desk.changes()
            written.extend(bench.desk.merge(MergeRequest()).written)
        except BaseException as error:  # a thread's failure is the test's
            failed.append(error)

    both = [threading.Thread(target=review, args=(paths[n::2],)) for n in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(120)
    assert failed == []
    assert sorted(written) == sorted(paths)
    assert {file.decision for file in bench.desk.changes().files} == {"accepted"}
    assert {path.name for path in (bench.workspace / "many").iterdir()} == {
        f"f{number}" for number in range(60)
    }


async def test_a_session_folder_that_is_gone_is_said(bench: Bench) -> None:
    await edited(bench)
    before = tree_of(bench.workspace)
    shutil.rmtree(bench.folder / "merges")
    bench.folder.joinpath("merges").write_text("no folder\n")
    with pytest.raises(MergeAborted):
        bench.desk.merge(MergeRequest())
    assert tree_of(bench.workspace) == before


async def test_a_merge_that_would_not_fit_into_memory_is_refused_and_done_in_parts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MAX_AT_ONCE", 3 << 20)
    for name in (b"one", b"two", b"three"):
        bench.guest.put(name, b"\0" * (1 << 20) + name)
    await bench.take()
    bench.desk.decide([Decide(name, "accepted") for name in ("one", "two", "three")])
    before = tree_of(bench.workspace)
    with pytest.raises(MergeAborted, match="three most of all") as caught:
        bench.desk.merge(MergeRequest())
    assert "--reject" in caught.value.hint
    assert tree_of(bench.workspace) == before
    assert bench.desk.merge(MergeRequest(reject=("three",))).written == ("one", "two")
    assert (bench.workspace / "one").stat().st_size == (1 << 20) + 3


async def test_reviews_are_held_by_their_bytes_as_well(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "MAX_HELD_BYTES", 100_000)
    for name in (b"one", b"two", b"three"):
        bench.guest.put(name, b"x" * 40_000)
    await bench.take()
    held = bench.desk._generation  # pyright: ignore[reportPrivateUsage]
    for file in bench.desk.files.values():
        bench.desk.review(file)
    sizes = [len(review.agent or b"") for review in held._held.values()]  # pyright: ignore[reportPrivateUsage]
    assert sizes == [40_000, 40_000]


@pytest.mark.parametrize("how", ["removed", "renamed", "mode", "sparse"])
async def test_a_large_file_of_the_snapshot_is_listed_and_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(generation, "MAX_OLD", 1 << 20)
    data = os.urandom(3 << 20)
    with bench_of(tmp_path, {"large": data, "small": "1\n"}) as bench:
        if how in ("removed", "renamed"):
            bench.guest.remove(b"large")
        if how != "removed":
            name = b"other" if how == "renamed" else b"large"
            bench.guest.put(name, data, 0o755 if how == "mode" else 0o644)
        if how == "sparse":
            entry = bench.guest.entries[b"large"]
            bench.guest.entries[b"large"] = msgspec.structs.replace(
                entry, size=1 << 30, allocated=0
            )
        await bench.take()
        (large,) = bench.desk.changes().files
        assert large.note == generation.LARGE or how == "sparse"
        assert (large.hunks, bool(large.note)) == ((), True)
        assert large.base in ("", large.agent)  # the agent's side may be the same content
        report = bench.desk.merge(MergeRequest(accept=("*",)))
        assert (report.written, (bench.workspace / "large").read_bytes()) == ((), data)


async def test_old_contents_that_fill_the_store_do_not_stop_the_review(tmp_path: Path) -> None:
    with bench_of(tmp_path, {"large": os.urandom(3 << 20), "small": "1\n"}, 1 << 20) as bench:
        bench.guest.remove(b"large")
        bench.guest.put(b"small", b"2\n")
        await bench.take()
        notes = {file.path: file.note for file in bench.desk.changes().files}
        assert notes == {"large": generation.NO_ROOM, "small": ""}
        bench.desk.decide([Decide("small", "accepted")])
        assert bench.desk.merge(MergeRequest()).written == ("small",)
