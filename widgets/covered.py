"""Containers that paint nothing: their children cover them.

Textual paints the ground of every container of a region line by line, also where nothing of it can
be seen: of the review's three that is a seventh of a scroll step. Where a child leaves a gap the
screen's own ground shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.strip import Strip


class CoveredRow(Horizontal):
    """Children beside each other that leave no gap."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return nothing to paint."""
        return []


class CoveredColumn(Vertical):
    """Children below each other that leave no gap."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return nothing to paint."""
        return []
