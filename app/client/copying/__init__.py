"""Copies between the host and a session's guest: what `cloche cp` does, without a screen."""

from __future__ import annotations

from app.client.copying.into import check_source, copy_into
from app.client.copying.out import LOOK, copy_out, destination
from app.client.copying.report import AS_ROOT, LIMITS, CopyLimits, CopyReport, Progress

__all__ = [
    "AS_ROOT",
    "LIMITS",
    "LOOK",
    "CopyLimits",
    "CopyReport",
    "Progress",
    "check_source",
    "copy_into",
    "copy_out",
    "destination",
]
