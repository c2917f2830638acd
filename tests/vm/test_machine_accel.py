"""Choosing an accelerator with programs in QEMU's place that tell, hide, hang or lie."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from vm.errors import HostLacks
from vm.machine import accel, verdicts
from vm.machine.jail import Jail
from vm.machine.process import Process
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


LAST = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
GOOD = "QEMU emulator version 7.2.22 (Debian 1:7.2)"
PATIENCE_S = 60


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLOCHE_ACCEL", raising=False)
    monkeypatch.setattr(accel, "KVM_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", PATIENCE_S)
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
    binary = program(tmp_path, GOOD, f"echo '[1.0] {LAST}'; exec sleep 60")
    for _ in range(2):
        assert await accel.choose(kernel, tmp_path / "cache", binary) == accel.Choice("kvm")
    assert boots(tmp_path) == 1


UNHAPPY = {
    "silent": ("exec sleep 60", "did not boot within 2 s)"),
    "half-way": (
        "echo 'Linux version 6.1'; echo 'Run  it'; exec sleep 60",
        'did not boot within 2 s, it said "Run  it")',
    ),
    "ends": (
        "echo 'Could not access KVM: busy.' >&2; exit 1",
        'it said "Could not access KVM: busy")',
    ),
    "crashes": (
        "echo SeaBIOS; echo 'qemu-system-x86_64: error: failed to set MSR.' >&2; echo more;"
        "kill -ABRT $$",
        '(QEMU crashed with signal 6, it said "failed to set MSR")',
    ),
    "endless": ("yes | head -c 1000000", 'it said "y")'),
    "escapes": (r"printf '\033[31mred\007\n'; exit 1", 'it said "red")'),
}


@pytest.mark.parametrize("name", UNHAPPY)
async def test_emulation_when_no_kernel_boots(
    tmp_path: Path, kernel: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot, why = UNHAPPY[name]
    if "within" in why:
        monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 2)
    binary = program(tmp_path, GOOD, boot)
    for _ in range(2):
        choice = await accel.choose(kernel, tmp_path / "cache", binary)
        assert (choice.accelerator, choice.chosen_by) == ("tcg", "probe")
        assert choice.notice.startswith("Guests are emulated and therefore slow, because ")
        assert "is there but no guest runs under it" in choice.notice
        assert why in choice.notice
    assert boots(tmp_path) == 1


async def test_what_a_hanging_program_started_is_ended_with_it(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper's child keeps the pipe open: reading to its end must not wait for it."""
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 2)
    binary = program(tmp_path, GOOD, f"sleep 600 & echo $! > {tmp_path / 'child'}; wait")
    async with asyncio.timeout(PATIENCE_S):
        assert not (await accel.probe(kernel, binary)).works
    try:
        child = Process(int((tmp_path / "child").read_text()))
    except ProcessLookupError:
        return  # reaped already
    assert await child.ends_within(5.0)
    child.close()


async def test_another_kernel_or_qemu_asks_again(tmp_path: Path, kernel: Path) -> None:
    binary, cache = program(tmp_path, GOOD, "exit 1"), tmp_path / "cache"
    await accel.choose(kernel, cache, binary)
    os.truncate(kernel, 3)
    await accel.choose(kernel, cache, binary)
    binary = program(tmp_path, "QEMU emulator version 10.0.2", "exit 1")
    await accel.choose(kernel, cache, binary)
    assert boots(tmp_path) == 3
    await accel.choose(kernel, cache, binary)
    assert boots(tmp_path) == 3


async def test_asking_anew_mends_a_verdict(tmp_path: Path, kernel: Path) -> None:
    """Another hypervisor may have held the processor for a moment."""
    free = tmp_path / "free"
    binary = program(tmp_path, GOOD, f"[ -e {free} ] && echo '{LAST}'")
    cache = tmp_path / "cache"
    assert not (await accel.kvm_verdict(kernel, cache, binary)).works
    free.touch()
    assert not (await accel.kvm_verdict(kernel, cache, binary)).works
    assert (await accel.kvm_verdict(kernel, cache, binary, anew=True)).works
    assert (await accel.choose(kernel, cache, binary)).accelerator == "kvm"
    assert boots(tmp_path) == 2


