"""Copies between the host and a session's guest: what `cloche cp` does, without a screen."""

from __future__ import annotations

from app.client.copying.into import copy_into
from app.client.copying.out import copy_out
from app.client.copying.report import CopyReport, Progress

__all__ = ["CopyReport", "Progress", "copy_into", "copy_out"]
