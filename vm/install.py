"""Where programs go that a line of shell installs, as in a recipe or for an agent."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "{prefix}"
"""Stands in such a line for the folder to install into."""

PROGRAMS: Final = "/programs"
"""That folder in an image; no package of the distribution has files in it."""

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What the guest's programs have where the image names no PATH."""
