"""What the guest's kernel refuses to the agent, read back and tried from inside, by profile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e import vmlab
from vm.machine.guest_exec import run_toolkit

if TYPE_CHECKING:
    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

SYSCTLS: Final = {
    "kernel/kptr_restrict": "2",
    "kernel/dmesg_restrict": "1",
    "kernel/unprivileged_bpf_disabled": "1",
    "kernel/perf_event_paranoid": "3",
    "kernel/yama/ptrace_scope": "2",
    "kernel/sysrq": "0",
    "kernel/modules_disabled": "1",
    "kernel/kexec_load_disabled": "1",
    "fs/suid_dumpable": "0",
    "fs/protected_symlinks": "1",
    "fs/protected_hardlinks": "1",
    "fs/protected_fifos": "2",
    "fs/protected_regular": "2",
}
"""`net/core/bpf_jit_harden` can only be read with CAP_SYS_ADMIN; the toolkit reads it."""

PROBE: Final = r"""
import ctypes, errno, json, os, pathlib, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
ptr = ctypes.c_void_p

def call(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(number, *arguments)
    return errno.errorcode[ctypes.get_errno()] if done < 0 else "done"

def inside(work):
    # in a child: what succeeds must not change this process
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, work().encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reading, 100).decode()

def family(number):
    try:
        socket.socket(number, socket.SOCK_RAW).close()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def run_in(folder):
    path = f"{folder}/probe-{os.getpid()}"
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o700)
    try:
        subprocess.run([path], check=True)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.remove(path)

def attach(pid):
    done = call(101, 16, pid, ptr(), ptr())  # PTRACE_ATTACH
    if done == "done":
        os.waitpid(pid, 0)
        call(101, 17, pid, ptr(), ptr())
    return done

def traced_sibling():
    child = subprocess.Popen(["sleep", "100"])
    try:
        return inside(lambda: attach(child.pid))
    finally:
        child.kill()
        child.wait()

def traced_child():
    child = subprocess.Popen(["sleep", "100"])
    try:
        return attach(child.pid)
    finally:
        child.kill()
        child.wait()

def readable(path):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def writable(path):
    try:
        open(path, "w").close()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
