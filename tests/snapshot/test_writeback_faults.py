"""Any step of a merge fails, is killed, or meets another writer: nothing is ever half done.

CI takes the first and the last step of each phase, the first of each phase for each sort of change,
and those of the path that another writer meets; `CLOCHE_FULL=1` takes every one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat
from snapshot.errors import MergeAborted
from snapshot.writeback import recover, undo_merge
from snapshot.writeback_images import ARCHIVE
from tests.sampling import sampled
from tests.snapshot.merge_faults import (
    die,
    fail_at,
    full,
    refuse,
    run_and_die,
    some_steps,
    spread,
)
from tests.snapshot.merge_help import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("no_sync")


@pytest.fixture(params=["kernel", "links"])
def renames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with the kernel's renames and on a file system that has none of them."""
    if request.param == "links":
        monkeypatch.setattr(renameat, "_renameat2", refuse)
    return str(request.param)


class Injected(Exception):
    """The failure that a test puts in."""


def raise_injected() -> None:
    raise Injected


def number_of(wanted: str, steps: list[tuple[int, str]]) -> int:
    """Return the number of a step by its name."""
    return next(number for number, name in steps if name == wanted)


def test_a_failure_at_any_step_changes_nothing(memory_path: Path, renames: str) -> None:
    steps = some_steps(memory_path / "count")
    assert steps[-1][0] > 60
    committed = number_of("finish", steps)
    for number, name in steps:
        made = full(memory_path / f"{number}")
        before = tree_of(made.root)
        with pytest.raises(Injected):
            made.merge(tick=fail_at(number, raise_injected))
        if number < committed:
            assert tree_of(made.root) == before, name
            assert recover(made.merges) == []
            assert not list(made.merges.rglob(ARCHIVE))
        else:
            assert [found.rolled_back for found in recover(made.merges)] == [False]
            assert not list(made.root.rglob(".cloche-*"))
        shutil.rmtree(made.root.parent)


def test_a_kill_at_any_step_is_recovered(memory_path: Path, renames: str) -> None:
    steps = some_steps(memory_path / "count")
    committed = number_of("finish", steps)
    for number, name in steps:
        made = full(memory_path / f"{number}")
        before = tree_of(made.root)
        status = run_and_die(lambda: made.merge(tick=fail_at(number, die)))  # noqa: B023 - called before the loop goes on
        assert os.WIFSIGNALED(status)
        found = recover(made.merges)
        assert [item.leftovers for item in found] == ([()] if number else []), name
        if number < committed:
            assert tree_of(made.root) == before, name
        else:
            assert "TWO" in (made.root / "edit").read_text()
            assert undo_merge(made.merges, found[0].merge).conflicts == ()
            assert tree_of(made.root) == before, name
        assert recover(made.merges) == []
        shutil.rmtree(made.root.parent)


def test_a_kill_at_any_step_of_an_undo_is_recovered(memory_path: Path) -> None:
    made = full(memory_path / "count")
    names: list[str] = []
    made.undo(made.merge().merge, names.append)
    committed = names.index("finish")
    chosen = spread([name.split()[0] for name in names], sampled(1, 3))
    for number in sorted(chosen):
        name = names[number]
        made = full(memory_path / f"{number}")
        original = tree_of(made.root)
        merge = made.merge().merge
        merged = tree_of(made.root)
        run_and_die(lambda: made.undo(merge, fail_at(number, die)))  # noqa: B023 - called before the loop goes on
        recover(made.merges)
        assert tree_of(made.root) == (merged if number < committed else original), name
        made.undo(merge)
        assert tree_of(made.root) == original, name
        shutil.rmtree(made.root.parent)


def replace(path: Path, content: str) -> None:
    """Save as editors do: another file takes the name."""
    other = path.with_name("editor-temp")
    other.write_text(content)
    other.replace(path)


def overwrite(path: Path, content: str) -> None:
    """Save as shells do: the file itself gets other bytes."""
    path.write_text(content)


@pytest.mark.parametrize("save", [replace, overwrite])
def test_an_edit_at_any_step_survives(
    memory_path: Path, renames: str, save: Callable[[Path, str], None]
) -> None:
    for number, name in some_steps(memory_path / "count", b"edit"):
        made = full(memory_path / f"{number}")
        path = made.root / "edit"

        def edit(path: Path = path) -> None:
            save(path, path.read_text().replace("4\n", "mine\n"))

        outcome = made.merge(tick=fail_at(number, edit))
        assert "mine\n" in path.read_text(), name
        assert "TWO\n" in path.read_text(), name
        undone = made.undo(outcome.merge)
        assert undone.conflicts == (), name
        assert path.read_text() == "1\n2\n3\nmine\n5\n", name
        shutil.rmtree(made.root.parent)


@pytest.mark.parametrize("victim", ["gone/one", "new/exec", "moved", "link", "dir-to-file/x"])
def test_something_put_in_place_at_any_step_survives(memory_path: Path, victim: str) -> None:
    for number, name in some_steps(memory_path / "count", victim.encode()):
        made = full(memory_path / f"{number}")
        path = made.root / victim

        def put(path: Path = path) -> None:
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_text("mine\n")

        with contextlib.suppress(MergeAborted):
            made.merge(tick=fail_at(number, put))
        kept = [*made.root.rglob("*"), *made.merges.rglob("late/*")]
        contents = [item.read_bytes() for item in kept if item.is_file()]
        assert b"mine\n" in contents or not path.parent.is_dir(), name
        assert not list(made.root.rglob(".cloche-*")), name
        shutil.rmtree(made.root.parent)


def test_the_outcome_says_what_only_hard_links_guarantee(memory_path: Path, renames: str) -> None:
    made = full(memory_path / "x")
    done = made.merge()
    undone = made.undo(done.merge)
    for notices in (done.notices, undone.notices):
        weaker = [item for item in notices if "weaker guarantee" in item.reason]
        assert [item.path for item in weaker] == ([b"."] if renames == "links" else [])
    assert undone.conflicts == ()
