"""Nothing gets out of the pane worker: tried from inside the real sandbox."""

from __future__ import annotations

import json
import platform
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.doubles.engines import cache_folder
from vm.terminal import landlock, sandbox, seccomp, wire

BOX = Path(__file__).resolve().parents[1] / "doubles" / "box.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("box")
    secret = folder / "secret"
    secret.write_text("a secret")
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, "-P", str(BOX), str(theirs.fileno()), str(cache_folder()),
             str(secret), str(folder / "s")],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
        )  # fmt: skip
        theirs.close()
        ours.settimeout(60)
        data = b""
        while piece := ours.recv(65536):
            data += piece
        _, errors = process.communicate(timeout=60)
    assert b"\n" in data, errors.decode()
    (hello,) = list(wire.MessageReader().feed(data[: data.index(b'{"tries"')]))
    assert wire.unpack_hello(hello.payload).seccomp
    assert secret.read_text() == "a secret"
    return cast("dict[str, str]", json.loads(data[data.index(b'{"tries"') :])["tries"])


TRIES = [
    "open home", "open secret", "open /proc", "create a file", "list a folder", "stat", "unlink",
    "unix socket", "tcp socket", "socketpair", "pipe", "fork", "thread", "exec",
    "signal the parent", "signal 0", "ptrace", "memfd", "executable memory", "set limits",
    "io_uring", "bpf", "userfaultfd", "pidfd_getfd", "process_vm_readv", "setuid", "chroot",
    "unshare", "ioctl", "fcntl",
]  # fmt: skip


@pytest.mark.parametrize("attempt", TRIES)
def test_code_in_the_sandbox_cannot(attempt: str, told: dict[str, str]) -> None:
    refusals = ("Operation not permitted", "RuntimeError: can't start new thread")
    assert told[attempt] in refusals, told[attempt]


def test_every_try_is_looked_at(told: dict[str, str]) -> None:
    assert set(told) == set(TRIES)


# -- the filter itself -----------------------------------------------------------------------


def run_filter(machine: seccomp.Machine, number: int, argument: int = 0, arch: int = 0) -> int:
    """What the kernel would do with a call: a small BPF machine, so every processor is tested."""
    data = struct.pack("<IIQ6Q", number, arch or machine.arch, 0, 0, 0, argument, 0, 0, 0)
    code = list(struct.iter_unpack("<HBBI", seccomp.build(machine)))
    place = register = 0
    while True:
        step, yes, no, value = code[place]
        place += 1
        if step == seccomp.RETURN:
            return int(value)
        if step == seccomp.LOAD:
            (register,) = struct.unpack_from("<I", data, value)
            continue
        hit = {
            seccomp.JUMP_EQUAL: register == value,
            seccomp.JUMP_GREATER: register > value,
            seccomp.JUMP_SET: bool(register & value),
        }[step]
        place += yes if hit else no


@pytest.mark.parametrize("machine", seccomp.MACHINES.values(), ids=list(seccomp.MACHINES))
def test_the_filter_allows_its_list_and_nothing_else(machine: seccomp.Machine) -> None:
    allowed = set(machine.calls.values())
    assert len(allowed) == len(machine.calls)
    for number in range(600):
        wanted = seccomp.ALLOW if number in allowed else seccomp.REFUSE
        assert run_filter(machine, number) == wanted, number


@pytest.mark.parametrize("machine", seccomp.MACHINES.values(), ids=list(seccomp.MACHINES))
@pytest.mark.parametrize("name", seccomp.NO_EXECUTABLE)
@pytest.mark.parametrize("protection", range(8))
def test_no_executable_memory(machine: seccomp.Machine, name: str, protection: int) -> None:
    wanted = seccomp.REFUSE if protection & seccomp.PROT_EXEC else seccomp.ALLOW
    assert run_filter(machine, machine.calls[name], protection) == wanted


def test_calls_in_another_processors_numbers_end_the_process() -> None:
    i386 = 0x40000003
    assert run_filter(seccomp.X86_64, 0, arch=i386) == seccomp.KILL
    assert run_filter(seccomp.X86_64, seccomp.X32_BIT) == seccomp.KILL
    assert run_filter(seccomp.X86_64, 0xFFFFFFFF) == seccomp.KILL


