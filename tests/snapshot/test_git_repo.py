from __future__ import annotations

import os
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.snapshot.capture_helpers import git, repository, write
from tests.snapshot.git_helpers import FILES, TOKEN, guest, holds, works

if TYPE_CHECKING:
    from pathlib import Path


def test_the_repository_works_and_is_clean(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    git(workspace, "tag", "-a", "v1", "-m", "v1")
    git(workspace, "branch", "feature/x")
    git(workspace, "pack-refs", "--all")
    git(workspace, "branch", "loose/y")

    tree, report = guest(workspace, tmp_path)

    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "log", "--format=%H") == git(workspace, "log", "--format=%H")
    assert git(tree, "for-each-ref") == git(workspace, "for-each-ref")
    assert report.notices == ()
    assert report.history == ()
    assert {p for p, e in report.manifest.items() if e.tracked} == set(map(str.encode, FILES))
    works(tree)
    assert git(tree, "describe", "--tags", "v1") == "v1\n"


def test_status_reads_no_content_when_nothing_changed(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    for name in FILES:
        os.utime(workspace / name, (1_600_000_000, 1_600_000_000))
    git(workspace, "status")

    tree, _ = guest(workspace, tmp_path)
    (tree / "a.txt").write_text("X\n")
    os.utime(tree / "a.txt", (1_600_000_000, 1_600_000_000))

    # same size and second, so only a look at the content could tell: git trusts the index
    assert git(tree, "status", "--porcelain") == ""


def test_changes_of_the_user_are_seen_as_in_the_workspace(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, "gone": "x", "moved": "moved\n" * 9})
    (workspace / "a.txt").write_text("b\n")  # same size, perhaps in the same second
    (workspace / "gone").unlink()
    (workspace / "run.sh").chmod(0o755)
    git(workspace, "mv", "moved", "new_name")
    write(workspace, {"untracked.txt": "u", "staged.txt": "s"})
    git(workspace, "add", "staged.txt")
    git(workspace, "add", "-N", "untracked.txt")

    tree, _ = guest(workspace, tmp_path)

    assert git(tree, "status", "--porcelain") == git(workspace, "status", "--porcelain")
    assert git(tree, "diff") == git(workspace, "diff")
    assert git(tree, "diff", "--cached") == git(workspace, "diff", "--cached")


def test_withheld_tracked_files_do_not_show_as_deleted(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**FILES, ".env": "K=1", "keys/a.pem": "k", "docs/x.md": "d"}
    workspace = repository(tmp_path / "ws", {**files, ".clocheignore": "/docs/\n"})

    tree, report = guest(workspace, tmp_path)

    assert report.tracked_withheld == (b".env", b"docs/x.md", b"keys/a.pem")
    assert git(tree, "status", "--porcelain") == ""
    flags = dict(line.split(" ", 1)[::-1] for line in git(tree, "ls-files", "-v").splitlines())
    assert {name for name, flag in flags.items() if flag == "S"} == {
        ".env",
        "docs/x.md",
        "keys/a.pem",
    }
    write(tree, {"a.txt": "changed\n"})
    git(tree, "commit", "-q", "-a", "-m", "all")
    git(tree, "add", "-A")
    assert git(tree, "show", "--format=", "--name-status", "HEAD") == "M\ta.txt\n"
    assert git(tree, "status", "--porcelain") == ""
    works(tree)


def test_withheld_names_in_the_history_are_said(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, "old/.env": "K=1", "id_rsa": "k"})
    git(workspace, "rm", "-q", "-r", "old", "id_rsa")
    git(workspace, "commit", "-q", "-m", "remove")

    _, report = guest(workspace, tmp_path)
    _, short = guest(workspace, tmp_path, history_commits=1)
    _, none = guest(workspace, tmp_path, history_seconds=0.0)

    assert report.history == (b"id_rsa", b"old/.env")
    assert not report.history_cut
    assert (short.history, short.history_cut) == ((), True)
    assert none.history_cut


SECRETS_OF_GIT = f"""
git config remote.origin.url https://{TOKEN}@github.com/a/b
mkdir -p .git/hooks .git/logs/refs/heads .git/worktrees/x .git/modules/m .git/lfs .git/rr-cache
echo 'echo {TOKEN}' > .git/hooks/pre-commit
echo '{TOKEN}' > .git/logs/HEAD
echo '{TOKEN}' > .git/FETCH_HEAD
echo '{TOKEN}' > .git/credentials
echo '[http] extraHeader = {TOKEN}' > .git/config.worktree
echo 'https://u:{TOKEN}@h/objects' > .git/objects/info/http-alternates
echo '[remote "o"] url = https://{TOKEN}@h/x' > .git/modules/m/config
echo '{TOKEN}' > .git/worktrees/x/notes
mkdir -p .git/branches
echo '{TOKEN}' > .git/branches/x
echo '{TOKEN}' > .git/COMMIT_EDITMSG
echo '{TOKEN}' > .git/objects/pack/tmp_pack_x
echo '{TOKEN}' > .git/refs/heads/broken
echo '{TOKEN}' > .git/shallow
echo '{TOKEN}' >> .git/packed-refs
echo '{TOKEN}' > .git/sourcetreeconfig
"""