mounts = {}
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    mounts[fields[4]] = [sorted(fields[5].split(",")), fields[-1].split(",")]
threading.Thread(target=lambda: None).start()
print(json.dumps({
    "ids": [os.getuid(), os.getgid(), os.getgroups()],
    "status": {name: status[name].strip() for name in status if name.startswith("Cap")
               or name in ("NoNewPrivs", "Seccomp")},
    "sysctls": {name: pathlib.Path("/proc/sys", name).read_text().strip()
                for name in sys.argv[1:]},
    "mounts": {at: mounts[at] for at in ("/", "/tmp", "/run", "/dev/shm", "/dev/pts", "/proc",
                                         "/sys", "/workspace", "/dev")},
    "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "own": [os.getpid()],
    "runs": {at: run_in(at) for at in ("/tmp", "/dev/shm", "/run/user/1000", "/workspace",
                                       "/home/agent")},
    "reads": {at: readable(at) for at in ("/root", "/proc/kcore", "/dev/kmsg", "/etc/shadow")},
    "writes": {at: writable(at) for at in ("/proc/sys/kernel/sysrq", "/proc/sysrq-trigger",
                                           "/sys/kernel/mm/ksm/run", "/etc/x", "/dev/x")},
    "traces": {"child": traced_child(), "other": traced_sibling()},
    "calls": {
        "userns": inside(lambda: call(272, 0x10000000)),
        "clone_userns": inside(lambda: call(56, 0x10000011, ptr(), ptr(), ptr(), ptr())),
        "clone3": call(435, ptr(), 0),
        "io_uring": call(425, 1, ptr()),
        "bpf": call(321, 0, ptr(), 0),
        "mount": call(165, b"x", b"/mnt", b"tmpfs", 0, ptr()),
        "keyctl": call(250, 0, -3, 0),
        "userfaultfd": call(323, 0),
        "init_module": call(175, ptr(), 0, b""),
        "personality": call(135, 0xFFFFFFFF),
        "x32": call(0x40000027),
    },
    "families": {name: family(number) for name, number in (("netlink", 16), ("alg", 38),
                                                           ("packet", 17), ("vsock", 40))},
    "works": subprocess.run("git --version && python3 -c 'import threading as t; "
                            "x = t.Thread(target=print); x.start(); x.join()'",
                            shell=True, stdout=subprocess.DEVNULL).returncode,
}))
"""


async def probe(vm: vmlab.LabVM) -> dict[str, Any]:
    """Run the probe as the agent."""
    done = await vm.run("python3", "-c", PROBE, *SYSCTLS)
    assert done.exit_code == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def flags(found: dict[str, Any], at: str) -> set[str]:
    return set(found["mounts"][at][0]) & {"ro", "nosuid", "nodev", "noexec"}


def holds_always(found: dict[str, Any]) -> None:
    """Check what every profile refuses."""
    assert found["ids"] == [1000, 1000, []]
    status = found["status"]
    assert {status[name] for name in status if name.startswith("Cap")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    plain = {"nosuid", "nodev"}
    assert flags(found, "/") == flags(found, "/workspace") == plain
    assert flags(found, "/proc") == plain | {"noexec"}
    assert flags(found, "/sys") == plain | {"noexec", "ro"}
    assert flags(found, "/dev") == {"nosuid", "noexec", "ro"}
    assert flags(found, "/dev/pts") == {"nosuid", "noexec"}
    for at in ("/tmp", "/run", "/dev/shm"):
        assert flags(found, at) >= plain
        assert any(option.startswith("size=") for option in found["mounts"][at][1]), at
    assert found["reads"]["/root"] == "EACCES"
    assert "done" not in {*found["reads"].values(), *found["writes"].values()}
    assert 1 not in found["pids"]  # root's; of other users' processes it sees none
    assert found["own"][0] in found["pids"]
    assert found["calls"]["mount"] == found["calls"]["init_module"] == "EPERM"
    assert found["calls"]["bpf"] == "EPERM"
    assert found["works"] == 0


async def test_the_standard_profile(forked_vm: vmlab.LabVM) -> None:
    found = await probe(forked_vm)
    holds_always(found)
    assert found["sysctls"] == SYSCTLS
    assert found["traces"] == {"child": "EPERM", "other": "EPERM"}
    assert set(found["runs"].values()) == {"done"}
    assert found["calls"]["userns"] == "done"  # for the sandboxes of agents and browsers
    assert found["status"]["Seccomp"] == "0"
    jit = await run_toolkit(forked_vm.ssh, "cat /proc/sys/net/core/bpf_jit_harden")
    assert jit.stdout == b"2\n"
    # root of the world sees every process of the world, and its home is closed to the agent
    shown = await forked_vm.sh("ls /proc | grep -c '^1$'; stat -c %a /root", root=True)
    assert shown.split() == ["1", "700"]


async def test_the_strict_profile(guest_image: ImageSet) -> None:
    async with vmlab.cold_vm(guest_image, profile="strict") as vm:
        found = await probe(vm)
        holds_always(found)
        assert found["sysctls"] == SYSCTLS | {"kernel/yama/ptrace_scope": "3"}
        assert found["traces"] == {"child": "EPERM", "other": "EPERM"}
        assert found["runs"] == {
            "/tmp": "EACCES",
            "/dev/shm": "EACCES",
            "/run/user/1000": "EACCES",
            "/workspace": "done",
            "/home/agent": "done",
        }
        missing = ("clone3", "io_uring", "x32")
        assert {found["calls"][name] for name in missing} == {"ENOSYS"}
        assert {found["calls"][name] for name in found["calls"] if name not in missing} == {"EPERM"}
        assert set(found["families"].values()) == {"EPERM"}
        assert found["status"]["Seccomp"] == "2"
        spaces = await run_toolkit(vm.ssh, "cat /proc/sys/user/max_user_namespaces")
        assert spaces.stdout == b"0\n"


async def test_the_debug_profile(guest_image: ImageSet) -> None:
    async with vmlab.cold_vm(guest_image, profile="debug") as vm:
        found = await probe(vm)
        holds_always(found)
        assert found["sysctls"] == SYSCTLS | {"kernel/yama/ptrace_scope": "1"}
        assert found["traces"] == {"child": "done", "other": "EPERM"}
