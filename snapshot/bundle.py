"""The head of a git bundle, which says what is in it and what it builds on.

Only what an agent's commits need is taken: version 2, or version 3 for SHA-1 without filters.
Branches and a detached HEAD are kept; tags and everything else are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .errors import SnapshotError

MAX_HEADER: Final = 256 << 10
"""Bytes before the pack."""

MAX_REFS: Final = 200
MAX_BRANCH: Final = 200
"""Longest name of a branch in bytes."""

_SIGNATURES: Final = (b"# v2 git bundle", b"# v3 git bundle")
_OBJECT: Final = re.compile(rb"[0-9a-f]{40}")
_BRANCH: Final = re.compile(
    rb"[A-Za-z0-9_@+=%,][A-Za-z0-9_@+=%,.-]*(/[A-Za-z0-9_@+=%,][A-Za-z0-9_@+=%,.-]*)*"
)


class BundleRefused(SnapshotError):
    """What the agent handed over as its commits is not taken."""

    code = "bundle-refused"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle's head says."""

    needs: tuple[bytes, ...]
    """Commits (hex) that it builds on."""
    branches: tuple[tuple[bytes, bytes], ...]
    """Names without refs/heads/ (`HEAD` for a detached one), and commits."""
    left_out: tuple[bytes, ...]
    """Refs that are not taken: tags, and names that are not plain."""
    pack: int
    """Where the pack begins."""


def refused(why: str) -> BundleRefused:
    """Return the error that says why a bundle is not taken."""
    return BundleRefused(
        f"The agent's commits are refused: {why}.",
        "Nothing of them was taken. Review the files instead: cloche changes ID",
    )


def read_bundle(data: bytes) -> Bundle:
    """Read the head of a bundle.

    Raises:
        BundleRefused: it is none, or one of a form that is not taken.

    """
    end = data.find(b"\n\n", 0, MAX_HEADER)
    if end < 0:
        raise refused("they are no bundle, or its list of branches is too long")
    signature, *lines = data[:end].split(b"\n")
    if signature not in _SIGNATURES:
        raise refused("they are no bundle of a known version")
    if data[end + 2 : end + 6] != b"PACK":
        raise refused("the bundle is cut short")
    needs: list[bytes] = []
    refs: list[tuple[bytes, bytes]] = []
    for line in lines:
        if line.startswith(b"@"):
            _check_capability(line, signature)
        elif line.startswith(b"-"):
            needs.append(_object(line[1:].split(b" ", 1)[0]))
        else:
            name, _, ref = line.partition(b" ")
            refs.append((ref, _object(name)))
    if len(refs) > MAX_REFS or len(needs) > 10 * MAX_REFS:
        raise refused(f"they have more than {MAX_REFS} branches")
    return _sorted_out(needs, refs, end + 2)


def _check_capability(line: bytes, signature: bytes) -> None:
    if signature != _SIGNATURES[1] or line != b"@object-format=sha1":
        raise refused("the bundle asks for something that is not known here")


def _object(name: bytes) -> bytes:
    if not _OBJECT.fullmatch(name):
        raise refused("the bundle's head names something that is no commit")
    return name


def _sorted_out(needs: list[bytes], refs: list[tuple[bytes, bytes]], pack: int) -> Bundle:
    branches: dict[bytes, bytes] = {}
    left_out: list[bytes] = []
    for ref, name in refs:
        branch = ref.removeprefix(b"refs/heads/")
        if ref != b"HEAD" and (branch == ref or not is_plain(branch)):
            left_out.append(ref)
        else:
            branches[branch] = name
    if len(branches) > 1 and branches.get(b"HEAD") in [
        name for branch, name in branches.items() if branch != b"HEAD"
    ]:
        del branches[b"HEAD"]
    return Bundle(tuple(needs), tuple(branches.items()), tuple(left_out), pack)


def is_plain(branch: bytes) -> bool:
    """Return whether a branch's name can become part of a ref of ours."""
    if len(branch) > MAX_BRANCH or not _BRANCH.fullmatch(branch) or b".." in branch:
        return False
    parts = branch.split(b"/")
    return not any(
        part.endswith((b".", b".lock")) or part == b"HEAD" or b"@{" in part or part == b"@"
        for part in parts
    )
