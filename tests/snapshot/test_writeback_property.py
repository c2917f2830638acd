"""Any small tree becomes any other, and back; whatever the user did in between survives."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot import renameat
from snapshot.decisions import Mark, Overlay, Uniform
from snapshot.review import review_file
from tests.snapshot.merge_help import Nodes, Scene, tree_of
from tests.snapshot.tree_strategies import folders_of, trees, without_full_folders

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def _no_sync() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renameat, "sync_file_system", nothing)
        patch.setattr(os, "fsync", nothing)
        yield


def nothing(_: int) -> None:
    """Stand in for syncing."""


class Injected(Exception):
    """The failure that a test puts in."""


class Lab:
    """A scene in a folder of its own for one example."""

    def __init__(self, base: Nodes, agent: Nodes) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(dir=memory))
        gone = tuple(folders_of(base) - folders_of(agent))
        # Folders that hold something are no entries of their own, as in a real change set.
        self.scene = Scene(
            self.folder / "ws",
            self.folder / "merges",
            without_full_folders(base),
            without_full_folders(agent),
            gone_dirs=gone,
        )

    def __enter__(self) -> Scene:
        return self.scene

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)


@settings(max_examples=200)
@given(trees(), trees())
def test_any_tree_becomes_any_other_and_back(base: Nodes, agent: Nodes) -> None:
    with Lab(base, agent) as scene:
        before = tree_of(scene.root)
        outcome = scene.merge()
        assert outcome.conflicts == ()
        assert scene.found() == scene.expected()
        folders = {n for n, entry in tree_of(scene.root).items() if entry.kind == "dir"}
        wanted = {os.fsdecode(path) for path in folders_of(agent)}
        assert folders >= wanted
        # A folder that the agent emptied may stay; one that it removed may not.
        assert not folders - wanted - {os.fsdecode(path) for path in folders_of(base)}
        if outcome.merge:
            assert scene.undo(outcome.merge).conflicts == ()
        assert tree_of(scene.root) == before


@settings(max_examples=200)
@given(trees(), trees(), st.data())
def test_any_choice_is_written_or_refused_and_undone(
    base: Nodes, agent: Nodes, data: st.DataObject
) -> None:
    with Lab(base, agent) as scene:
        reviews = [
            review_file(
                file,
                lambda f: scene.base[f.old_path or f.path][1],
                lambda f: scene.agent[f.path][1],
            )
            for file in scene.files
        ]
        marks = [
            Mark(review.file.path, unit.id, data.draw(st.text("ar", min_size=n, max_size=n)))
            for review in reviews
            for unit in review.units
            for n in [unit.size]
        ]
        before = tree_of(scene.root)
        decisions = Overlay(Uniform("open"), marks)
        outcome = scene.merge(decisions)
        named = {refusal.path for refusal in (*outcome.conflicts, *outcome.skipped)}
        for review in reviews:
            result = review.result(decisions)
            path = os.fsdecode(review.file.path)
            if result is None or review.file.path in named:
                assert tree_of(scene.root).get(path) == before.get(path) or result is None
            elif result.path is None:
                assert path not in scene.found()
            elif result.mode != "040000":
                assert scene.found()[path] == (result.mode, result.content)
        if outcome.merge:
            assert scene.undo(outcome.merge).conflicts == ()
        assert tree_of(scene.root) == before


@settings(max_examples=150)
@given(trees(), trees(), trees())
def test_whatever_the_user_did_survives(base: Nodes, agent: Nodes, mine: Nodes) -> None:
    with Lab(base, agent) as scene:
        shutil.rmtree(scene.root)
        user = Scene(scene.root, scene.merges, without_full_folders(mine), {})
        before = tree_of(user.root)
        outcome = scene.merge()
        after = scene.found()
        touched = {os.fsdecode(path) for path in outcome.written}
        for name, (mode, content) in user.found().items():
            if name not in touched:
                assert after[name] == (mode, content)
        if outcome.merge:
            assert scene.undo(outcome.merge).conflicts == ()
        assert tree_of(scene.root) == before


@settings(max_examples=100)
@given(trees(), trees(), st.integers(0, 80))
def test_a_failure_anywhere_changes_nothing(base: Nodes, agent: Nodes, step: int) -> None:
    with Lab(base, agent) as scene:
        before = tree_of(scene.root)
        count = iter(range(1 << 30))
        finishing: list[str] = []

        def tick(name: str) -> None:
            finishing.extend([name] if name == "finish" else [])
            if next(count) == step and not finishing:
                raise Injected

        with contextlib.suppress(Injected):
            scene.merge(tick=tick)
            return
        assert tree_of(scene.root) == before
