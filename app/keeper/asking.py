"""Which changed paths a user's words mean: a literal path first, a gitignore pattern second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Iterable


def matches(text: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that `text` means, in their order; a rename goes by its new path."""
    known = list(paths)
    literal = text.removeprefix("./")
    if literal in known:
        return [literal]
    try:
        spec = GitIgnoreSpec.from_lines([text])
    except ValueError as error:
        raise AppError("usage", f"'{text}' is neither a path nor a pattern: {error}.") from error
    return [path for path in known if spec.match_file(path)]
