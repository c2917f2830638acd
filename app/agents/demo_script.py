"""The demo agent: changes a bit of everything in a workspace, visibly and the same way each time.

Runs in the guest with the guest's own python3 and nothing but its standard library. What it
touches is chosen by the sorted paths of the workspace. `CLOCHE_DEMO_FAST=1` or `--fast` leaves the
pauses out.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FAST = bool(os.environ.get("CLOCHE_DEMO_FAST")) or "--fast" in sys.argv[1:]
PAUSE = 0.0 if FAST else 1.0
MAX_TEXT = 64 << 10
BINARY = bytes(range(256)) * 8
NOTE = b"reviewed by the demo agent"
COMMENT = {b".md": b"", b".txt": b"", b".c": b"// ", b".js": b"// "}
"""What a line of each suffix begins with; others are taken for languages with `#` comments."""


def say(colour: int, verb: str, text: str) -> None:
    """Print one step: a coloured verb and what it is about."""
    shown = text.encode("ascii", "backslashreplace").decode()
    sys.stdout.write(f"  \033[{colour}m{verb:<8}\033[0m {shown}\n")
    sys.stdout.flush()
    time.sleep(PAUSE)


def progress(done: int, total: int) -> None:
    """Print a bar of twenty cells."""
    cells = 20 * done // total
    bar = "\033[32m" + "━" * cells + "\033[90m" + "━" * (20 - cells) + "\033[0m"
    sys.stdout.write(f"  {bar} {done}/{total}\n")
    sys.stdout.flush()


def text_files() -> list[bytes]:
    """Return the sorted paths of plain text files, small enough to edit.

    Hidden folders stay as they are: `.git`, and environments and caches that nobody reviews.
    """
    found: list[bytes] = []
    for folder, folders, names in os.walk(b"."):
        folders[:] = sorted(name for name in folders if not name.startswith(b"."))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(folder, name))
            if not name.startswith(b".") and is_text(path):
                found.append(path)
    return sorted(found)


def is_text(path: bytes) -> bool:
    """Tell whether `path` is a regular, not empty file of UTF-8 text."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    if not 0 < os.path.getsize(path) <= MAX_TEXT:
        return False
    with open(path, "rb") as file:
        data = file.read()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def shown(path: bytes) -> str:
    """Return a path for the eye."""
    return os.fsdecode(path)


def edit(path: bytes) -> None:
    """Change the first line's neighbourhood, the middle and the end: up to three hunks."""
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    ending = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
    lead = COMMENT.get(os.path.splitext(path)[1], b"# ")
    if not lines[-1].endswith(b"\n"):
        lines[-1] += ending
    spots = [len(lines)]
    if len(lines) >= 12:
        spots.append(len(lines) // 2)
    if len(lines) >= 24:
        spots.append(1)
    for number, spot in enumerate(spots):
        lines.insert(spot, lead + NOTE + b" (%d)" % (len(spots) - number) + ending)
    with open(path, "wb") as file:
        file.write(b"".join(lines))
    count = "1 place" if len(spots) == 1 else f"{len(spots)} places"
    say(33, "edit", f"{shown(path)} ({count})")


def rename(path: bytes) -> None:
    """Give a file a new name in its own folder."""
    stem, suffix = os.path.splitext(path)
    target = stem + b"-renamed" + suffix
    os.rename(path, target)
    say(36, "rename", f"{shown(path)} -> {shown(target)}")


def delete(path: bytes) -> None:
    """Remove a file."""
    os.unlink(path)
    say(31, "delete", shown(path))


def make_executable(path: bytes) -> None:
    """Set the executable bits."""
    os.chmod(path, 0o755)
    say(35, "chmod +x", shown(path))


def add(path: bytes, data: bytes, mode: int) -> None:
    """Write a new file with its folders."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    say(32, "add", f"{shown(path)} ({len(data)} bytes)")


ADDED = (
    (b"cloche-demo/notes.md", b"# Notes\n\nWritten under glass.\n", 0o644),
    (b"cloche-demo/name with spaces [1].txt", b"spaces and brackets\n", 0o644),
    (b"cloche-demo/windows.txt", b"first\r\nsecond\r\n", 0o644),
    (b"cloche-demo/no-final-newline.txt", b"the last line has no end", 0o644),
    (b"cloche-demo/data.bin", BINARY, 0o644),
    (b"cloche-demo/run.sh", b"#!/bin/sh\necho demo\n", 0o755),
)


def plan(paths: list[bytes]) -> list[Callable[[], None]]:
    """Return the steps: which of the sorted paths each action takes, then the new files."""
    actions = (edit, edit, rename, delete, make_executable)
    steps: list[Callable[[], None]] = [
        partial(action, path) for action, path in zip(actions, paths, strict=False)
    ]
    return steps + [partial(add, *entry) for entry in ADDED]


def main() -> int:
    """Do every step and say that it is done."""
    os.umask(0o022)
    sys.stdout.write("\033[1mdemo\033[0m at work in this workspace\n\n")
    steps = plan(text_files())
    for number, step in enumerate(steps, 1):
        step()
        if number % 4 == 0 or number == len(steps):
            progress(number, len(steps))
    sys.stdout.write("\n\033[32mdone\033[0m: look at the changes, take home what you like\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
