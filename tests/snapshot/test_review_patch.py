from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from snapshot.decisions import Uniform
from snapshot.errors import StoreDamaged
from snapshot.patch import check_export, export_patch, quoted
from tests.snapshot.merge_help import (
    FOLDER,
    Nodes,
    Scene,
    everything,
    link,
    reviews,
    text,
    tree_of,
    write_nodes,
)

if TYPE_CHECKING:
    from pathlib import Path

ALL = Uniform("accepted")


def apply(folder: Path, patch: bytes) -> None:
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=folder, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, patch)


def test_an_export_applies_to_the_same_tree_as_a_merge(tmp_path: Path) -> None:
    base, agent, renames, gone = everything()
    for nodes in (base, agent):
        nodes.pop(b"binary")
    agent.pop(b"new/folder")
    patch = export_patch(reviews(base, agent, renames), ALL)
    check_export(patch)
    write_nodes(tmp_path / "patched", base)
    apply(tmp_path / "patched", patch)
    made = Scene(tmp_path / "ws", tmp_path / "m", base, agent, renames, gone)
    made.merge()
    assert tree_of(tmp_path / "patched") == tree_of(made.root)


NAMES = [
    b"a b", b'q"x', b"t\tab", b"n\nl", "é".encode(), b"back\\slash", b"-rf", b"\xff", b" lead",
    b"trail ", b"x b/y", b"app/[slug]/page.tsx", b"\x1b[31m",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_quoted_as_git_reads_them(tmp_path: Path, name: bytes) -> None:
    base: Nodes = {name: text("1\n"), name + b"-mode": text("1\n"), name + b"-old": text("1\n")}
    agent: Nodes = {
        name: text("2\n"),
        name + b"-mode": text("1\n", "100755"),
        name + b"-new": text("1\n"),
        name + b"-empty": text(""),
    }
    patch = export_patch(reviews(base, agent, {name + b"-new": name + b"-old"}), ALL)
    check_export(patch)
    write_nodes(tmp_path / "a", base)
    write_nodes(tmp_path / "b", agent)
    apply(tmp_path / "a", patch)
    assert tree_of(tmp_path / "a") == tree_of(tmp_path / "b")


def test_links_types_and_missing_newlines(tmp_path: Path) -> None:
    base: Nodes = {b"l": link("a"), b"f": text("x"), b"g": text("1\n2")}
    agent: Nodes = {b"l": link("b"), b"f": link("g"), b"g": text("1\n2\n"), b"n": link("g")}
    patch = export_patch(reviews(base, agent), ALL)
    check_export(patch)
    write_nodes(tmp_path / "a", base)
    write_nodes(tmp_path / "b", agent)
    apply(tmp_path / "a", patch)
    assert tree_of(tmp_path / "a") == tree_of(tmp_path / "b")


def test_binaries_and_folders_are_noted_and_do_no_harm(tmp_path: Path) -> None:
    base: Nodes = {b"b\x1b": text(b"\0"), b"f": text("1\n")}
    agent: Nodes = {b"b\x1b": text(b"\0\1"), b"f": text("2\n"), b"d": FOLDER}
    patch = export_patch(reviews(base, agent), ALL)
    assert patch.startswith("# not in this patch, for it is binary: b␛\n".encode())
    assert b"# not in this patch, for it is a folder: d\n" in patch
    assert check_export(patch) == (1, 1, 1)
    write_nodes(tmp_path, base)
    apply(tmp_path, patch)
    assert (tmp_path / "f").read_text() == "2\n"


def test_nothing_accepted_is_an_empty_patch() -> None:
    made = reviews({b"f": text("1\n")}, {b"f": text("2\n")})
    assert export_patch(made, Uniform("rejected")) == b""
    assert check_export(b"") == (0, 0, 0)


def test_an_emptied_file_is_not_a_removed_one(tmp_path: Path) -> None:
    patch = export_patch(reviews({b"f": text("1\n")}, {b"f": text("")}), ALL)
    assert b"deleted" not in patch
    assert b"/dev/null" not in patch
    (tmp_path / "f").write_text("1\n")
    apply(tmp_path, patch)
    assert (tmp_path / "f").read_bytes() == b""


def test_a_damaged_export_is_found() -> None:
    patch = export_patch(reviews({b"f": text("1\n")}, {b"f": text("2\n")}), ALL)
    with pytest.raises(StoreDamaged):
        check_export(patch.replace(b"@@ -1,1 +1,1 @@", b"@@ -1,5 +1,5 @@"))


def test_quoting() -> None:
    assert quoted(b"plain name") == b"plain name"
    assert quoted(b"a/x b/y") == b'"a/x\\040b/y"'
    assert quoted(b'a"\\\n\xc3\xa9') == b'"a\\"\\\\\\n\\303\\251"'
