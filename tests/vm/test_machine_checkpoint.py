"""Saving and loading a memory, against a QMP that moves bytes as QEMU does."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from vm.machine import checkpoint
from vm.machine.checkpoint import CheckpointFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vm.machine.machine import Machine
    from vm.machine.spec import MachineSpec

MEMORY = os.urandom(3 << 20)


class FakeQmp:
    """Notes what it is told; `migrate` sends a memory, `migrate-incoming` reads one."""

    def __init__(self, *, hang_up_after: int | None = None) -> None:
        self.told: list[tuple[str, object]] = []
        self.kinds: list[int] = []
        self.loaded = b""
        self.status = "active"
        self._cut = hang_up_after
        self._end: socket.socket | None = None
        self._moving: asyncio.Future[None] | None = None

    async def give_file(self, name: str, descriptor: int) -> None:
        self.told.append(("getfd", name))
        self.kinds.append(stat.S_IFMT(os.fstat(descriptor).st_mode))
        self._end = socket.socket(fileno=os.dup(descriptor))

    async def execute(self, command: str, arguments: Mapping[str, object] | None = None) -> object:
        if command == "query-migrate":
            return {"status": self.status}
        self.told.append((command, arguments))
        work = {"migrate": self._send, "migrate-incoming": self._load}.get(command)
        if work is not None:
            self._moving = asyncio.ensure_future(asyncio.to_thread(work))
        return {}

    def _send(self) -> None:
        assert self._end is not None
        with self._end as end:
            try:
                end.sendall(MEMORY[: self._cut])
            except OSError:
                self.status = "failed"
                return
        self.status = "completed" if self._cut is None else "failed"

    def _load(self) -> None:
        assert self._end is not None
        with self._end as end:
            while len(self.loaded) < len(MEMORY) and (data := end.recv(1 << 16)):
                self.loaded += data
        self.status = "completed" if self.loaded == MEMORY else "failed"


class FakeMachine:
    def __init__(self, qmp: FakeQmp, log: Path) -> None:
        self.qmp = qmp
        self.spec = SimpleNamespace(name="m", log=log)
        self.stopped = False

    async def pause(self) -> None:
        self.qmp.told.append(("stop", None))

    async def resume(self) -> None:
        self.qmp.told.append(("cont", None))

    async def stop(self, _: float) -> None:
        self.stopped = True


def machine(tmp_path: Path, qmp: FakeQmp) -> Machine:
    return cast("Machine", FakeMachine(qmp, tmp_path / "log"))


async def test_a_memory_is_saved_through_a_socket(tmp_path: Path) -> None:
    """The same words for every QEMU from 7.2 to 10: none of them deprecates sockets as `fd:`."""
    qmp = FakeQmp()
    await checkpoint.save(machine(tmp_path, qmp), tmp_path / "ram")
    assert (tmp_path / "ram").read_bytes() == MEMORY
    assert qmp.kinds == [stat.S_IFSOCK]
    assert qmp.told == [
        ("stop", None),
        ("migrate-set-parameters", {"max-bandwidth": checkpoint.MAX_BANDWIDTH}),
        ("getfd", "state"),
        ("migrate", {"uri": "fd:state"}),
    ]


async def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointFailed, match="could not move"):
        await checkpoint.save(machine(tmp_path, FakeQmp(hang_up_after=99)), tmp_path / "ram")
    assert not (tmp_path / "ram").exists()


async def test_a_full_disk_ends_a_save_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CheckpointFailed, match="No space left"):
        await checkpoint.save(machine(tmp_path, FakeQmp()), tmp_path / "ram")
    assert not (tmp_path / "ram").exists()


def _same(spec: object) -> object:
    return spec


async def _restored(tmp_path: Path, qmp: FakeQmp, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = machine(tmp_path, qmp)

    async def start(_spec: object, _deadline_s: float) -> Machine:
        return made

    monkeypatch.setattr(checkpoint, "waiting", _same)
    monkeypatch.setattr("vm.machine.machine.Machine.start", start)
    return await checkpoint.restore(cast("MachineSpec", None), tmp_path / "ram")


async def test_a_memory_is_loaded_through_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ram").write_bytes(MEMORY + b"what QEMU does not read")
    qmp = FakeQmp()
    await _restored(tmp_path, qmp, monkeypatch)
    assert qmp.loaded == MEMORY
    assert qmp.kinds == [stat.S_IFSOCK]
    assert qmp.told == [
        ("getfd", "state"),
        ("migrate-incoming", {"uri": "fd:state"}),
        ("cont", None),
    ]


async def test_a_memory_that_ends_early_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ram").write_bytes(MEMORY[:-1])
    qmp = FakeQmp()
    with pytest.raises(CheckpointFailed):
        await _restored(tmp_path, qmp, monkeypatch)
    assert ("cont", None) not in qmp.told


async def test_a_memory_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointFailed, match="cannot be read"):
        await _restored(tmp_path, FakeQmp(), monkeypatch)
