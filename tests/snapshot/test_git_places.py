from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.snapshot.capture_helpers import git, repository, write
from tests.snapshot.git_helpers import FILES, TOKEN, guest, holds, works

if TYPE_CHECKING:
    from pathlib import Path


def test_a_nested_repository_is_sanitised_too(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    nested = repository(workspace / "libs/inner", {"i.txt": "i\n", "x.key": "k"})
    git(nested, "config", "remote.origin.url", f"https://{TOKEN}@github.com/a/b")

    tree, report = guest(workspace, tmp_path)

    assert not holds(tree, TOKEN)
    assert git(tree / "libs/inner", "status", "--porcelain") == ""
    assert b"libs/inner/x.key" in report.tracked_withheld
    assert report.history == (b"libs/inner/x.key",)
    works(tree / "libs/inner")


def test_submodules_become_repositories_of_their_own(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"l.txt": "l\n"})
    workspace = repository(tmp_path / "ws", FILES)
    git(
        workspace,
        *("-c", "protocol.file.allow=always"),
        "submodule",
        "add",
        "-q",
        str(library),
        "m",
    )
    git(workspace, "commit", "-q", "-m", "with submodule")
    git(workspace / "m", "config", "remote.origin.url", f"https://{TOKEN}@github.com/l")

    tree, report = guest(workspace, tmp_path)

    assert not holds(tree, TOKEN)
    assert (tree / "m/.git").is_dir()
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree / "m", "status", "--porcelain") == ""
    assert report.manifest[b"m"].tracked
    works(tree / "m")
    assert git(tree, "status", "--porcelain") == " M m\n"


def test_a_linked_worktree_becomes_a_repository_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", FILES)
    git(main, "branch", "other")
    git(main, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "ws"))
    workspace = tmp_path / "ws"
    write(workspace, {"a.txt": "changed\n", "staged": "s"})
    git(workspace, "add", "staged")
    git(main, "config", "remote.origin.url", f"https://{TOKEN}@github.com/l")
    write(main, {"untracked_in_main": TOKEN, ".git/hooks/post-commit": TOKEN})

    tree, report = guest(workspace, tmp_path)

    assert report.notices == ()
    assert not holds(tree, TOKEN)
    assert git(tree, "status", "--porcelain", "-b") == git(workspace, "status", "--porcelain", "-b")
    assert git(tree, "branch", "--format=%(refname)") == git(main, "branch", "--format=%(refname)")
    git(main, "worktree", "list")
    works(tree)


def test_worktrees_inside_of_the_workspace_share_the_objects(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {**FILES, ".gitignore": "/.trees/\n"})
    git(workspace, "worktree", "add", "-q", "-b", "feature", str(workspace / ".trees/feature"))

    tree, report = guest(workspace, tmp_path)

    inner = tree / ".trees/feature"
    assert git(inner, "status", "--porcelain", "-b") == "## feature\n"
    assert git(tree, "status", "--porcelain", "-b") == "## main\n"
    objects = [path for path in report.manifest if path.startswith(b".trees/feature/.git/objects/")]
    assert set(objects) == {
        b".trees/feature/.git/objects/info",
        b".trees/feature/.git/objects/info/alternates",
        b".trees/feature/.git/objects/pack",
    }
    works(inner)


def test_a_worktree_of_a_bare_repository(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", FILES)
    git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "ws"), "main")

    tree, report = guest(tmp_path / "ws", tmp_path)

    assert report.notices == ()
    assert git(tree, "status", "--porcelain") == ""
    works(tree)


def shared_clones(tmp_path: Path) -> Path:
    """Make a workspace that borrows from a repository that borrows from `source`."""
    source = repository(tmp_path / "source", FILES)
    git(source, "repack", "-adq")
    git(tmp_path, "clone", "-q", "--shared", str(source), "middle")
    git(tmp_path, "clone", "-q", "--shared", str(tmp_path / "middle"), "ws")
    return tmp_path / "ws"


def test_borrowed_objects_go_along_where_that_is_allowed(tmp_path: Path) -> None:
    tree, report = guest(shared_clones(tmp_path), tmp_path, alternates=True)

    assert any("source" in notice for notice in report.notices)
    assert not (tree / ".git/objects/info/alternates").exists()
    assert git(tree, "status", "--porcelain") == ""
    works(tree)


def told_command(notice: str) -> str:
    return notice.split("`")[1]


def test_a_repository_that_borrows_from_outside_is_left_out(tmp_path: Path) -> None:
    workspace = shared_clones(tmp_path)

    tree, report = guest(workspace, tmp_path)

    (notice,) = report.notices
    assert str(tmp_path / "middle/.git/objects") in notice
    assert "left out" in notice
    command = told_command(notice)
    assert command == "git repack -a -d && rm .git/objects/info/alternates"
    assert not (tree / ".git").exists()
    subprocess.run(command, shell=True, check=True, cwd=workspace, capture_output=True)
    (tmp_path / "middle").rename(tmp_path / "gone")
    tree, report = guest(workspace, tmp_path)
    assert report.notices == ()
    assert git(tree, "status", "--porcelain") == ""
    works(tree)


def test_a_trusted_main_repository_may_borrow_but_not_by_way_of_the_workspace(
    tmp_path: Path,
) -> None:
    other = private(tmp_path)
    main = shared_clones(tmp_path)
    git(main, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "tree"))
    workspace = tmp_path / "tree"

    tree, report = guest(workspace, tmp_path)

    assert len(report.notices) == 2
    assert all("as well" in notice for notice in report.notices)
    works(tree)

    write(workspace, {"lib/objects/info/alternates": f"{other}/.git/objects\n"})
    with (main / ".git/objects/info/alternates").open("a") as pointers:
        pointers.write(f"{workspace}/lib/objects\n")
    tree, report = guest(workspace, tmp_path)
    assert not (tree / ".git").exists()
    assert str(other) in report.notices[0]
    assert told_command(report.notices[0]).endswith("rm ../ws/.git/objects/info/alternates")


