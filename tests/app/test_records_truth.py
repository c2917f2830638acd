"""What is said of a session whose keeper, machine or host went down in the middle of something."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from app import records
from app.processes import boot_id, start_time
from app.records import KEEPER_LOCK, LOST, REBOOTED, Process, StateRecord, truth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.protocol import SessionState

HERE = Process.here(os.getpid(), start_time(os.getpid()))
GONE = Process(1 << 22, 1, boot_id())


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[None]:
    with (tmp_path / KEEPER_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("state", ["running", "paused", "stopping"])
def test_a_host_that_was_started_anew_has_no_machine(tmp_path: Path, state: SessionState) -> None:
    """Pid and start time of another boot may well be those of a process that runs now."""
    earlier = Process(HERE.pid, HERE.start_time, "another boot")
    found = truth(tmp_path, StateRecord(state=state, machine=earlier))
    assert (found.state, found.message, found.machine) == ("lost", REBOOTED, None)
    assert "cloche resume" in found.hint


def test_a_record_without_a_boot_is_taken_to_be_of_this_one() -> None:
    assert Process(HERE.pid, HERE.start_time).alive
    assert not Process(HERE.pid, HERE.start_time + 1).alive


def test_a_machine_that_died_is_lost(tmp_path: Path) -> None:
    found = truth(tmp_path, StateRecord(state="running", machine=GONE))
    assert (found.state, found.message) == ("lost", LOST)


@pytest.mark.usefixtures("keeper")
def test_a_keeper_that_has_just_ended_its_machine_is_believed(tmp_path: Path) -> None:
    state = StateRecord(state="stopping", machine=GONE)
    assert truth(tmp_path, state) == state


def test_a_stop_without_keeper_is_still_to_be_done(tmp_path: Path) -> None:
    found = truth(tmp_path, StateRecord(state="stopping", machine=HERE))
    assert found.state == "stopping"
    assert "cloche stop" in found.hint


def test_a_start_without_keeper_goes_on_only_with_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateRecord(state="starting")
    assert truth(tmp_path, state).state == "failed"

    def found_one(_: Path) -> Process:
        return HERE

    monkeypatch.setattr(records, "find_machine", found_one)  # its pid was never noted
    found = truth(tmp_path, state)
    assert found.state == "starting"
    assert "cloche resume" in found.hint
