"""Syntax colours for a window of lines, exact and resumable.

Lexing starts at the nearest checkpoint above the window: a place at the start of a line together
with the lexer's stack of states. So a window deep in a file costs milliseconds and still is token
for token what lexing the whole file gives (starting with an empty stack would not be).

Pure functions on text; the values are plain and pass to a worker process and back. The driver
reads `RegexLexer._tokens`, which is why pygments' minor version is pinned and each lexer in use has
a test of equality.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.token import Error, Token, Whitespace

from .safe_text import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_TEXT: Final = 1 << 20
"""Characters of a side above which it stays plain."""

MAX_LINE: Final = 5000
"""Characters of its longest line above which a side stays plain (minified code)."""

MAX_WHOLE: Final = 300_000
"""Characters above which a lexer that cannot resume is not asked."""

_EVERY: Final = 8000
"""Characters between checkpoints, about 200 lines."""

_HEAD: Final = 4096
"""Characters that decide between lexers of one file name."""

_PLAIN: Final = frozenset({"", "Text", "Text.Whitespace"})


TokenType = type(Token)
"""The class of all token types; pygments gives it no public name."""


class Span(NamedTuple):
    """A range of one line and the name of its token, such as `Name.Function`."""

    start: int
    end: int
    token: str


class Checkpoint(NamedTuple):
    """A place where lexing can go on: offset of a line's start and the lexer's states there."""

    offset: int
    stack: tuple[str, ...]


class Window(NamedTuple):
    """Spans of lines `first:last`, and all checkpoints known now (hand them back next time)."""

    first: int
    lines: list[list[Span]]
    checkpoints: tuple[Checkpoint, ...]


START: Final = (Checkpoint(0, ("root",)),)
"""Checkpoints of a text that was not lexed yet."""


def lexer_for(path: bytes, text: str) -> str:
    """Return the lexer's name for a file, "" where it is to stay plain.

    The name alone decides; where several lexers claim it, the text's head does.
    """
    if len(text) > MAX_TEXT or _longest_line(text) > MAX_LINE:
        return ""
    name = decode(path).rpartition("/")[2]
    try:
        found = find_lexer_class_for_filename(name, text[:_HEAD])
    except Exception:  # lexers guess from hostile text; one that fails must only cost colours
        return ""
    if found is None or not found.aliases:
        return ""
    return found.aliases[0] if is_resumable(found) or len(text) <= MAX_WHOLE else ""


def _longest_line(text: str) -> int:
    return max((len(line) for line in text.split("\n")), default=0)


def is_resumable(lexer: type[Lexer]) -> bool:
    """Return whether a lexer is nothing but the plain state machine that can be resumed."""
    own = lexer.get_tokens_unprocessed
    return issubclass(lexer, RegexLexer) and own is RegexLexer.get_tokens_unprocessed


def highlight(text: str, lexer: str) -> list[list[Span]]:
    """Return the spans of all lines of a text."""
    return highlight_window(text, lexer, 0, text.count("\n") + 1).lines


def highlight_window(
    text: str,
    lexer: str,
    first: int,
    last: int,
    checkpoints: Sequence[Checkpoint] = START,
) -> Window:
    """Return the spans of lines `first:last` (0-based, split at LF).

    Args:
        text: the whole side.
        lexer: a name from `lexer_for`; "" gives no spans.
        first: first line of the window.
        last: line after its last one.
        checkpoints: those of an earlier window of the same text.

    """
    starts = line_starts(text)
    first, last = max(0, first), max(first, min(last, len(starts)))
    known = tuple(checkpoints) or START
    if not lexer or first >= last:
        return Window(first, [[] for _ in range(first, last)], known)
    end = starts[last] if last < len(starts) else len(text)
    try:
        spans, known = _spans(_lexer(lexer), text, starts[first], end, known)
    except Exception:  # lexers run on hostile text; one that fails must only cost colours
        return Window(first, [[] for _ in range(first, last)], known)
    return Window(first, _by_line(spans, starts, first, last, end), known)


@lru_cache(4)
def line_starts(text: str) -> tuple[int, ...]:
    """Return the offset of every line's first character; remembered for the last few texts."""
    lengths = (len(line) + 1 for line in text.split("\n"))
    return (0, *accumulate(lengths))[:-1]


