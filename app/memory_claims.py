"""Who has memory of this host for a machine, who waits for some, and whether one more fits. Pure.

What counts is the memory that a machine was promised, not what it has touched so far: a guest may
use all of it at any moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from app.errors import AppError
from app.records import Process  # noqa: TC001 - msgspec reads the annotation

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE: Final = 80
"""Percent of the available memory that all machines may be promised together."""

MAX_WAITING: Final = 64
"""How many may wait at once; one more is refused."""


class Claim(msgspec.Struct, frozen=True):
    """What one session's machine was promised, or waits for."""

    session: str
    memory: int
    """MiB."""
    keeper: Process
    since: float
    """When it was asked for, in seconds since the host was booted: who came first goes first."""
    granted: bool = False
    machine: Process | None = None
    """QEMU, once it runs; the claim is good for as long as that lives."""


class Outlook(NamedTuple):
    """How things are for one claim."""

    free: int
    """MiB that it could have now."""
    ahead: int
    """How many wait before it."""


def budget(available: int, resident: int, pool: int) -> int:
    """Return the MiB that may be promised in all.

    `available` and `resident` are bytes: what the host can still give, and what the machines that
    run hold of it already. `pool` is the user's own limit in MiB, 0 for none.
    """
    share = (available + resident) * SHARE // 100 >> 20
    return min(share, pool) if pool else share


def ceiling(total: int, pool: int) -> int:
    """Return the MiB that a single machine can ever have on a host with `total` bytes."""
    return budget(total, 0, pool)


def outlook(mine: Claim, others: Sequence[Claim], whole: int) -> Outlook:
    """Return what is left for `mine` of `whole` MiB.

    Those who came before it go first, or a large machine would wait for ever beside small ones;
    but nobody waits behind one that would not fit if it were alone.
    """
    taken = sum(other.memory for other in others if other.granted)
    ahead = [
        other
        for other in others
        if not other.granted and _turn(other) < _turn(mine) and other.memory <= whole
    ]
    return Outlook(max(0, whole - taken - sum(other.memory for other in ahead)), len(ahead))


def _turn(claim: Claim) -> tuple[float, str]:
    return claim.since, claim.session


def words(needed: int, found: Outlook) -> str:
    """Return what a session that waits says of itself."""
    line = f"Waits for memory: {found.free} MiB free of {needed} needed"
    others = {0: "", 1: ", 1 session waits before it"}
    return line + others.get(found.ahead, f", {found.ahead} sessions wait before it") + "."


def too_little(needed: int, found: Outlook, waited_s: float = 0.0) -> AppError:
    """Return the error of a machine for which there is too little memory now."""
    since = f" It was waited for {waited_s:g} s." if waited_s else ""
    return AppError(
        "no-memory",
        f"The machine needs {needed} MiB, and {found.free} MiB are left for it "
        f"(sessions share {SHARE} % of the memory that is available).{since}",
        "Stop a session (cloche ps), or wait until one has ended: --queue",
    )


def too_large(needed: int, highest: int, pool: int) -> AppError:
    """Return the error of a machine that this host can never hold."""
    why = "'pool' in config.yaml" if highest == pool else f"{SHARE} % of this host's memory"
    return AppError(
        "no-memory",
        f"The machine needs {needed} MiB, and a session can have {highest} ({why}).",
        f"Give new sessions less, in config.yaml: 'defaults: {{memory: {highest}}}'",
    )
