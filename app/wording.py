"""Numbers with their nouns, as people write them."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """Return a regular noun in the form that goes with a number: file, files."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """Return a number and a regular noun in the form that goes with it: 1 file, 2,000 files."""
    return f"{count:,} {plural(count, noun)}"


def times(count: int) -> str:
    """Return how often something was: once, 2 times."""
    return "once" if count == 1 else f"{count:,} times"
