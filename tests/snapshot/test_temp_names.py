"""What an interrupted merge leaves in a workspace is no file of anybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from snapshot.temp_names import BACKUP, is_temp_name, temp_name
from snapshot.undo import UNDO_SUFFIX
from snapshot.writeback_run import new_merge_id
from tests.snapshot.capture_helpers import capture, write
from tests.snapshot.merge_faults import die, fail_at, full, run_and_die, ticks_of

if TYPE_CHECKING:
    from pathlib import Path


def test_names_of_every_step_are_known() -> None:
    for number, merge in enumerate((new_merge_id(), new_merge_id() + UNDO_SUFFIX)):
        name = temp_name(merge, number)
        assert is_temp_name(name)
        assert is_temp_name(name + BACKUP)


@pytest.mark.parametrize("name", [b".cloche-notes", b".cloche-1", b".cloche.yaml", b"cloche-", b""])
def test_a_name_of_the_user_is_none(name: bytes) -> None:
    assert not is_temp_name(name)


@pytest.mark.usefixtures("no_sync")
def test_a_capture_leaves_them_out_and_says_so(memory_path: Path) -> None:
    names = ticks_of(memory_path / "count")
    made = full(memory_path / "x")
    run_and_die(lambda: made.merge(tick=fail_at(names.index("prepared"), die)))
    left = {path.name.encode() for path in made.root.rglob(".cloche-*")}
    assert left
    write(made.root, {".cloche-notes": "the user's"})

    report = capture(made.root, memory_path / "out")

    skipped = {path.rpartition(b"/")[2]: reason for path, reason in report.skipped}
    assert {name: skipped.get(name) for name in left} == dict.fromkeys(
        left, "left by an interrupted merge"
    )
    assert not [path for path in report.manifest if is_temp_name(path.rpartition(b"/")[2])]
    assert b".cloche-notes" in report.manifest
