"""A seccomp filter that leaves a process computing, talking over sockets it has, and ending.

Everything else answers EPERM: opening files, making sockets, connecting, forking, executing,
tracing, signalling, mapping executable memory. The filter is classic BPF, built here and installed
with `prctl`, so no library is needed. x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from typing import NamedTuple

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS = 38

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE = 0x00050000 | errno.EPERM
"""SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO with EPERM."""

LOAD, JUMP_EQUAL, JUMP_SET, JUMP_GREATER, RETURN = 0x20, 0x15, 0x45, 0x25, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_JMP|JGT|K, BPF_RET|K."""

OFFSET_NUMBER, OFFSET_ARCH, OFFSET_ARG2 = 0, 4, 32
"""Offsets in `struct seccomp_data`; the third argument's low half (both machines are little)."""

PROT_EXEC = 4
X32_BIT = 0x40000000
"""Numbers from here on are x32 calls on x86_64: other numbers for the same things."""


class Machine(NamedTuple):
    """What one processor calls things."""

    arch: int
    """AUDIT_ARCH_…"""
    calls: dict[str, int]


X86_64 = Machine(
    0xC000003E,
    {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9,
        "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
        "rt_sigreturn": 15, "readv": 19, "writev": 20, "sched_yield": 24, "mremap": 25,
        "madvise": 28, "nanosleep": 35, "getpid": 39, "sendmsg": 46, "recvmsg": 47,
        "recvfrom": 45, "sendto": 44, "shutdown": 48, "getsockopt": 55, "exit": 60,
        "gettimeofday": 96, "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219,
        "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232,
        "epoll_ctl": 233, "ppoll": 271, "epoll_pwait": 281, "getrandom": 318, "membarrier": 324,
        "rseq": 334, "epoll_pwait2": 441,
    },
)  # fmt: skip

AARCH64 = Machine(
    0xC00000B7,
    {
        "epoll_ctl": 21, "epoll_pwait": 22, "close": 57, "lseek": 62, "read": 63, "write": 64,
        "readv": 65, "writev": 66, "ppoll": 73, "fstat": 80, "exit": 93, "exit_group": 94,
        "futex": 98, "nanosleep": 101, "clock_gettime": 113, "clock_nanosleep": 115,
        "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172,
        "gettid": 178, "sendto": 206, "recvfrom": 207, "getsockopt": 209, "shutdown": 210,
        "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278, "membarrier": 283, "rseq": 293,
        "epoll_pwait2": 441,
    },
)  # fmt: skip

MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}

NO_EXECUTABLE = ("mmap", "mprotect")
"""Calls that are refused when they ask for executable memory (third argument)."""


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def build(machine: Machine) -> bytes:
    """Return the filter as BPF instructions of eight bytes each."""
    steps = [
        _step(LOAD, OFFSET_ARCH),
        _step(JUMP_EQUAL, machine.arch, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, OFFSET_NUMBER),
        _step(JUMP_GREATER, X32_BIT - 1, 0, 1),
        _step(RETURN, KILL),
    ]
    for name, number in machine.calls.items():
        if name in NO_EXECUTABLE:
            steps += [
                _step(JUMP_EQUAL, number, 0, 4),
                _step(LOAD, OFFSET_ARG2),
                _step(JUMP_SET, PROT_EXEC, 0, 1),
                _step(RETURN, REFUSE),
                _step(RETURN, ALLOW),
            ]
        else:
            steps += [_step(JUMP_EQUAL, number, 0, 1), _step(RETURN, ALLOW)]
    return b"".join([*steps, _step(RETURN, REFUSE)])


def supported() -> bool:
    """Tell whether there is a filter for this processor and system."""
    return sys.platform == "linux" and platform.machine() in MACHINES


def libc() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def no_new_privileges() -> bool:
    """Give up gaining privileges by exec, for good; a filter needs that. Tell whether it holds."""
    return int(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) == 0


def install() -> bool:
    """Install the filter for this process, for good. Tell whether it holds.

    `no_new_privileges` must have been called.
    """
    if not supported():
        return False
    code = build(MACHINES[platform.machine()])
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(kept))
    done = libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)
    return int(done) == 0
