"""What a crash left behind is finished or taken back at the next start."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from typing import TYPE_CHECKING, NoReturn

import pytest

from snapshot import renameat, writeback_run
from snapshot.errors import StoreDamaged
from snapshot.writeback import recover
from snapshot.writeback_images import ARCHIVE
from tests.snapshot.merge_faults import die, fail_at, full, refuse, run_and_die, ticks_of
from tests.snapshot.merge_help import Scene, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("no_sync")


def test_recovery_leaves_later_edits_alone(memory_path: Path) -> None:
    made = full(memory_path / "x")
    names = ticks_of(memory_path / "count")
    number = names.index("sync")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    (made.root / "edit").write_text("mine\n")
    (made.root / "new/exec").write_text("mine too\n")
    found = recover(made.merges)
    assert {item.path for item in found[0].leftovers} >= {b"edit", b"new/exec"}
    assert (made.root / "edit").read_text() == "mine\n"
    assert (made.root / "new/exec").read_text() == "mine too\n"
    kept = next(made.merges.iterdir()) / "pre"
    assert b"1\n2\n3\n4\n5\n" in [path.read_bytes() for path in kept.iterdir()]


def test_a_move_by_hard_link_can_be_interrupted(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between link and unlink both names are there, of one and the same file."""
    monkeypatch.setattr(renameat, "_renameat2", refuse)
    unlinks = 0

    def die_at(number: int) -> Callable[..., None]:
        count = iter(range(1 << 30))
        unlink = os.unlink

        def dying(path: bytes, *, dir_fd: int | None = None) -> None:
            if dir_fd is not None and next(count) == number:
                die()
            unlink(path, dir_fd=dir_fd)

        return dying

    for number in range(14):
        made = full(memory_path / f"{number}")
        before = tree_of(made.root)

        def work(made: Scene = made, number: int = number) -> None:
            os.unlink = die_at(number)
            made.merge()

        unlinks += os.WIFSIGNALED(run_and_die(work))
        found = recover(made.merges)
        if found[0].rolled_back:
            assert tree_of(made.root) == before
        assert found[0].leftovers == ()
        shutil.rmtree(made.root.parent)
    assert unlinks == 14


def test_recovery_does_not_touch_a_merge_that_still_runs(memory_path: Path) -> None:
    made = full(memory_path / "x")
    recovering = threading.Event()
    found: list[object] = []

    def recover_meanwhile() -> None:
        recovering.set()
        found.extend(recover(made.merges))

    other = threading.Thread(target=recover_meanwhile)

    def tick(name: str) -> None:
        if name == "rename 3":
            other.start()
            recovering.wait(10)

    outcome = made.merge(tick=tick)
    other.join(10)
    assert found == []
    assert len(outcome.written) == len(made.files)
    assert made.found().keys() >= made.expected().keys()


def test_a_torn_journal_stands_for_what_was_whole(memory_path: Path) -> None:
    made = full(memory_path / "x")
    before = tree_of(made.root)
    number = ticks_of(memory_path / "count").index("rename 5")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    journal = next(made.merges.rglob("journal.jsonl"))
    with journal.open("ab") as file:
        file.write(b'{"state":"COMM')
    assert recover(made.merges)[0].rolled_back
    assert tree_of(made.root) == before


def test_a_missing_workspace_is_tried_again_later(memory_path: Path) -> None:
    made = full(memory_path / "x")
    before = tree_of(made.root)
    number = ticks_of(memory_path / "count").index("rename 5")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    made.root.rename(memory_path / "away")
    assert "cannot be opened" in recover(made.merges)[0].leftovers[0].reason
    (memory_path / "away").rename(made.root)
    assert recover(made.merges)[0].rolled_back
    assert tree_of(made.root) == before


@pytest.mark.parametrize("how", ["other bytes", "cut", "gone"])
def test_damaged_pre_images_are_said_and_nothing_restored(memory_path: Path, how: str) -> None:
    made = full(memory_path / "x")
    merge = made.merge().merge
    after = tree_of(made.root)
    archive = made.merges / merge / ARCHIVE
    if how == "gone":
        archive.unlink()
    else:
        archive.write_bytes(bytes(archive.stat().st_size if how == "other bytes" else 100))
    with pytest.raises(StoreDamaged, match=r"does not hold|cannot be read|is missing") as caught:
        made.undo(merge)
    assert ARCHIVE in caught.value.message
    assert tree_of(made.root) == after


def test_a_damaged_journal_does_not_keep_other_merges_from_recovery(memory_path: Path) -> None:
    made = full(memory_path / "x")
    before = tree_of(made.root)
    damaged = made.merges / "0-damaged"
    damaged.mkdir(parents=True)
    (damaged / "journal.jsonl").write_text("{}\n\n")
    number = ticks_of(memory_path / "count").index("sync")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))

    told, recovered = recover(made.merges)

    assert (told.merge, told.rolled_back) == ("0-damaged", False)
    assert "cannot be understood" in told.leftovers[0].reason
    assert recovered.rolled_back
    assert recovered.leftovers == ()
    assert tree_of(made.root) == before


def test_a_full_disk_leaves_the_rest_to_the_next_start(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = full(memory_path / "x")
    number = ticks_of(memory_path / "count").index("sync")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))

    def no_room(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full_disk:
        full_disk.setattr(writeback_run, "note_state", no_room)
        (found,) = recover(made.merges)
        assert "No space left on device" in found.leftovers[0].reason
    assert [item.leftovers for item in recover(made.merges)] == [()]
    assert recover(made.merges) == []


def test_damaged_attributes_are_said_and_nothing_restored(memory_path: Path) -> None:
    made = full(memory_path / "x")
    merge = made.merge().merge
    after = tree_of(made.root)
    (made.merges / merge / "pre").mkdir()
    for number in range(len(made.plan().ops) + 40):
        (made.merges / merge / f"pre/{number}.xattrs").write_text('["not", "a", "map"]')
    with pytest.raises(StoreDamaged, match="xattrs"):
        made.undo(merge)
    assert tree_of(made.root) == after


def test_recover_without_merges(memory_path: Path) -> None:
    assert recover(memory_path / "none") == []
    (memory_path / "merges" / "empty").mkdir(parents=True)
    assert recover(memory_path / "merges") == []
