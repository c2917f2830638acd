"""Checks of values in a configuration file; each refusal names file, line, column and the way out.

All raise AppError `bad-config`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from app.config_yaml import Document, Key

MAX_PATTERNS = 1000
"""Most texts of one list."""


def mapping(
    document: Document, key: Key, value: Any, allowed: Iterable[str] | None
) -> dict[str, Any]:
    """Return a mapping, of which only the `allowed` keys may be there (None: any)."""
    if not isinstance(value, dict):
        raise document.error(key, "here must stand a mapping (name: value)")
    found = cast("dict[str, Any]", value)
    known = tuple(allowed) if allowed is not None else tuple(found)
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean: {near[0]}" if near else f"Known here: {', '.join(known)}"
            raise document.error((*key, name), f"unknown key '{name}'", hint)
    return found


def flag(document: Document, key: Key, value: Any) -> bool:
    """Return a value that must be true or false."""
    if not isinstance(value, bool):
        raise document.error(key, f"'{key[-1]}' must be true or false")
    return value


def number(document: Document, key: Key, value: Any, least: int, greatest: int) -> int:
    """Return a whole number between two bounds, both included."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        raise document.error(key, f"'{key[-1]}' must be a whole number from {least} to {greatest}")
    return value


def choice(
    document: Document, key: Key, given: Mapping[str, Any], among: tuple[str, ...], default: str
) -> str:
    """Return one word of those that are known, or `default` where none is given."""
    value = given.get(str(key[-1]), default)
    if value not in among:
        raise document.error(key, f"'{key[-1]}' must be one of {', '.join(among)}")
    return str(value)


def texts(document: Document, key: Key, value: Any, *, one_line: bool = True) -> tuple[str, ...]:
    """Return a list of texts, of one line each unless said otherwise."""
    items: list[Any] | None = value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]
    if items is None or len(items) > MAX_PATTERNS:
        raise document.error(key, f"'{key[-1]}' must be a list of at most {MAX_PATTERNS} texts")
    for index, item in enumerate(items):
        if not isinstance(item, str) or not item or "\0" in item or (one_line and "\n" in item):
            form = "a text of one line" if one_line else "a text"
            raise document.error((*key, index), f"here must stand {form}")
    return tuple(items)
