"""Two commands at once about the same session or the same name: one wins, the other says why."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from app import records
from app.client.launch import take_lock
from app.errors import AppError
from app.locking import locked
from tests.doubles.stopped_home import COMMAND_S, Home, stopped_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def home() -> Iterator[Home]:
    with stopped_home() as made:
        yield made


def test_a_name_is_given_to_one_session_only(home: Home) -> None:
    first, second = "0000000001", "0000000002"
    for session in (first, second):
        home.stopped(session)
    with locked(home.paths.state / "names.lock"):
        running = [home.begin("rename", session, "same") for session in (first, second)]
        with pytest.raises(subprocess.TimeoutExpired):
            running[0].wait(2)  # it asks for the name only when nobody else does
    statuses = sorted(one.wait(COMMAND_S) for one in running)
    for one in running:
        assert one.stdout is not None
        one.stdout.close()
    assert statuses == [0, 2]
    names = [info.name for info in records.all_sessions(home.paths)]
    assert names.count("same") == 1


ALLOWED = {
    "", "not-found", "not-ready", "busy", "keeper-lost", "image-missing", "host-lacks", "failed"
}  # fmt: skip


@pytest.mark.parametrize("other", ["rm", "resume", "rename", "changes"])
def test_a_session_that_is_removed_is_gone_whatever_else_is_asked_of_it(
    home: Home, other: str
) -> None:
    for number in range(2):
        session = f"000000001{number}"
        folder = home.stopped(session)
        more = ("new",) if other == "rename" else ()
        removed, answer = home.at_once(("rm", session), (other, session, *more))
        assert {removed[1], answer[1]} <= ALLOWED
        if folder.exists():  # the other one was quicker and used it
            assert removed[0] != 0
            assert home.at_once(("rm", "--force", session))[0][0] == 0
        assert sorted(os.listdir(home.paths.sessions)) == []
        runtime = home.paths.runtime
        left = [one for one in runtime.iterdir() if one.is_dir()] if runtime.exists() else []
        assert left == []


def test_a_lock_of_a_session_that_went_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "0000000001"
    folder.mkdir()
    lock = take_lock(folder)
    assert lock is not None
    os.rename(folder, tmp_path / "away")
    with pytest.raises(AppError) as caught:
        take_lock(folder)
    assert caught.value.code == "not-found"
    os.close(lock)
