"""What you do in your workspace while an agent works survives "accept all": each known loss."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from app.protocol import Decide, MergeReport, MergeRequest
from tests.app.keeper_bench import NUMBERS, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def git(workspace: Path, *arguments: str) -> str:
    """Run the developer's own git in the developer's own workspace."""
    identity = ("-c", "user.name=dev", "-c", "user.email=dev@host.example")
    command = ["git", "-C", str(workspace), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A committed workspace, and its session."""
    workspace = tmp_path / "ws"
    (workspace / "build").mkdir(parents=True)
    (workspace / "build/out.bin").write_text("built\n")
    (workspace / ".gitignore").write_text("*.log\n")
    for name in ("a.txt", "b.txt", "gone.txt", "folder/x"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(NUMBERS)
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "first")
    (tmp_path / "session").mkdir()
    made = Bench(workspace, tmp_path / "session")
    yield made
    made.desk.close()


async def accept_all(bench: Bench) -> MergeReport:
    """Take the agent's changes, accept every one and merge."""
    await bench.take()
    files = bench.desk.changes().files
    bench.desk.decide([Decide(file.path, "accepted") for file in files])
    return bench.desk.merge(MergeRequest())


def work(bench: Bench) -> None:
    """Let the agent edit one file, drop one and make one."""
    bench.guest.put(b"a.txt", NUMBERS.replace("2\n", "two\n", 1).encode())
    bench.guest.remove(b"gone.txt")
    bench.guest.put(b"new.txt", b"of the agent\n")


async def test_a_file_that_you_create_meanwhile_stays(bench: Bench) -> None:
    work(bench)
    (bench.workspace / "mine.txt").write_text("mine\n")
    (bench.workspace / "mine/deep").mkdir(parents=True)
    (bench.workspace / "mine/deep/x").write_text("mine\n")
    report = await accept_all(bench)
    assert set(report.written) == {"a.txt", "gone.txt", "new.txt"}
    assert (bench.workspace / "mine.txt").read_text() == "mine\n"
    assert (bench.workspace / "mine/deep/x").read_text() == "mine\n"


async def test_your_edits_of_the_same_and_of_other_files_stay(bench: Bench) -> None:
    work(bench)
    (bench.workspace / "a.txt").write_text(NUMBERS.replace("29\n", "mine\n"))
    (bench.workspace / "b.txt").write_text("all mine\n")
    (bench.workspace / "gone.txt").write_text("mine again\n")
    report = await accept_all(bench)
    both = NUMBERS.replace("2\n", "two\n", 1).replace("29\n", "mine\n")
    assert (bench.workspace / "a.txt").read_text() == both
    assert (bench.workspace / "b.txt").read_text() == "all mine\n"
    assert (bench.workspace / "gone.txt").read_text() == "mine again\n"
    assert report.conflicts == ("gone.txt",)


async def test_what_you_delete_meanwhile_stays_deleted(bench: Bench) -> None:
    work(bench)
    (bench.workspace / "b.txt").unlink()
    (bench.workspace / "a.txt").unlink()
    report = await accept_all(bench)
    assert not (bench.workspace / "b.txt").exists()
    assert not (bench.workspace / "a.txt").exists()
    assert report.conflicts == ("a.txt",)


async def test_your_commits_meanwhile_stay(bench: Bench) -> None:
    work(bench)
    # The agent committed as well, on the same branch.
    bench.guest.folder(b".git")
    for name in (b".git/HEAD", b".git/index", b".git/COMMIT_EDITMSG"):
        bench.guest.put(name, b"of the agent\n")
    bench.guest.folder(b".git/refs")
    bench.guest.folder(b".git/refs/heads")
    bench.guest.put(b".git/refs/heads/main", b"0" * 40 + b"\n")
    (bench.workspace / "b.txt").write_text("committed\n")
    (bench.workspace / "mine.txt").write_text("committed\n")
    git(bench.workspace, "add", "-A")
    git(bench.workspace, "commit", "-qm", "second")
    head, log = git(bench.workspace, "rev-parse", "HEAD"), git(bench.workspace, "reflog")
    report = await accept_all(bench)
    assert not [path for path in report.written if ".git" in path]
    assert git(bench.workspace, "rev-parse", "HEAD") == head
    assert git(bench.workspace, "reflog") == log
    git(bench.workspace, "fsck", "--strict")
    status = git(bench.workspace, "status", "--porcelain").splitlines()
    assert sorted(line.split()[-1] for line in status) == ["a.txt", "gone.txt", "new.txt"]
    assert git(bench.workspace, "show", "HEAD:mine.txt") == "committed"


async def test_what_an_ignore_file_of_the_agent_unhides_stays(bench: Bench) -> None:
    bench.guest.put(b".gitignore", b"!build/\n!*.log\n")
    (bench.workspace / "build/later.bin").write_text("mine\n")
    (bench.workspace / "x.log").write_text("mine\n")
    report = await accept_all(bench)
    assert report.written == (".gitignore",)
    for name in ("build/out.bin", "build/later.bin", "x.log"):
        assert (bench.workspace / name).exists()


async def test_a_folder_that_became_a_file_stops_nothing(bench: Bench) -> None:
    work(bench)
    bench.guest.put(b"folder", b"a file now\n")
    report = await accept_all(bench)
    assert {"a.txt", "folder", "gone.txt", "new.txt"} <= set(report.written)
    assert (bench.workspace / "folder").read_text() == "a file now\n"
    bench.desk.undo(report.merge)
    assert (bench.workspace / "folder/x").read_text() == NUMBERS


async def test_a_folder_that_became_a_file_keeps_what_you_put_into_it(bench: Bench) -> None:
    work(bench)
    bench.guest.put(b"folder", b"a file now\n")
    (bench.workspace / "folder/mine").write_text("mine\n")
    report = await accept_all(bench)
    assert "folder" in report.conflicts
    assert "a.txt" in report.written
    assert (bench.workspace / "folder/mine").read_text() == "mine\n"
