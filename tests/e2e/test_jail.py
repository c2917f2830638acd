"""The jail of real machines, looked at from outside through /proc."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.processes import alive, start_time
from vm.machine import jail

if TYPE_CHECKING:
    from tests.e2e.sessions import World
    from tests.e2e.vmlab import LabVM

pytestmark = pytest.mark.vm

NO_NAMESPACES = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
WRITABLE = {"/tmp", "/vm/console", "/vm/run", "/vm/scratch", *map(str, jail.DEVICES)}


def status_of(pid: int) -> dict[str, list[str]]:
    parts = (line.partition(":") for line in lines_of(f"/proc/{pid}/status"))
    return {name: value.split() for name, _, value in parts}


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def comes_to_an_end(pid: int, started: int) -> bool:
    """Wait up to ten seconds for a process that is nobody's child here."""
    until = time.monotonic() + 10
    while alive(pid, started) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid, started)


async def test_qemu_has_no_rights(forked_vm: LabVM) -> None:
    status = status_of(forked_vm.machine.pid)
    assert status["NoNewPrivs"] == ["1"]
    assert status["Seccomp"] == ["2"]
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind][0], 16) == 0, kind
    users = set(map(int, status["Uid"] + status["Gid"]))
    if os.geteuid() == 0:
        assert users <= set(jail.IDS)
        assert status["Groups"] == []
    else:
        assert users == {os.geteuid(), os.getegid()}


async def test_qemu_has_namespaces_of_its_own(forked_vm: LabVM) -> None:
    pid = forked_vm.machine.pid
    for kind in ("mnt", "net", "pid", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind
    assert status_of(pid)["NSpid"] == [str(pid), "1"]
    devices = lines_of(f"/proc/{pid}/net/dev")[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    assert os.getsid(pid) == pid


async def test_qemu_sees_its_files_and_nothing_else(forked_vm: LabVM) -> None:
    root = Path(f"/proc/{forked_vm.machine.pid}/root")
    assert set(os.listdir(root)) <= {"dev", "etc", "lib", "lib64", "tmp", "usr", "vm"}
    assert set(os.listdir(root / "etc")) <= {"ld.so.cache"}
    assert set(os.listdir(root / "dev")) == {"null", "urandom"}
    assert set(os.listdir(root / "usr/bin")) <= {"qemu-system-x86_64", "prlimit", "setpriv"}
    disks = {"base", "ws0", "scratch", "scratch-1", "scratch-2"}
    assert set(os.listdir(root / "vm")) == {"kernel", "initrd", "console", "run", *disks}
    sockets = {"qmp.sock", "port-control.sock", "port-bulk.sock"}
    assert set(os.listdir(root / "vm/run")) == sockets


async def test_qemu_can_write_only_its_own(forked_vm: LabVM) -> None:
    pid = forked_vm.machine.pid
    mounts = [line.split() for line in lines_of(f"/proc/{pid}/mountinfo")]
    assert {mount[4] for mount in mounts if "ro" not in mount[5].split(",")} == WRITABLE
    assert all("nosuid" in mount[5].split(",") for mount in mounts)
    root = Path(f"/proc/{pid}/root")
    for name in ("new", "usr/lib/new", "vm/new", "etc/new", "dev/new", "vm/base", "vm/kernel"):
        with pytest.raises(OSError, match="Read-only") as caught:
            os.close(os.open(root / name, os.O_WRONLY | os.O_CREAT, 0o600))
        assert caught.value.errno == errno.EROFS


async def test_qemu_holds_no_file_of_the_host(forked_vm: LabVM) -> None:
    folder = f"/proc/{forked_vm.machine.pid}/fd"
    held = {os.readlink(f"{folder}/{descriptor}") for descriptor in os.listdir(folder)}
    named = {name for name in held if name.startswith("/")}
    # 1 and 2 lead to its log, which it may only append to
    assert named - {str(forked_vm.spec.log)} <= {
        "/dev/null",
        "/vm/console",
        "/vm/base",
        "/vm/ws0",
        "/vm/scratch",
        "/vm/scratch-1",
        "/vm/scratch-2",
    }


async def test_qemu_outlives_its_guard(forked_vm: LabVM) -> None:
    """Whatever ends bubblewrap's process does not end the machine."""
    machine = forked_vm.machine
    os.kill(int(status_of(machine.pid)["PPid"][0]), signal.SIGKILL)
    assert (await forked_vm.run("true")).exit_code == 0
    await machine.stop(5.0)
    assert not machine.running
    assert await machine.wait_exit() is None


def test_a_jailed_session_outlives_its_keeper(world: World, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("mine\n")
    session = world.json("run", "shell", "--detach", "--workspace", str(project))["session"]
    world.wait_for(session, "state", "running")
    assert world.shown(session)["jail"] == "on"
    machine = world.state(session).machine
    assert machine is not None
    root = Path(f"/proc/{machine.pid}/root")
    for place in (project, tmp_path, world.paths.sessions, world.paths.sockets(session)):
        assert place.exists()
        assert not Path(f"{root}{place}").exists()
    guard = int(status_of(machine.pid)["PPid"][0])
    guard_started = start_time(guard)
    world.kill_keeper(session)
    assert world.run("exec", session, "--", "cat", "a.txt").stdout == b"mine\n"
    assert world.state(session).machine == machine
    assert world.json("stop", session)["state"] == "stopped"
    assert not machine.alive
    assert comes_to_an_end(guard, guard_started)


def test_a_host_without_namespaces(world: World, tmp_path: Path) -> None:
    """It is said at every start that there is no jail; where one is demanded, nothing starts."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "bwrap").write_text(NO_NAMESPACES)
    (programs / "bwrap").chmod(0o700)
    world.environment["PATH"] = f"{programs}:{world.environment['PATH']}"
    project = tmp_path / "project"
    project.mkdir()
    run = ("run", "shell", "--detach", "--workspace", str(project))
    session = world.json(*run)["session"]
    world.wait_for(session, "prepared", True)
    shown = world.shown(session)
    assert shown["jail"] == "off"
    assert "QEMU runs without its jail" in shown["notices"][0]
    (project / ".cloche.yaml").write_text("machine: {jail: on}\n")
    refused = world.json(*run, status=5)["error"]
    assert refused["code"] == "no-jail"
    assert refused["hint"]
    assert [one["id"] for one in world.json("ps")["sessions"]] == [session]
