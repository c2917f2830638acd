"""Copies between the host and a session's guest: what `cloche cp` does, without a screen."""

from __future__ import annotations

from app.client.copying.into import check_source, copy_into
from app.client.copying.out import copy_out, destination
from app.client.copying.report import CopyReport, Progress

__all__ = ["CopyReport", "Progress", "check_source", "copy_into", "copy_out", "destination"]
