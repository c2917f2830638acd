"""The path that everything stands on: run, look, take home a part, take it back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.agents import demo_script
from tests.e2e.sessions import World, tree

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm

ADDED = {
    "cloche-demo/data.bin": "100644",
    "cloche-demo/name with spaces [1].txt": "100644",
    "cloche-demo/no-final-newline.txt": "100644",
    "cloche-demo/notes.md": "100644",
    "cloche-demo/run.sh": "100755",
    "cloche-demo/windows.txt": "100644",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    numbered = "".join(f"line {number}\n" for number in range(1, 41))
    (folder / "a.py").write_text(numbered)
    (folder / "b.txt").write_bytes(numbered.replace("\n", "\r\n").encode())
    (folder / "src" / "c.txt").write_text("to be renamed\n")
    (folder / "src" / "d.txt").write_text("to be deleted\n")
    (folder / "src" / "e.sh").write_text("#!/bin/sh\necho hi\n")
    (folder / "src" / "untouched.txt").write_text("stays\n")
    (folder / "link").symlink_to("a.py")
    run = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*run, *words], check=True)
    return folder


def what_the_demo_makes_of(workspace: Path, copy: Path) -> Path:
    """Run the same script here on a copy: the oracle for bytes and modes."""
    shutil.copytree(workspace, copy, symlinks=True)
    subprocess.run(
        [sys.executable, "-I", "-c", demo_script(), "--fast"],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    return copy


def by_path(changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in changes["files"]}


def test_run_look_merge_a_part_and_take_it_back(
    world: World, workspace: Path, tmp_path: Path
) -> None:
    world.configure("", machines="")  # a machine of the usual size
    before = tree(workspace)
    wanted = tree(what_the_demo_makes_of(workspace, tmp_path / "oracle"))

    report = world.json("run", "demo", "--headless", "--workspace", str(workspace))
    session = report["session"]
    assert (report["ok"], report["exit_code"], report["agent"]) == (True, 0, "demo")
    assert report["accelerator"] == "tcg"
    assert report["egress"] == {"denied": [], "denied_targets": 0}
    assert 0 < report["boot_ms"] < report["duration_ms"]
    assert tree(workspace) == before

    changes = world.json("changes", session)
    files = by_path(changes)
    assert changes["session"] == session
    assert {path: file["mode"] for path, file in files.items() if file["kind"] == "added"} == ADDED
    rest = {path: file["kind"] for path, file in files.items() if file["kind"] != "added"}
    assert rest == {
        "a.py": "modified",
        "b.txt": "modified",
        "src/c-renamed.txt": "renamed",
        "src/d.txt": "deleted",
        "src/e.sh": "mode",
    }
    assert files["src/c-renamed.txt"]["old_path"] == "src/c.txt"
    assert (files["src/e.sh"]["old_mode"], files["src/e.sh"]["mode"]) == ("100644", "100755")
    assert files["cloche-demo/data.bin"]["binary"]
    assert len(files["a.py"]["hunks"]) == 3
    assert (files["a.py"]["added"], files["a.py"]["removed"]) == (3, 0)
    assert report["changes"]["files"] == len(files)

    patched = tmp_path / "patched"
    shutil.copytree(workspace, patched, symlinks=True)
    patch = world.run("diff", session, "--patch")
    assert b"not in the patch: cloche-demo/data.bin" in patch.stderr
    subprocess.run(["git", "apply"], cwd=patched, input=patch.stdout, check=True)
    assert tree(patched) == {k: v for k, v in wanted.items() if k != "cloche-demo/data.bin"}

    refused = world.json("merge", session, status=3)
    assert refused["written"] == []
    assert tree(workspace) == before

    wide = ("--accept", "src/*", "--accept", "cloche-demo/*.sh")
    held = world.json("merge", session, *wide, "--dry-run", status=3)["held"]
    names = [one["path"] for one in held]
    assert set(names) == {"src/e.sh", "cloche-demo/run.sh"}
    merged = world.json("merge", session, *wide, *(f"--accept={name}" for name in names))
    taken = {"src/c-renamed.txt", "src/d.txt", "src/e.sh", "cloche-demo/run.sh"}
    assert set(merged["written"]) == taken
    assert merged["conflicts"] == merged["skipped"] == []
    touched = taken | {"src/c.txt", "cloche-demo"}
    expected = {path: value for path, value in before.items() if path not in touched}
    expected |= {path: value for path, value in wanted.items() if path in touched}
    assert tree(workspace) == expected

    undone = world.json("undo", merged["merge"])
    assert (set(undone["restored"]), undone["conflicts"]) == (taken, [])
    assert tree(workspace) == before

    hunk = files["a.py"]["hunks"][1]["id"]
    again = world.json("merge", session, "--hunk", hunk)  # what was accepted before still is
    assert set(again["written"]) == taken | {"a.py"}
    lines = (workspace / "a.py").read_text().splitlines()
    assert len(lines) == 41
    assert lines[20] == "# reviewed by the demo agent (2)"

    assert world.json("rm", session)["session"] == session
    assert world.json("ps")["sessions"] == []
    assert not world.paths.sockets(session).exists()
