"""The workstation: one Textual application over all sessions of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths


def run_workstation(workspace: Path, *, paths: Paths | None = None) -> int:
    """Open the workstation on `workspace` and return its exit status when the user leaves.

    Sessions go on when it ends. `paths` defaults to those of the environment.
    """
    raise NotImplementedError
