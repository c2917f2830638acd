"""Names and links of an agent: what is written as it is, and what never is."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.snapshot.merge_help import (
    Entry,
    Nodes,
    link,
    reasons,
    scene,
    text,
    tree_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_rename_that_changes_only_case(tmp_path: Path) -> None:
    made = scene(
        tmp_path, {b"Read": text("1\n")}, {b"read": text("1\n")}, renames={b"read": b"Read"}
    )
    outcome = made.merge()
    assert list(tree_of(made.root)) == ["read"]
    made.undo(outcome.merge)
    assert list(tree_of(made.root)) == ["Read"]


def test_a_name_that_differs_only_in_case_is_told(tmp_path: Path) -> None:
    base: Nodes = {b"README": text("1\n")}
    made = scene(tmp_path, base, {**base, b"readme": text("2\n")})
    outcome = made.merge()
    assert "only in case" in reasons(outcome.notices)[b"readme"]
    assert outcome.written == (b"readme",)


NAMES = [
    b"a b", b'q"x', b"t\tab", b"n\nl", "é".encode(), "e\u0301".encode(), b"back\\slash", b"-rf",
    b"\xff", b" lead", b"trail ", b"app/[slug]/page.tsx", b"[/foo].py", b"\x1b]52;c;x", b"*?",
]  # fmt: skip


def test_every_name_is_written_as_it_is(tmp_path: Path) -> None:
    made = scene(tmp_path, {}, {name: text(name) for name in NAMES})
    outcome = made.merge()
    assert sorted(outcome.written) == sorted(NAMES)
    assert made.found() == made.expected()


@pytest.mark.parametrize(
    "name",
    [
        b"../x", b"/etc/x", b"a/../../x", b"a//b", b"./x", b"a/", b"", b"a\0b", b"x" * 300,
        b"d/" * 2100 + b"x",
        b".git/hooks/pre-commit", b".GIT/config", b".git /config", b".git./config", b"git~1/config",
        b"sub/.git/config", b".git", b".g\xe2\x80\x8cit/config", b".git::$INDEX_ALLOCATION/config",
        b".git\\config", b".GiT .. /x",
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: bytes) -> None:
    made = scene(tmp_path, {}, {})
    made.agent = {name: text("x\n")}
    outcome = made.merge()
    assert [refusal.path for refusal in outcome.skipped] == [name]
    assert tree_of(tmp_path) == {"ws": Entry("dir", 0o755, b"")}


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../x", "a/../../x", ".git/hooks", "sub/.GIT", "d/../../ws"]
)
def test_links_that_lead_elsewhere_are_refused(tmp_path: Path, target: str) -> None:
    made = scene(tmp_path, {}, {b"l": link(target)})
    assert [refusal.path for refusal in made.merge().skipped] == [b"l"]
    assert not os.path.lexists(made.root / "l")
    made.allow_links = (b"l",)
    assert made.merge().written == (b"l",)
    assert os.readlink(made.root / "l") == target


def test_git_files_never_become_links(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"x": text("x")}, {b"x": text("x"), b".gitmodules": link("x")})
    assert [refusal.path for refusal in made.merge().skipped] == [b".gitmodules"]


def test_a_link_of_the_agent_is_not_walked_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    made = scene(
        tmp_path, {}, {b"esc": link(str(outside)), b"esc/new/f": text("x\n")}, allow_links=(b"esc",)
    )
    made.merge()
    assert list(outside.iterdir()) == []


def test_a_link_of_the_user_is_not_walked_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("1\n")
    made = scene(tmp_path, {b"d/f": text("1\n")}, {b"d/f": text("2\n"), b"d/g": text("g\n")})
    (made.root / "d/f").unlink()
    (made.root / "d").rmdir()
    (made.root / "d").symlink_to(outside)
    outcome = made.merge()
    assert {refusal.path for refusal in outcome.conflicts} == {b"d/f", b"d/g"}
    assert tree_of(outside) == {"f": Entry("file", 0o644, b"1\n")}


def test_special_files_are_never_opened(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n")}, {b"f": text("2\n")})
    (made.root / "f").unlink()
    os.mkfifo(made.root / "f")
    assert reasons(made.merge().conflicts) == {b"f": "there is a special file in its place"}
    assert stat.S_ISFIFO((made.root / "f").lstat().st_mode)