async def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, kernel: Path) -> None:
    binary = program(tmp_path, GOOD, "exit 1")
    (tmp_path / "cache").write_text("in the way")
    choice = await accel.choose(kernel, tmp_path / "cache", binary)
    assert choice.accelerator == "tcg"


async def test_sessions_that_start_together_ask_once(tmp_path: Path, kernel: Path) -> None:
    binary = program(tmp_path, GOOD, f"sleep 0.1; echo '{LAST}'")
    asked = [accel.choose(kernel, tmp_path / "cache", binary) for _ in range(4)]
    assert await asyncio.gather(*asked) == [accel.Choice("kvm")] * 4
    assert boots(tmp_path) == 1


async def test_nobody_waits_for_ever_for_another_who_asks(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 2)
    binary, cache = program(tmp_path, GOOD, f"echo '{LAST}'"), tmp_path / "cache"
    async with verdicts.turn(cache / accel.CACHE, 1.0), asyncio.timeout(PATIENCE_S):
        assert (await accel.choose(kernel, cache, binary)).accelerator == "kvm"


async def test_a_qemu_that_cannot_be_started(tmp_path: Path) -> None:
    path = tmp_path / "qemu"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o700)
    with pytest.raises(HostLacks, match="could not be started"):
        await accel.qemu_version(str(path))


async def test_a_device_that_qemu_does_not_get_in_its_jail_is_not_probed(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found out with our rights says nothing of QEMU's, when it has fewer."""
    binary = program(tmp_path, GOOD, f"echo '{LAST}'")

    def withheld(place: Jail | None, _device: Path, _folder: Path) -> str:
        return "it is root's alone" if place else ""

    monkeypatch.setattr("vm.machine.jail_start.withheld", withheld)
    place = Jail("bwrap", "setpriv")
    told = await accel.choose(kernel, tmp_path / "cache", binary, place=place)
    assert (told.accelerator, boots(tmp_path)) == ("tcg", 0)
    assert told.notice.endswith("because it is root's alone.")
    assert (await accel.choose(kernel, tmp_path / "cache", binary)).accelerator == "kvm"


async def test_no_device(tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = program(tmp_path, GOOD, "exit 1")

    real = os.access

    def refused(path: str | Path, mode: int, **more: bool) -> bool:
        return path != accel.KVM_DEVICE and real(path, mode, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", refused)
        choice = await accel.choose(kernel, tmp_path, binary)
        assert choice.notice.endswith("/kvm cannot be used by you.")
    os.unlink(accel.KVM_DEVICE)
    choice = await accel.choose(kernel, tmp_path, binary)
    assert (choice.accelerator, boots(tmp_path)) == ("tcg", 0)
    assert f"this host has no {tmp_path}/kvm" in choice.notice


@pytest.mark.parametrize("word", ["kvm", "tcg"])
async def test_the_users_word(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """The variable comes before the configuration, and neither boots anything."""
    binary = program(tmp_path, GOOD, "exit 1")
    told = await accel.choose(kernel, tmp_path, binary, wish=word)
    assert (told.accelerator, told.chosen_by) == (word, "config")
    monkeypatch.setenv("CLOCHE_ACCEL", word)
    for wish in ("auto", "kvm", "tcg"):
        told = await accel.choose(kernel, tmp_path, binary, wish=wish)
        assert (told.accelerator, told.chosen_by) == (word, "variable")
    assert boots(tmp_path) == 0
    monkeypatch.setenv("CLOCHE_ACCEL", "auto")
    assert (await accel.choose(kernel, tmp_path, binary, wish=word)).chosen_by == "probe"


async def test_words_that_are_none(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOCHE_ACCEL", "xen")
    with pytest.raises(BadSpec, match="xen"):
        await accel.choose(kernel, tmp_path, program(tmp_path, GOOD, "exit 1"))
    monkeypatch.setenv("CLOCHE_ACCEL", "tcg")
    with pytest.raises(HostLacks):
        await accel.choose(kernel, tmp_path, "qemu-system-nonesuch")
