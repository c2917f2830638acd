"""A state home of its own and a workspace of one small file, for benchmarks of whole sessions."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from app.paths import Paths
from tests.e2e.sessions import World

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def quiet_world() -> Generator[tuple[World, Path]]:
    """Make both, on the images of whoever measures; yield the world and the workspace."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "project"
        project.mkdir()
        (project / "a.txt").write_text("quiet\n")
        world = World(Path(name) / "w", Paths.from_environment().store)
        try:
            yield world, project
        finally:
            world.close()
