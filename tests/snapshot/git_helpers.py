"""What the tests of rebuilt repositories share."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.snapshot.capture_helpers import capture, git, unpacked, write

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.capture import SnapshotReport

TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"
FILES: dict[str, str | bytes] = {"a.txt": "a\n", "sub/b.txt": "b\n", "run.sh": "#!/bin/sh\n"}


def guest(workspace: Path, tmp_path: Path, **options: object) -> tuple[Path, SnapshotReport]:
    """Capture and unpack as the guest sees it: the agent owns all files."""
    place = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
    report = capture(workspace, place, **options)
    tree = unpacked(place)
    subprocess.run(["chown", "-R", f"{os.getuid()}:{os.getgid()}", str(tree)], check=True)
    return tree, report


def holds(tree: Path, text: str) -> bool:
    """Whether any file below `tree` holds the text."""
    return any(text.encode() in path.read_bytes() for path in tree.rglob("*") if path.is_file())


def works(tree: Path) -> None:
    """A commit can be made, and the repository is sound."""
    write(tree, {"from_agent.txt": "new"})
    git(tree, "add", "from_agent.txt")
    git(tree, "commit", "-q", "-m", "by the agent")
    assert "by the agent" in git(tree, "log", "-1", "--format=%s")
    git(tree, "fsck", "--strict", "--no-dangling")
