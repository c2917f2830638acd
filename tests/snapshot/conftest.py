"""Property tests run on busy machines: a slow example is no failure, a wrong one is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