@lru_cache(64)
def _lexer(name: str) -> Lexer:
    return find_lexer_class_by_name(name)()


@lru_cache(1024)
def _token_name(token: Any) -> str:
    """Return a token's name without the common root."""
    return ".".join(token)


def _spans(
    lexer: Lexer, text: str, start: int, end: int, known: tuple[Checkpoint, ...]
) -> tuple[list[Span], tuple[Checkpoint, ...]]:
    """Return the spans that touch `start:end`, by offset in the text, and the checkpoints."""
    if not is_resumable(type(lexer)):
        tokens = lexer.get_tokens_unprocessed(text)
        whole = ((at, at + len(value), token) for at, token, value in tokens)
        return _within(whole, start, end), known
    at = bisect_right([point.offset for point in known], start) - 1
    found: list[Checkpoint] = []
    driven = _drive(cast("RegexLexer", lexer), text, known[at], end, found)
    spans = _within(driven, start, end)
    return spans, _joined(known, found)


def _within(tokens: Iterator[tuple[int, int, Any]], start: int, end: int) -> list[Span]:
    named = ((at, stop, _token_name(token)) for at, stop, token in tokens)
    return [
        Span(at, stop, name)
        for at, stop, name in named
        if at < end and stop > start and stop > at and name not in _PLAIN
    ]


def _joined(known: tuple[Checkpoint, ...], found: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Add checkpoints that lie beyond those that are known."""
    last = known[-1].offset
    return (*known, *(point for point in found if point.offset >= last + _EVERY))


def _by_line(
    spans: Sequence[Span], starts: Sequence[int], first: int, last: int, end: int
) -> list[list[Span]]:
    """Cut spans at line ends and put them to their lines, relative to the line's start."""
    lines: list[list[Span]] = [[] for _ in range(first, last)]
    for span in spans:
        number = max(bisect_right(starts, span.start) - 1, first)
        while number < last and starts[number] < span.end:
            begin = starts[number]
            stop = (starts[number + 1] - 1) if number + 1 < len(starts) else end
            left, right = max(span.start, begin), min(span.end, stop)
            if left < right:
                lines[number - first].append(Span(left - begin, right - begin, span.token))
            number += 1
    return lines


def _drive(
    lexer: RegexLexer, text: str, start: Checkpoint, end: int, found: list[Checkpoint]
) -> Iterator[tuple[int, int, Any]]:
    """Run the lexer's state machine from a checkpoint until `end` and note new checkpoints."""
    rules_of: dict[str, list[Any]] = cast("Any", lexer)._tokens
    at, stack, due = start.offset, list(start.stack), start.offset + _EVERY
    rules = rules_of[stack[-1]]
    while at < end:
        if at >= due and text[at - 1] == "\n":
            found.append(Checkpoint(at, tuple(stack)))
            due = at + _EVERY
        for match_at, action, change in rules:
            match = match_at(text, at)
            if match:
                yield from _tokens(lexer, action, match)
                at = match.end()
                if change is not None:
                    _change(stack, change)
                    rules = rules_of[stack[-1]]
                break
        else:
            token = Error
            if text[at] == "\n":
                stack, rules, token = ["root"], rules_of["root"], Whitespace
            yield at, at + 1, token
            at += 1


def _tokens(lexer: RegexLexer, action: Any, match: Any) -> Iterator[tuple[int, int, Any]]:
    """Yield the tokens of one matched rule."""
    if action is None:
        return
    if type(action) is TokenType:
        yield match.start(), match.end(), action
        return
    for at, token, value in action(lexer, match):
        yield at, at + len(value), token or Token


def _change(stack: list[str], change: int | str | tuple[str, ...]) -> None:
    """Apply a rule's change of states; the last state always stays."""
    if isinstance(change, int):
        del stack[max(1, len(stack) + change) :]
        return
    for state in change if isinstance(change, tuple) else (change,):
        if state == "#push":
            stack.append(stack[-1])
        elif state != "#pop":
            stack.append(state)
        elif len(stack) > 1:
            stack.pop()