@pytest.mark.parametrize("allowed", [True, False])
def test_a_nested_repository_borrows_nothing_from_outside(allowed: bool, tmp_path: Path) -> None:
    other = private(tmp_path)
    workspace = repository(tmp_path / "ws", FILES)
    nested = repository(workspace / "libs/inner", {"i.txt": "i\n"})
    write(nested, {".git/objects/info/alternates": f"{other}/.git/objects\n"})
    shared = repository(workspace / "other", {"o.txt": "o\n"})
    git(workspace, "clone", "-q", "--shared", str(shared), "borrower")

    tree, report = guest(workspace, tmp_path, alternates=allowed)

    secret = git(other, "rev-parse", "HEAD").strip()
    assert not list(tree.rglob(secret[2:]))
    (notice,) = [notice for notice in report.notices if str(other) in notice]
    assert told_command(notice) == (
        "git -C ./libs/inner repack -a -d && rm libs/inner/.git/objects/info/alternates"
    )
    assert not (tree / "libs/inner/.git").exists()
    works(tree / "borrower")  # what lies in the workspace may be borrowed from


def private(tmp_path: Path) -> Path:
    return repository(tmp_path / "private", {"secret.txt": TOKEN})


@pytest.mark.parametrize("pointer", ["file", "commondir", "link", "worktree"])
def test_a_git_pointer_that_leads_elsewhere_is_not_followed(pointer: str, tmp_path: Path) -> None:
    other = private(tmp_path)
    workspace = write(tmp_path / "ws", {"a.txt": "a"})
    if pointer == "file":
        write(workspace, {".git": f"gitdir: {other}/.git\n"})
    elif pointer == "link":
        (workspace / ".git").symlink_to(other / ".git")
    elif pointer == "commondir":
        write(workspace, {".git/HEAD": "ref: refs/heads/main\n", ".git/commondir": f"{other}/.git"})
    else:  # an administration folder in the workspace that claims the other repository
        write(
            workspace,
            {
                ".git": "gitdir: fake/.git/worktrees/x\n",
                "fake/.git/worktrees/x/HEAD": "ref: refs/heads/main\n",
                "fake/.git/worktrees/x/commondir": f"{other}/.git\n",
                "fake/.git/worktrees/x/gitdir": f"{workspace}/.git\n",
            },
        )

    tree, report = guest(workspace, tmp_path)

    assert len(report.notices) >= 1
    assert "left out" in report.notices[0]
    assert not any(path.startswith(b".git/objects") for path in report.manifest)
    assert git(other, "rev-parse", "HEAD").strip() not in str(list(tree.rglob("*")))


@pytest.mark.parametrize(
    "files",
    [
        {".git": "nothing of use"},
        {".git": "gitdir: /nowhere\n"},
        {".git/HEAD": "no ref\n", ".git/objects/x": ""},
        {".git/HEAD": "ref: refs/heads/main\n"},
        {".git/x": ""},
        {".git/HEAD": "ref: refs/heads/main\n", ".git/objects/pack/x": "", ".git/commondir": "no"},
    ],
)
def test_a_broken_repository_is_left_out_with_a_notice(
    files: dict[str, str | bytes], tmp_path: Path
) -> None:
    tree, report = guest(write(tmp_path / "ws", {"a": "x", **files}), tmp_path)

    assert len(report.notices) == 1
    assert sorted(path.name for path in tree.iterdir()) == ["a"]


def test_links_inside_of_git_are_not_followed(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    (tmp_path / "outside").write_text(f"{'a' * 40}\n")
    (workspace / ".git/refs/heads/evil").symlink_to(tmp_path / "outside")
    (workspace / ".git/MERGE_MSG").symlink_to(tmp_path / "outside")
    (workspace / ".git/objects/ff").unlink(missing_ok=True)
    if not (workspace / ".git/objects/ff").exists():
        (workspace / ".git/objects/ff").symlink_to(tmp_path)

    tree, _ = guest(workspace, tmp_path)

    assert not (tree / ".git/refs/heads/evil").exists()
    assert not (tree / ".git/MERGE_MSG").exists()
    works(tree)


def test_a_later_snapshot_has_no_secret_of_the_meantime_and_nothing_of_the_earlier_repository(
    tmp_path: Path,
) -> None:
    workspace = repository(tmp_path / "ws", FILES | {".gitignore": ".env\n"})
    git(workspace, "branch", "gone-later")
    git(workspace, "tag", "left")
    before, _ = guest(workspace, tmp_path)
    assert "gone-later" in git(before, "branch", "--format=%(refname:short)")

    write(workspace, {".env": f"TOKEN={TOKEN}\n", "deploy/id_rsa": TOKEN, "a.txt": "changed\n"})
    git(workspace, "branch", "-D", "gone-later")
    git(workspace, "tag", "-d", "left")
    git(workspace, "config", "remote.origin.url", f"https://{TOKEN}@github.example/a/b")
    git(workspace, "commit", "-qam", "second")
    tree, report = guest(workspace, tmp_path)

    assert not holds(tree, TOKEN)
    assert {b".env", b"deploy/id_rsa"} <= set(report.withheld)
    assert git(tree, "branch", "--format=%(refname:short)").split() == ["main"]
    assert git(tree, "tag") == ""
    assert git(tree, "log", "--format=%s").split() == ["second", "first"]
    works(tree)
