"""Build an image: kernel, modules, toolkit initramfs and base system, placed in one rename."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.store import ImageSet

Progress = Callable[[str, float], None]
"""Called with what is being done (a short phrase) and the share done so far, 0.0 to 1.0."""


def build_image(
    store: Path, *, name: str = "base", progress: Progress, force: bool = False
) -> ImageSet:
    """Build the image called `name` into `store`, or return it at once when it is there.

    One builder at a time works on a store; a second one waits for it. An interrupted build leaves
    nothing behind that a later one would take for an image.

    Raises HostLacks (a program or permission is missing; the hint installs it) and VMError (the
    build itself failed, or the disk is full).
    """
    raise NotImplementedError
