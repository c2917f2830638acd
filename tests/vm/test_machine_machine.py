"""Starting, adopting and ending QEMU, against a program that plays its part."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.vm.machine_fakes import fake_binary, spec_for
from vm.errors import BootFailed, CutOff, HostLacks, ImageMissing, LinkLost, NotStopped, VMError
from vm.machine import console, launching, signals
from vm.machine import machine as machine_module
from vm.machine.disks import DiskFull
from vm.machine.identity import Identity
from vm.machine.machine import Machine, boot
from vm.machine.process import start_time
from vm.machine.qmp import QmpRefused
from vm.machine.signals import MachineGone
from vm.machine.spec import BadSpec

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TERM_PATIENCE_S", 0.2)


async def test_starts_in_its_own_session_and_stops(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    assert machine.running
    assert os.getsid(machine.pid) == machine.pid
    assert machine.start_time == start_time(machine.pid)
    assert (tmp_path / "console.log").stat().st_mode & 0o777 == 0o600
    await machine.stop()
    assert not machine.running
    assert await machine.wait_exit() == 0


async def test_logs_stay_bounded_even_after_one_could_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed = asyncio.Event()
    seen: list[Path] = []

    def trim(path: Path) -> bool:
        seen.append(path)
        if len(seen) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if seen.count(seen[0]) == 2:
            trimmed.set()
        return False

    monkeypatch.setattr(machine_module, "HOUSEKEEPING_S", 0.01)
    monkeypatch.setattr(console, "trim", trim)
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    async with asyncio.timeout(10):
        await trimmed.wait()
    await machine.stop()


async def test_a_console_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "console.log").symlink_to("elsewhere")
    with pytest.raises(VMError, match=r"console\.log") as caught:
        await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    assert "ls -ld" in caught.value.hint


async def test_survives_close_and_is_adopted(tmp_path: Path) -> None:
    spec = spec_for(tmp_path, fake_binary(tmp_path, "good"))
    first = await Machine.start(spec)
    await first.close()
    second = await Machine.adopt(spec, first.pid, first.start_time)
    await second.pause()
    await second.resume()
    await second.stop()
    with pytest.raises(MachineGone):
        await Machine.adopt(spec, first.pid, first.start_time)


async def test_a_machine_whose_socket_was_removed_is_cut_off(tmp_path: Path) -> None:
    spec = spec_for(tmp_path, fake_binary(tmp_path, "good"))
    first = await Machine.start(spec)
    try:
        spec.qmp_socket.unlink()
        with pytest.raises(CutOff):
            await Machine.adopt(spec, first.pid, first.start_time, 0.1)
        assert first.running, "nothing was done to it"
    finally:
        await first.stop()


STARTER = """
import asyncio, os, sys
from pathlib import Path
from tests.vm.machine_fakes import spec_for
from vm.machine.machine import Machine

async def main():
    machine = await Machine.start(spec_for(Path(sys.argv[1]), sys.argv[2]))
    print(machine.pid, machine.start_time, flush=True)
    os.killpg(0, 9)

asyncio.run(main())
"""


async def test_outlives_a_killed_keeper(tmp_path: Path) -> None:
    """Its starter is killed with its whole process group; another one adopts the machine."""
    binary = fake_binary(tmp_path, "good")
    starter = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTER, str(tmp_path), binary),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    said, _ = await asyncio.wait_for(starter.communicate(), 30.0)
    assert starter.returncode == -signal.SIGKILL
    pid, started = map(int, said.split())
    machine = await Machine.adopt(spec_for(tmp_path, binary), pid, started)
    await machine.stop()
    assert await machine.wait_exit() is None


async def test_a_pid_that_belongs_to_another_is_not_adopted(tmp_path: Path) -> None:
    spec = spec_for(tmp_path, fake_binary(tmp_path, "good"))
    with pytest.raises(MachineGone):
        await Machine.adopt(spec, os.getpid(), (start_time(os.getpid()) or 0) + 1)


async def test_a_stubborn_machine_is_killed(tmp_path: Path, quick: None) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "stubborn")))
    await machine.stop(0.2)
    assert await machine.wait_exit() == -signal.SIGKILL


def _nothing(*_: object) -> None:
    """Stand in for a signal that does not arrive."""


async def test_a_machine_that_cannot_be_ended_is_an_error(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "deaf")))
    monkeypatch.setattr(signals, "KILL_PATIENCE_S", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr("vm.machine.process.Process.signal", _nothing)
        with pytest.raises(NotStopped, match="does not end"):
            await machine.stop(0.1)
    await machine.stop(0.1)


async def test_the_guest_is_asked_first_and_need_not_listen(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    asked: list[bool] = []

    async def ask() -> None:
        asked.append(True)
        raise LinkLost("no")

    await machine.stop(2.0, ask)
    assert asked == [True]
    assert not machine.running


async def test_a_killed_machine_is_noticed(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    os.kill(machine.pid, signal.SIGKILL)
    assert await machine.wait_exit() == -signal.SIGKILL
    with pytest.raises(LinkLost):
        await machine.pause()
    await machine.stop()


async def test_events_are_bounded_and_end_with_the_connection(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    events = machine.qmp.events("STOP")
    await machine.pause()
    await machine.qmp.execute("query-status")
    await machine.stop()
    seen = [name async for name, _ in events]
    assert seen == ["STOP"] * len(seen)
    assert 200 <= len(seen) <= 257


async def test_a_refused_command_says_why(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    with pytest.raises(QmpRefused, match="does not please me"):
        await machine.qmp.execute("refused")
    await machine.stop()


async def test_qemu_that_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(BootFailed, match="wrong phase") as caught:
        await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "broken")))
    assert "qemu.log" in caught.value.hint


async def test_qemu_that_finds_no_room(tmp_path: Path) -> None:
    with pytest.raises(DiskFull):
        await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "full")))


async def test_qemu_that_never_answers_is_ended(tmp_path: Path) -> None:
    with pytest.raises(BootFailed, match="did not answer within"):
        await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "silent")), 0.3)


async def test_boot_shows_the_console_and_is_bounded(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    machine.spec.console.write_bytes(b"\x1b[31mKernel panic\x1b[0m - not syncing\x07\r\n")
    with pytest.raises(BootFailed) as caught:
        await boot(machine, Identity.new(), 0.3)
    assert caught.value.console == "Kernel panic - not syncing"
    os.kill(machine.pid, signal.SIGKILL)
    with pytest.raises(BootFailed, match="ended while it started"):
        await boot(machine, Identity.new(), 5.0)
    await machine.stop()


async def test_nothing_starts_without_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_for(tmp_path, fake_binary(tmp_path, "good"))
    with pytest.raises(HostLacks, match="not installed") as caught:
        await Machine.start(replace(spec, binary="qemu-system-nonesuch"))
    assert "apt install qemu-system-x86" in caught.value.hint
    with pytest.raises(ImageMissing):
        await Machine.start(replace(spec, kernel=tmp_path / "absent"))
    with pytest.raises(BadSpec, match="socket path"):
        await Machine.start(replace(spec, runtime=tmp_path / ("x" * 108)))
    monkeypatch.setattr(launching, "MIN_FREE", 1 << 62)
    with pytest.raises(DiskFull):
        await Machine.start(spec)
    assert not spec.qmp_socket.exists()
