"""What the pane worker gives up before a guest's first byte reaches the engine.

The engine is native code without memory safety, so the process around it is a box: no files, no new
sockets, no processes, no executable memory, no core dumps, a bound on memory. It keeps its link to
the screen and the connections that the screen hands it. Each worker serves one guest unless the
screen shares it, so what a guest could reach through a broken engine is its own terminal.

Seccomp must hold: Landlock alone stops neither forks nor sockets. Landlock comes on top where the
kernel has it.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vm.errors import HostLacks
from vm.terminal import landlock, seccomp

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY = 1 << 30
"""Address space in bytes. A worker of one pane has 40 MB; 120x40 cells with a colour, a link and
twenty accents each, all different, in copy mode, come to 100 MB, and 1000x500 of them to 730 MB."""

PR_SET_DUMPABLE = 4


class NoSandbox(HostLacks):
    """The kernel cannot confine the terminal engine, so the engine is not run."""

    code = "no-sandbox"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The terminal engine cannot be confined on this host: {why}.",
            "Use a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
        )


@dataclass(frozen=True, slots=True)
class Confinement:
    """What holds now."""

    landlock: int
    """Version of Landlock, 0 when the kernel has none."""
    seccomp: bool


def confine(keep: Iterable[int], descriptors: int) -> Confinement:
    """Close the box around this process, for good.

    `keep` are the descriptors that stay open; `descriptors` bounds how many may be open later.
    Raises NoSandbox when seccomp does not hold; nothing of a guest may be read then.
    """
    if not seccomp.supported():
        raise NoSandbox("there is no filter for this processor")
    _close_others(keep)
    _limit(descriptors)
    if not seccomp.no_new_privileges():
        raise NoSandbox("the kernel refuses no_new_privs")
    seccomp.libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    held = landlock.restrict()
    if not seccomp.install():
        raise NoSandbox("the kernel refuses the seccomp filter")
    return Confinement(held, True)


def _close_others(keep: Iterable[int]) -> None:
    """Leave the null device as 0, 1, 2 (nothing that a library prints gets out) and `keep`."""
    kept = sorted(keep)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        if standard not in kept:
            os.dup2(null, standard)
    first = 3
    for descriptor in kept:
        os.closerange(first, descriptor)
        first = max(first, descriptor + 1)
    os.closerange(first, max(os.sysconf("SC_OPEN_MAX"), first))


def _limit(descriptors: int) -> None:
    for what, value in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_NOFILE, descriptors),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(what)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (bound, bound))
