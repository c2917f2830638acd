"""How far a long work is, told in short phrases."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done (a short phrase) and the share done so far, 0.0 to 1.0."""

_CHATTER = ("running --", "using ", "automatically ", "skipping ", "chroot architecture ",
            "done", "removing ", "success ")  # fmt: skip
"""Beginnings of mmdebstrap's messages that tell a user nothing."""


def stages(progress: Progress, start: float, width: float, steps: int) -> Callable[[str], None]:
    """Return a listener that turns mmdebstrap's messages into progress."""
    seen = 0

    def said(text: str) -> None:
        nonlocal seen
        if text.startswith(_CHATTER):
            return
        seen = min(seen + 1, steps)
        progress(text, start + width * seen / steps)

    return said