@pytest.mark.parametrize(
    "forbidden",
    ["open", "openat", "socket", "connect", "fork", "clone", "execve", "ptrace", "kill", "dup2"],
)
def test_the_lists_name_nothing_that_gets_out(forbidden: str) -> None:
    assert all(forbidden not in machine.calls for machine in seccomp.MACHINES.values())


@pytest.mark.parametrize(
    ("version", "size", "rights"),
    [(1, 8, 0x1FFF), (2, 8, 0x3FFF), (3, 8, 0x7FFF), (4, 16, 0x7FFF), (5, 16, 0xFFFF),
     (6, 24, 0xFFFF), (9, 24, 0xFFFF)],
)  # fmt: skip
def test_landlock_asks_for_what_each_version_knows(version: int, size: int, rights: int) -> None:
    data = landlock.attributes(version)
    assert len(data) == size
    assert struct.unpack_from("<Q", data)[0] == rights


# -- failing closed --------------------------------------------------------------------------


def in_a_child(program: str, *descriptors: int) -> subprocess.CompletedProcess[str]:
    root = Path(sandbox.__file__).resolve().parents[2]
    lines = [
        f"import sys; sys.path.insert(0, {str(root)!r})",
        "import os, socket",
        "from vm.terminal import landlock, sandbox, seccomp, worker, wire",
        program,
    ]
    return subprocess.run(
        [sys.executable, "-I", "-c", "\n".join(lines)],
        capture_output=True, text=True, timeout=60, check=False, pass_fds=descriptors,
    )  # fmt: skip


def test_without_seccomp_no_guest_is_read(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    done = in_a_child(
        "seccomp.install = lambda: False\n"
        f"os._exit(40 + worker.main([{str(theirs.fileno())!r}, {str(tmp_path)!r}]))\n",
        theirs.fileno(),
    )
    theirs.close()
    with ours:
        (message,) = list(wire.MessageReader().feed(ours.recv(65536)))
    assert done.returncode == 41, done.stderr
    assert message.kind == wire.Up.FATAL
    code, text, hint = wire.unpack_texts(message.payload, 3, 4096)
    assert code == "no-sandbox"
    assert "seccomp" in text
    assert hint


def test_without_landlock_seccomp_alone_holds() -> None:
    done = in_a_child(
        "landlock.restrict = lambda: 0\n"
        "a, b = socket.socketpair()\n"
        "held = sandbox.confine([b.fileno()], 10)\n"
        "assert (held.landlock, held.seccomp) == (0, True)\n"
        "try: os.open('/', 0)\n"
        "except PermissionError: os._exit(42)\n"
    )
    assert done.returncode == 42, done.stderr


def test_an_unknown_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(sandbox.NoSandbox) as caught:
        sandbox.confine([0], 10)
    assert "processor" in caught.value.message
    assert caught.value.hint


def test_only_what_is_kept_stays_open() -> None:
    done = in_a_child(
        "low, high = os.open('/', 0), os.dup2(os.open('/', 0), 200)\n"
        "kept, _ = socket.socketpair()\n"
        "sandbox._close_others([kept.fileno()])\n"
        "names = sorted(int(n) for n in os.listdir('/proc/self/fd'))\n"
        "listing = [n for n in names if os.path.lexists(f'/proc/self/fd/{n}')]\n"
        "assert listing == [0, 1, 2, kept.fileno()], listing\n"
        "assert all(os.readlink(f'/proc/self/fd/{n}') == '/dev/null' for n in (0, 1, 2))\n"
        "os._exit(43)\n"
    )
    assert done.returncode == 43, done.stderr


def test_the_worker_has_no_core_and_little_else() -> None:
    done = in_a_child(
        "import resource\n"
        "sandbox._limit(50)\n"
        "get = resource.getrlimit\n"
        "assert get(resource.RLIMIT_CORE) == (0, 0)\n"
        "assert get(resource.RLIMIT_NPROC) == (0, 0)\n"
        "assert get(resource.RLIMIT_FSIZE) == (0, 0)\n"
        "assert get(resource.RLIMIT_NOFILE) == (50, 50)\n"
        "assert get(resource.RLIMIT_AS)[1] <= sandbox.MEMORY\n"
        "os._exit(44)\n"
    )
    assert done.returncode == 44, done.stderr
