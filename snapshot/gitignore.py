"""Patterns of ignore files, matched in time that no pattern and no name can drive up.

Patterns come from the workspace and names from the agent. A regular expression tries every way to
share a name among the wildcards of a pattern: `**/a/**/a/**/a/**/b` takes minutes for one deep
path. But a wildcard that another one follows loses nothing by taking the first fit, because the
next one takes up whatever is left; so each such fit is final here (an atomic group).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, Final, cast

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_STAR: Final = "[^/]*"
"""What `*` becomes; no text of a pattern looks like it, for the slash cannot be in a class."""

_GAP: Final = "(?:/.+)?"
"""What `**` between two slashes becomes."""

_ANYWHERE: Final = "^(?:.+/)?"
"""What `**` at the beginning becomes, or a pattern without a slash."""


_QUOTED_OR_CLASS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)

_RESERVED: Final = re.compile(r"\\.|[\[&|~]", re.DOTALL)


class _Pattern(GitIgnoreSpecPattern):
    """A pattern whose expression is rewritten."""

    __slots__ = ()

    @classmethod
    def pattern_to_regex(cls, pattern: AnyStr) -> tuple[AnyStr | None, bool | None]:
        """Translate as the base class does, then make the fits final."""
        regex, include = super().pattern_to_regex(pattern)
        if isinstance(regex, str):
            return cast("Any", bounded(regex)), include
        return regex, include


def matcher(lines: Iterable[str]) -> GitIgnoreSpec:
    """Make a matcher of patterns. Raises ValueError for what is none."""
    return GitIgnoreSpec.from_lines(lines, _Pattern, backend="simple")


def bounded(regex: str) -> str:
    """Rewrite the expression of one pattern.

    It matches the same names, but that `[!x]` never takes a slash (as in git): the first fit is as
    good as any only while a part of a pattern stays in its part of the path.
    """
    regex = _QUOTED_OR_CLASS.sub(_within_part, regex)
    *first, last = map(_stars, regex.split(_GAP))
    if not first:
        return last
    head = first[0]
    if head.startswith(_ANYWHERE):
        head = f"^(?>(?:.+?/)??{head[len(_ANYWHERE) :]}(?=/))"
    return head + "".join(f"(?>(?:/.+?)??{part}(?=/))" for part in first[1:]) + _GAP + last


def _within_part(found: re.Match[str]) -> str:
    text = found[0]
    if not text.startswith("[") or text == "[^/]":
        return text
    # unquoted, Python warns of these in a class, for they may mean more one day
    text = "[" + _RESERVED.sub(_quoted, text[1:])
    return f"(?!/){text}" if text.startswith("[^") else text


def _quoted(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) == 2 else "\\" + found[0]


def _stars(part: str) -> str:
    head, *rest = part.split(_STAR)
    if len(rest) < 2:
        return part
    return head + "".join(f"(?>[^/]*?{text})" for text in rest[:-1]) + _STAR + rest[-1]
