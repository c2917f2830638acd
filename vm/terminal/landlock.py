"""Landlock: a kernel rule set that takes the file system (and TCP) from a process.

No rule is added, so everything that the set handles is denied. What one version of Landlock cannot
handle yet is left out; seccomp denies it anyway.
"""

from __future__ import annotations

import ctypes
import struct

from vm.terminal.seccomp import libc

CREATE_RULESET, RESTRICT_SELF = 444, 446
"""System call numbers, the same on every processor."""

ASK_VERSION = 1
"""LANDLOCK_CREATE_RULESET_VERSION."""

FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""File system rights that each version brought: all of 1; refer; truncate; ioctl on devices."""

NET_VERSION, NET_RIGHTS = 4, 3
"""TCP bind and connect."""

SCOPE_VERSION, SCOPES = 6, 3
"""Abstract Unix sockets and signals beyond the process's own domain."""


def version() -> int:
    """Return the version of Landlock that the kernel has, 0 without."""
    found = libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)
    return max(0, int(found))


def attributes(at: int) -> bytes:
    """Return `struct landlock_ruleset_attr` for a kernel of version `at`."""
    rights = max(rights for brought, rights in FILE_RIGHTS.items() if brought <= at)
    data = struct.pack("<Q", rights)
    if at >= NET_VERSION:
        data += struct.pack("<Q", NET_RIGHTS)
    if at >= SCOPE_VERSION:
        data += struct.pack("<Q", SCOPES)
    return data


def restrict() -> int:
    """Deny all that can be denied, for good; return the version that holds, 0 when none does.

    `seccomp.no_new_privileges` must have been called.
    """
    at = version()
    if not at:
        return 0
    data = attributes(at)
    kept = ctypes.create_string_buffer(data, len(data))
    call = libc().syscall
    rules = int(call(CREATE_RULESET, kept, ctypes.c_size_t(len(data)), 0))
    if rules < 0:
        return 0
    try:
        return at if call(RESTRICT_SELF, rules, 0) == 0 else 0
    finally:
        _close(rules)


def _close(descriptor: int) -> None:
    libc().close(descriptor)
