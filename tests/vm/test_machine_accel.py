"""Choosing an accelerator with programs in QEMU's place that tell, hide, hang or lie."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from vm.errors import HostLacks
from vm.machine import accel
from vm.machine.spec import BadSpec

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, version: str, boot: str) -> str:
    """Write a QEMU that tells `version` and otherwise runs `boot`, counting its boots."""
    path = folder / "qemu"
    count = folder / "boots"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\necho x >> {count}\n{boot}\n'
    )
    path.chmod(0o700)
    return str(path)


def boots(folder: Path) -> int:
    path = folder / "boots"
    return path.read_text().count("x") if path.exists() else 0


GOOD = "QEMU emulator version 7.2.22 (Debian 1:7.2)"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLOCHE_ACCEL", raising=False)
    monkeypatch.setattr(accel, "KVM_DEVICE", str(tmp_path / "kvm"))
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 0.3)
    (tmp_path / "kvm").touch()
    path = tmp_path / "vmlinux"
    path.write_bytes(b"kernel")
    return path


async def test_the_installed_qemu_will_do() -> None:
    assert await accel.qemu_version() >= (7, 2, 0)


async def test_versions(tmp_path: Path) -> None:
    assert await accel.qemu_version(program(tmp_path, GOOD, "")) == (7, 2, 22)
    newer = program(tmp_path, "QEMU emulator version 10.0.2", "")
    assert await accel.qemu_version(newer) == (10, 0, 2)
    with pytest.raises(HostLacks, match=r"QEMU 6\.2 is too old"):
        await accel.qemu_version(program(tmp_path, "QEMU emulator version 6.2.0", ""))
    with pytest.raises(HostLacks, match="does not say"):
        await accel.qemu_version(program(tmp_path, "hello", ""))
    with pytest.raises(HostLacks, match="not installed") as caught:
        await accel.qemu_version("qemu-system-nonesuch")
    assert caught.value.hint == "Run: sudo apt install qemu-system-x86"


async def test_kvm_when_a_kernel_speaks(tmp_path: Path, kernel: Path) -> None:
    binary = program(tmp_path, GOOD, "echo '[0.0] Linux version 6.1'; exec sleep 60")
    for _ in range(2):
        assert await accel.choose(kernel, tmp_path / "cache", binary) == accel.Choice("kvm")
    assert boots(tmp_path) == 1


@pytest.mark.parametrize("boot", ["exec sleep 60", "echo no; exit 1", "yes | head -c 1000000"])
async def test_emulation_when_no_kernel_speaks(tmp_path: Path, kernel: Path, boot: str) -> None:
    binary = program(tmp_path, GOOD, boot)
    for _ in range(2):
        choice = await accel.choose(kernel, tmp_path / "cache", binary)
        assert choice.accelerator == "tcg"
        assert "no guest runs under KVM" in choice.notice
    assert boots(tmp_path) == 1


async def test_another_kernel_or_a_damaged_memory_asks_again(tmp_path: Path, kernel: Path) -> None:
    binary = program(tmp_path, GOOD, "exit 1")
    cache = tmp_path / "cache"
    await accel.choose(kernel, cache, binary)
    os.truncate(kernel, 3)
    await accel.choose(kernel, cache, binary)
    for damage in ("{", "[]", json.dumps({"x": 1})):
        (cache / "accelerator.json").write_text(damage)
        await accel.choose(kernel, cache, binary)
    assert boots(tmp_path) == 5


async def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, kernel: Path) -> None:
    binary = program(tmp_path, GOOD, "exit 1")
    (tmp_path / "cache").write_text("in the way")
    choice = await accel.choose(kernel, tmp_path / "cache", binary)
    assert choice.accelerator == "tcg"


async def test_no_device_and_the_users_word(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = program(tmp_path, GOOD, "exit 1")
    os.unlink(accel.KVM_DEVICE)
    choice = await accel.choose(kernel, tmp_path, binary)
    assert (choice.accelerator, boots(tmp_path)) == ("tcg", 0)
    assert "cannot be used by you" in choice.notice
    for word in ("kvm", "tcg"):
        monkeypatch.setenv("CLOCHE_ACCEL", word)
        assert (await accel.choose(kernel, tmp_path, binary)).accelerator == word
    monkeypatch.setenv("CLOCHE_ACCEL", "xen")
    with pytest.raises(BadSpec, match="xen"):
        await accel.choose(kernel, tmp_path, binary)
