"""The demo's script, run here on trees of all kinds (in the guest it is the same file)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agents import builtin, demo, demo_script, find_agent, shell
from app.errors import AppError
from tests.e2e.sessions import Tree, tree

if TYPE_CHECKING:
    from pathlib import Path


def run_in(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", demo_script(), "--fast"],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=30,
    )
    return done.stdout.decode()


def test_an_empty_workspace_gets_the_new_files(tmp_path: Path) -> None:
    printed = run_in(tmp_path)
    assert (tmp_path / "cloche-demo" / "name with spaces [1].txt").exists()
    assert (tmp_path / "cloche-demo" / "windows.txt").read_bytes().count(b"\r\n") == 2
    assert not (tmp_path / "cloche-demo" / "no-final-newline.txt").read_bytes().endswith(b"\n")
    assert os.access(tmp_path / "cloche-demo" / "run.sh", os.X_OK)
    assert b"\0" in (tmp_path / "cloche-demo" / "data.bin").read_bytes()
    assert "\x1b[32m" in printed
    assert "6/6" in printed


@settings(deadline=None, max_examples=25)  # each example starts two processes
@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=8).filter(lambda n: b"/" not in n and b"\0" not in n),
        st.binary(max_size=40),
        max_size=7,
    )
)
def test_it_works_the_same_way_twice_in_any_workspace(
    tmp_path_factory: pytest.TempPathFactory, files: dict[bytes, bytes]
) -> None:
    results: list[Tree] = []
    for _ in range(2):
        folder = tmp_path_factory.mktemp("d")
        for name, data in files.items():
            if name in (b".", b"..", b"cloche-demo"):
                continue
            with open(os.path.join(os.fsencode(folder), name), "wb") as file:
                file.write(data)
        run_in(folder)
        results.append(tree(folder))
    assert results[0] == results[1]


def test_links_binaries_and_the_repository_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\n")
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    (tmp_path / "link.txt").symlink_to("a.bin")
    before = tree(tmp_path)
    run_in(tmp_path)
    after = tree(tmp_path)
    assert {path: after[path] for path in before} == before


def test_agents_are_found_by_name_or_the_nearest_is_named() -> None:
    assert find_agent(builtin(), "demo") == demo()
    assert shell().command[:2] == ("sh", "-c")
    assert shell().command[2].startswith("command -v bash")  # an image need not have it
    with pytest.raises(AppError) as caught:
        find_agent(builtin(), "dmo")
    assert caught.value.hint == "Did you mean: cloche run demo"
