"""Overlays made by qemu-img, and headers that lie about what they stand on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import struct
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.errors import HostLacks
from vm.machine import disks
from vm.machine.disks import BadDisk, DiskFull, create_overlay, verify
from vm.machine.spec import Backing, Disk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base, with: odd%name.raw"
    path.write_bytes(b"\0" * (1 << 20))
    return path


def _qemu_img(*words: str) -> bytes:
    return subprocess.run(
        ["qemu-img", *words], check=True, stdout=subprocess.PIPE, timeout=30
    ).stdout


def overlay(path: Path, backing: Backing) -> Disk:
    return Disk("scratch", path, "qcow2", False, backing)


async def test_an_overlay_stands_on_what_was_named(tmp_path: Path, base: Path) -> None:
    first, second = tmp_path / "one.qcow2", tmp_path / "two.qcow2"
    low = Backing(base, "raw")
    await create_overlay(first, low)
    await create_overlay(second, Backing(first, "qcow2", low))
    verify(overlay(first, low))
    verify(overlay(second, Backing(first, "qcow2", low)))
    info = json.loads(_qemu_img("info", "--output=json", str(first)))
    assert info["backing-filename"] == str(base)
    assert info["backing-filename-format"] == "raw"
    assert first.stat().st_mode & 0o777 == 0o600


async def test_another_backing_is_noticed(tmp_path: Path, base: Path) -> None:
    path = tmp_path / "one.qcow2"
    await create_overlay(path, Backing(base, "raw"))
    for wrong in (Backing(tmp_path / "other", "raw"), Backing(base, "qcow2"), None):
        with pytest.raises(BadDisk, match="should stand on"):
            verify(Disk("scratch", path, "qcow2", False, wrong))


async def test_a_changed_layer_far_below_is_noticed(tmp_path: Path, base: Path) -> None:
    first, second = tmp_path / "one.qcow2", tmp_path / "two.qcow2"
    await create_overlay(first, Backing(base, "raw"))
    await create_overlay(second, Backing(first, "qcow2"))
    rebased = first.read_bytes().replace(str(base).encode(), b"/etc/shadow".ljust(len(str(base))))
    first.write_bytes(rebased)
    with pytest.raises(BadDisk):
        verify(overlay(second, Backing(first, "qcow2", Backing(base, "raw"))))


def test_a_data_file_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.qcow2"
    made = f"data_file={tmp_path / 'data.raw'}"
    _qemu_img("create", "-q", "-f", "qcow2", "-o", made, str(path), "1M")
    with pytest.raises(BadDisk, match="another file"):
        verify(Disk("scratch", path, "qcow2", False))


def test_what_is_no_qcow2_file_or_not_there(tmp_path: Path, base: Path) -> None:
    for bad in (base, tmp_path / "absent"):
        with pytest.raises(BadDisk):
            verify(overlay(bad, Backing(base, "raw")))
    with pytest.raises(BadDisk):
        verify(Disk("base", tmp_path / "absent"))
    verify(Disk("base", base))


async def test_an_existing_file_is_not_replaced(tmp_path: Path, base: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("kept")
    with pytest.raises(BadDisk, match="could not be made"):
        await create_overlay(path, Backing(base, "raw"))
    assert path.read_text() == "kept"


async def test_failures_say_what_is_wrong_and_leave_nothing(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.qcow2"
    with pytest.raises(BadDisk, match="qemu-img could not make"):
        await create_overlay(path, Backing(tmp_path / "absent", "raw"))
    assert not path.exists()
    fake = tmp_path / "bin" / "qemu-img"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'qemu-img: x: No space left on device' >&2; exit 1\n")
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", str(fake.parent))
    with pytest.raises(DiskFull) as caught:
        await create_overlay(path, Backing(base, "raw"))
    assert "df -h" in caught.value.hint
    fake.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(disks, "QEMU_IMG_TIMEOUT_S", 0.2)
    with pytest.raises(BadDisk, match="no answer within"):
        await create_overlay(path, Backing(base, "raw"))
    fake.unlink()
    with pytest.raises(HostLacks, match="qemu-img is not installed") as lacks:
        await create_overlay(path, Backing(base, "raw"))
    assert "apt install qemu-utils" in lacks.value.hint


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_any_header_is_accepted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes, offset: int, length: int
) -> None:
    head = struct.pack(">IIQIIQI", 0x514649FB, 3, offset, length, 16, 1 << 20, 0)
    path = tmp_path_factory.mktemp("q") / "x"
    path.write_bytes(head.ljust(72, b"\0") + tail)
    with pytest.raises(BadDisk):
        verify(overlay(path, Backing(path, "raw")))


async def test_a_cancelled_overlay_leaves_neither_file_nor_process(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, mark = tmp_path / "qemu-img", tmp_path / "pid"
    os.mkfifo(mark)
    tool.write_text(f"#!/bin/sh\necho $$ > '{mark}'; exec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    task = asyncio.create_task(create_overlay(tmp_path / "new.qcow2", Backing(base, "raw")))
    async with asyncio.timeout(10):
        pid = await asyncio.to_thread(mark.read_text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (tmp_path / "new.qcow2").exists()
    assert pid.strip() not in os.listdir("/proc")


async def test_no_room_for_the_very_file_is_a_full_disk(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disks, "os", SimpleNamespace(**{**vars(os), "open": full}))
    with pytest.raises(DiskFull, match="no room"):
        await create_overlay(tmp_path / "new.qcow2", Backing(base, "raw"))
