"""Differences inside of lines, and which old line stands beside which new one."""

from __future__ import annotations

Marked = tuple[tuple[int, int], ...]
"""Half-open character ranges of one line, ascending."""