def test_no_credential_and_no_program_goes_along(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    subprocess.run(["sh", "-ec", SECRETS_OF_GIT], cwd=workspace, check=True)
    assert holds(workspace, TOKEN)

    tree, _ = guest(workspace, tmp_path)

    assert not holds(tree, TOKEN)
    assert not (tree / ".git/hooks").exists()
    assert not (tree / ".git/logs").exists()
    assert git(tree, "config", "remote.origin.url") == "https://github.com/a/b\n"
    works(tree)


@pytest.mark.parametrize("seed", range(12))
def test_damaged_objects_harm_nothing(seed: int, tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, ".env": "x", "deep/er/f": "f"})
    if seed % 2:
        git(workspace, "gc", "-q")
    source = random.Random(seed)
    for path in sorted((workspace / ".git/objects").rglob("*")):
        if path.is_file() and source.random() < 0.7:
            data = bytearray(path.read_bytes())
            for _ in range(source.randrange(1, 6)):
                data[source.randrange(len(data))] = source.randrange(256)
            path.chmod(0o644)
            path.write_bytes(data)

    _, report = guest(workspace, tmp_path)

    assert report.tracked_withheld == (b".env",)


def test_a_repository_without_commits(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x"})
    git(workspace, "init", "-q", "-b", "main")

    tree, report = guest(workspace, tmp_path)

    assert report.notices == ()
    assert git(tree, "status", "--porcelain") == "?? a\n"
    works(tree)


def test_sha256_repositories(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    git(workspace, "init", "-q", "-b", "main", "--object-format=sha256")
    repository(workspace, {**FILES, ".env": "x"})

    tree, report = guest(workspace, tmp_path)

    assert report.notices == ()
    assert report.tracked_withheld == (b".env",)
    assert report.history == (b".env",)
    assert git(tree, "status", "--porcelain") == ""
    works(tree)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index(version: str, tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, ".env": "x"})
    if version == "3":
        git(workspace, "update-index", "--skip-worktree", "a.txt")
    else:
        git(workspace, "update-index", "--index-version", version)
    git(workspace, "update-index", "--assume-unchanged", "run.sh")

    tree, report = guest(workspace, tmp_path)

    assert report.notices == ()
    assert git(tree, "status", "--porcelain") == ""
    assert "h run.sh" in git(tree, "ls-files", "-v")
    assert ("S a.txt" in git(tree, "ls-files", "-v")) == (version == "3")


def test_a_split_index_is_made_anew(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    git(workspace, "update-index", "--split-index")
    write(workspace, {"b": "x"})
    git(workspace, "add", "b")

    tree, report = guest(workspace, tmp_path)

    assert "split" in report.notices[0]
    assert git(tree, "status", "--porcelain") == "?? b\n"
    works(tree)


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    index = workspace / ".git/index"
    index.write_bytes(index.read_bytes()[:40])

    tree, report = guest(workspace, tmp_path)

    assert "damaged" in report.notices[0]
    assert git(tree, "status", "--porcelain") == ""


def test_a_sparse_checkout_stays_one(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, "far/away/x": "x", "far/y": "y"})
    git(workspace, "sparse-checkout", "set", "--cone", "--sparse-index", "sub")

    tree, report = guest(workspace, tmp_path)

    assert report.notices == ()
    assert git(tree, "status", "--porcelain") == ""
    assert not (tree / "far").exists()
    works(tree)


def test_a_conflict_in_progress_goes_along(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    git(workspace, "checkout", "-q", "-b", "other")
    write(workspace, {"a.txt": "theirs\n"})
    git(workspace, "commit", "-q", "-am", "theirs")
    git(workspace, "checkout", "-q", "main")
    write(workspace, {"a.txt": "ours\n"})
    git(workspace, "commit", "-q", "-am", "ours")
    git(workspace, "merge", "other", check=False)

    tree, _ = guest(workspace, tmp_path)

    assert git(tree, "status", "--porcelain") == "UU a.txt\n"
    assert git(tree, "ls-files", "-u") == git(workspace, "ls-files", "-u")
    write(tree, {"a.txt": "both\n"})
    git(tree, "commit", "-q", "-a", "-m", "merged")
    assert len(git(tree, "log", "-1", "--format=%P").split()) == 2


def test_a_shallow_clone_stays_shallow(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", FILES)
    write(source, {"a.txt": "2\n"})
    git(source, "commit", "-q", "-am", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", "ws")

    tree, report = guest(tmp_path / "ws", tmp_path)

    assert len(git(tree, "log", "--format=%H").split()) == 1
    assert not report.history_cut
    works(tree)


def test_a_config_that_git_refuses_is_replaced(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    (workspace / ".git/config").write_text("[broken\n")

    tree, report = guest(workspace, tmp_path)

    assert "config" in report.notices[0]
    works(tree)


def test_reftable_is_left_out_with_its_reason(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    with (workspace / ".git/config").open("a") as file:
        file.write("[extensions]\nrefStorage = reftable\n")

    _, report = guest(workspace, tmp_path)

    assert "reftable" in report.notices[0]


def test_without_git_its_files_stay_behind(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, "vendor/lib.go": "v"})

    tree, report = guest(workspace, tmp_path, git="none")

    assert not (tree / ".git").exists()
    assert (tree / "vendor/lib.go").exists()
    assert report.manifest[b"a.txt"].tracked


def test_heavy_folders_with_tracked_files_stay(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "vendor/lib/a.go": "a",
        "vendor/lib/b.go": "b",
        "build/keep.txt": "k",
        "src/target/t.rs": "t",
    }
    workspace = repository(tmp_path / "ws", {**files, ".gitignore": "/build/\n*.o\n"})
    write(workspace, {"build/out.bin": "o", "build/deep/x": "x", "build/keep2.txt": "n"})
    write(workspace, {"vendor/lib/new.go": "n", "vendor/lib/c.o": "o", "dist/x": "x"})
    write(workspace, {"app/node_modules/m/x.js": "x", "vendor/lib/sub/new": "n"})

    tree, report = guest(workspace, tmp_path)

    assert set(report.heavy) == {
        b"app/node_modules",
        b"build/deep",
        b"build/keep2.txt",
        b"build/out.bin",
        b"dist",
        b"vendor/lib/c.o",
    }
    assert (tree / "vendor/lib/sub/new").exists()
    assert git(tree, "status", "--porcelain") == "?? vendor/lib/new.go\n?? vendor/lib/sub/\n"
    assert not report.rules.ignored(b"vendor/lib/more.go")
    assert report.rules.ignored(b"dist/y")
    assert report.rules.ignored(b"build/more")
    assert not report.rules.ignored(b"build/keep.txt")


def test_gitignore_of_all_levels_and_the_exclude_file(tmp_path: Path) -> None:
    workspace = repository(
        tmp_path / "ws", {"a/.gitignore": "*.tmp\n!keep.tmp\n", ".gitignore": "*.log\n", "b": "b"}
    )
    write(workspace, {".git/info/exclude": "*.swp\n", "x.log": "visible to the agent"})

    tree, report = guest(workspace, tmp_path)

    assert (tree / "x.log").exists()
    for path in (b"x.log", b"a/x.tmp", b"a/b/y.log", b"z.swp"):
        assert report.rules.ignored(path)
        assert git(tree, "check-ignore", os.fsdecode(path)) != ""
    for path in (b"x.tmp", b"a/keep.tmp", b"b"):
        assert not report.rules.ignored(path)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    name = b"\xff\n\xfe.txt"
    with open(os.path.join(os.fsencode(workspace), name), "wb") as file:
        file.write(b"x")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-q", "-m", "odd")

    tree, report = guest(workspace, tmp_path)

    assert report.manifest[name].tracked
    assert git(tree, "status", "--porcelain") == ""


def test_a_second_capture_holds_nothing_of_the_first_and_no_secret_that_came_since(
    tmp_path: Path,
) -> None:
    workspace = repository(tmp_path / "ws", {"a": "1", ".gitignore": "local/\n"})
    git(workspace, "branch", "gone")
    first, _ = guest(workspace, tmp_path)
    git(workspace, "branch", "-D", "gone")
    git(workspace, "branch", "came")
    git(workspace, "config", "core.fsmonitor", "touch /tmp/marker")
    write(workspace, {"a": "2", ".env": "KEY=CANARY", "local/id_rsa": "CANARY", "b": "new"})
    second, report = guest(workspace, tmp_path)
    assert set(report.withheld) >= {b".env"}
    assert not holds(second, "CANARY")
    assert (second / "b").read_text() == "new"
    branches = [
        git(tree, "branch", "--format=%(refname:short)").split() for tree in (first, second)
    ]
    assert ["gone" in found for found in branches] == [True, False]
    assert ["came" in found for found in branches] == [False, True]
    assert "fsmonitor" not in (second / ".git" / "config").read_text()
    works(second)
