"""Full disks, missing rights, links that swap, locks: a merge is whole or it is not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat, writeback_commit, writeback_run
from snapshot.errors import MergeAborted
from snapshot.writeback import run_merge, workspace_lock
from snapshot.writeback_ops import Side, Wish
from snapshot.writeback_plan import make_plan
from snapshot.writeback_tree import Tree
from tests.snapshot.merge_faults import full, nothing, run_and_die
from tests.snapshot.merge_help import Entry, Nodes, Scene, text, tree_of

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("no_sync")


def test_a_write_through_an_open_file_is_kept_and_told(memory_path: Path) -> None:
    made = full(memory_path / "x")
    with (made.root / "edit").open("r+") as editor:

        def write(name: str) -> None:
            if name == "finish":
                editor.write("late")
                editor.flush()

        outcome = made.merge(tick=write)
    assert [refusal.path for refusal in outcome.conflicts] == [b"edit"]
    late = list(made.merges.rglob("late/*"))
    assert [path.read_bytes()[:4] for path in late] == [b"late"]
    assert "TWO" in (made.root / "edit").read_text()
    assert not list(made.root.rglob(".cloche-*"))


def test_a_file_that_never_rests_is_given_up(memory_path: Path) -> None:
    made = Scene(
        memory_path / "ws",
        memory_path / "merges",
        {b"f": text("1\n2\n3\n")},
        {b"f": text("1\n2\nTHREE\n")},
    )
    turns = iter(range(100))

    def edit(name: str) -> None:
        if name == "rename 0":
            (made.root / "f").write_text(f"{next(turns)}\n2\n3\n")

    with pytest.raises(MergeAborted) as caught:
        made.merge(tick=edit)
    assert "kept changing" in caught.value.message
    assert (made.root / "f").read_text() == "2\n2\n3\n"


def test_a_parent_that_becomes_a_link_leads_nowhere(memory_path: Path) -> None:
    outside = memory_path / "outside"
    outside.mkdir()
    base: Nodes = {b"s/keep": text("k\n")}
    made = Scene(memory_path / "ws", memory_path / "merges", base, dict(base))
    stop = threading.Event()
    (made.root / "trap").symlink_to(outside)
    attacker = threading.Thread(target=swap_for_ever, args=(made.root, stop))
    attacker.start()
    written = 0
    try:
        for number in range(300):
            made.agent = {**base, b"s/f%d" % number: text("x\n")}
            with contextlib.suppress(MergeAborted):
                written += len(made.merge().written)
    finally:
        stop.set()
        attacker.join()
    assert list(outside.iterdir()) == []
    assert written > 0


def swap_for_ever(root: Path, stop: threading.Event) -> None:
    """Let folder and link change places, in one step each time, as fast as it goes."""
    fd = os.open(root, os.O_RDONLY)
    while not stop.is_set():
        renameat.exchange(fd, b"s", fd, b"trap")
    os.close(fd)


@pytest.mark.parametrize("checked", [True, False])
def test_a_full_disk_changes_nothing(
    memory_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    made = Scene(
        small_disk / "ws",
        memory_path / "merges",
        {b"a": text("1\n"), b"b": text("b\n")},
        {b"a": text("2\n"), b"c": text(b"x" * (2 << 20))},
    )
    if not checked:
        monkeypatch.setattr(writeback_commit.Commit, "_check_space", nothing)
    before = tree_of(made.root)
    with pytest.raises(MergeAborted) as caught:
        made.merge()
    assert "No space left" in caught.value.message
    assert tree_of(made.root) == before


def test_a_full_disk_of_our_own_changes_nothing(memory_path: Path, small_disk: Path) -> None:
    made = Scene(
        memory_path / "ws",
        small_disk / "merges",
        {b"a": text(b"x" * (2 << 20))},
        {b"a": text("2\n")},
    )
    before = tree_of(made.root)
    with pytest.raises(MergeAborted):
        made.merge()
    assert tree_of(made.root) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give up root")
def test_a_folder_that_may_not_be_written_changes_nothing(memory_path: Path) -> None:
    made = Scene(
        memory_path / "ws",
        memory_path / "merges",
        {b"a": text("1\n"), b"d/b": text("b\n")},
        {b"a": text("2\n"), b"d/b": text("B\n")},
    )
    made.merges.mkdir(mode=0o777)
    for path in (memory_path, *memory_path.parents):
        if path.stat().st_mode & 0o5 == 0:
            path.chmod(0o755)
    for path in (made.merges, made.root, made.root / "a", made.root / "d/b"):
        os.chown(path, 65534, 65534)
    (made.root / "d").chmod(0o555)
    before = tree_of(made.root)

    def as_nobody() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        with contextlib.suppress(MergeAborted):
            made.merge()
            os._exit(1)
        os._exit(7)

    status = run_and_die(as_nobody)
    assert os.WEXITSTATUS(status) == 7
    assert tree_of(made.root) == before


def test_one_merge_at_a_time(memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = full(memory_path / "x")
    monkeypatch.setattr(writeback_run, "LOCK_TIMEOUT_S", 0.0)
    other = os.open(made.root, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with (
            Tree(made.root) as tree,
            pytest.raises(MergeAborted) as caught,
            workspace_lock(tree, 0.1),
        ):
            raise AssertionError
    finally:
        os.close(other)
    assert "Another merge" in caught.value.message
    assert made.merge().written


def test_a_waiting_merge_plans_again(memory_path: Path) -> None:
    made = Scene(
        memory_path / "ws", memory_path / "merges", {b"f": text("1\n")}, {b"f": text("2\n")}
    )
    other = os.open(made.root, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    planned = threading.Event()
    plan = made.plan

    def tell(*args: object) -> object:
        found = plan()
        planned.set()
        return found

    made.plan = tell  # type: ignore[method-assign, assignment]  # it tells and passes on
    outcomes: list[object] = []
    waiting = threading.Thread(target=lambda: outcomes.append(made.merge().skipped))
    waiting.start()
    assert planned.wait(10)
    (made.root / "f").write_text("2\n")
    os.close(other)
    waiting.join(10)
    assert len(str(outcomes[0])) > len("()")


def test_two_changes_for_one_path_do_not_fight(memory_path: Path) -> None:
    base: Nodes = {b"a": text("1\n2\n3\n4\n"), b"b": text("x\n")}
    made = Scene(memory_path / "ws", memory_path / "merges", base, base)
    wishes = [
        Wish(b"one", b"a", b"c", Side("file", base[b"a"][1]), Side("file", b"new\n")),
        Wish(b"two", None, b"c", Side("none"), Side("file", b"other\n")),
    ]
    outcome = run_merge(lambda: make_plan(wishes, made.root), made.merges)
    assert [refusal.path for refusal in outcome.conflicts] == [b"two"]
    assert (made.root / "c").read_bytes() == b"new\n"


def test_two_thousand_files(memory_path: Path) -> None:
    base: Nodes = {b"d%d/f%d" % (n % 50, n): text(f"{n}\n" * 50) for n in range(2000)}
    agent = {path: text(content + b"more\n") for path, (_, content) in base.items()}
    made = Scene(memory_path / "ws", memory_path / "merges", base, agent)
    outcome = made.merge()
    assert len(outcome.written) == 2000
    assert made.found() == made.expected()
    made.undo(outcome.merge)
    assert tree_of(made.root)["d0/f0"] == Entry("file", 0o644, b"0\n" * 50)
