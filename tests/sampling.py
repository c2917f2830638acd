"""How much the dear tests take: everything with `CLOCHE_FULL=1`, else the sample that CI takes."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("CLOCHE_FULL"))
"""Whether every step, seed and example is taken."""


def sampled(whole: int, some: int) -> int:
    """Return how many: the `whole`, or in CI `some`."""
    return whole if FULL else some
