"""The bounds that QEMU is started with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.vm.machine_fakes import fake_binary, spec_for
from vm.errors import HostLacks
from vm.machine import rlimits
from vm.machine.machine import Machine
from vm.machine.spec import Resources


def limits_of(pid: int) -> dict[str, tuple[str, str]]:
    """Return soft and hard limits of a process by the kernel's names."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {line[:26].strip(): (line[26:47].strip(), line[47:68].strip()) for line in lines}


def test_a_jailed_qemu_is_bounded_in_threads_as_well() -> None:
    words = rlimits.words("/usr/bin/prlimit", Resources(2, 1024), alone=True)
    space = (1024 + rlimits.OVERHEAD_MIB) << 20
    assert words == [
        "/usr/bin/prlimit", "--core=0", "--nofile=1024", f"--as={space}", "--nproc=512", "--",
    ]  # fmt: skip
    assert "--nproc=512" not in rlimits.words("p", Resources(), alone=False)


def test_a_host_without_prlimit_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostLacks) as caught:
        rlimits.find()
    assert caught.value.hint == "Install: sudo apt-get install util-linux"


async def test_the_bounds_hold_from_the_first_moment(tmp_path: Path) -> None:
    machine = await Machine.start(spec_for(tmp_path, fake_binary(tmp_path, "good")))
    try:
        found = limits_of(machine.pid)
        space = str((128 + rlimits.OVERHEAD_MIB) << 20)
        assert found["Max core file size"] == ("0", "0")
        assert found["Max open files"] == ("1024", "1024")
        assert found["Max address space"] == (space, space)
        assert os.readlink(f"/proc/{machine.pid}/fd/2") == str(tmp_path / "qemu.log")
    finally:
        await machine.stop(1.0)
