"""Processes of a machine whose pid nobody noted: found by their open log, never mistaken."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from vm.machine import jail_start
from vm.machine.process import Process, spawn, start_time
from vm.machine.signals import end_strays
from vm.machine.strays import inmost, machine_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def qemu(tmp_path: Path) -> Path:
    """Return a program that bears QEMU's name and only waits."""
    place = tmp_path / "qemu-system-x86_64"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", place)
    return place


@pytest.fixture
def running(tmp_path: Path, qemu: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = os.open(tmp_path / "qemu.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process = subprocess.Popen([qemu, "1000"], stdout=log, stderr=log)
    os.close(log)
    yield process
    process.kill()
    process.wait(30)


def test_a_machine_is_found_by_the_log_that_it_writes(
    tmp_path: Path, running: subprocess.Popen[bytes]
) -> None:
    (found,) = machine_processes(tmp_path / "qemu.log")
    assert (found.pid, found.start_time) == (running.pid, start_time(running.pid))
    assert inmost((found,)) == found
    os.rename(tmp_path / "qemu.log", tmp_path / "moved.log")  # a session may be renamed under it
    assert machine_processes(tmp_path / "moved.log") == (found,)


def test_another_folder_with_the_same_names_has_none(
    tmp_path: Path, running: subprocess.Popen[bytes]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert machine_processes(other / "qemu.log") == ()
    (other / "qemu.log").write_text("")
    assert machine_processes(other / "qemu.log") == ()
    assert inmost(()) is None


def test_who_only_reads_the_log_or_is_another_program_is_no_machine(
    tmp_path: Path, qemu: Path
) -> None:
    log = tmp_path / "qemu.log"
    log.write_text("")
    sleep = shutil.which("sleep") or "/bin/sleep"
    with log.open("rb") as reading, log.open("ab") as writing:
        others = (
            subprocess.Popen([qemu, "1000"], stderr=reading),
            subprocess.Popen([sleep, "1000"], stderr=writing),
        )
    try:
        assert machine_processes(log) == ()
    finally:
        for process in others:
            process.kill()
            process.wait(30)


async def test_what_a_start_that_came_to_nothing_left_is_ended(
    tmp_path: Path, running: subprocess.Popen[bytes]
) -> None:
    await end_strays(tmp_path / "qemu.log")
    assert machine_processes(tmp_path / "qemu.log") == ()
    assert running.wait(30) is not None
    await end_strays(tmp_path / "qemu.log")


async def test_a_guard_that_dies_early_leaves_nobody(tmp_path: Path) -> None:
    """As bubblewrap killed between its two processes: the second waits for a word of the first."""
    guard_program, log = tmp_path / "bwrap", tmp_path / "qemu.log"
    shutil.copy(shutil.which("dash") or "/bin/sh", guard_program)
    os.mkfifo(tmp_path / "never")
    inner = f"read x < {tmp_path / 'never'}"
    words = [str(guard_program), "-c", f"{guard_program} -c '{inner}; :' & wait; :"]
    listening, saying = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    guard = Process(spawn(words, log))
    os.close(saying)
    async with asyncio.timeout(30):
        while len(machine_processes(log)) < 2:
            await guard.ends_within(0.01)
    os.kill(guard.pid, signal.SIGKILL)
    await guard.wait()
    assert len(machine_processes(log)) == 1
    with pytest.raises(ProcessLookupError, match="started nothing"):
        await jail_start.inmate(guard, listening, log)
    assert machine_processes(log) == ()
