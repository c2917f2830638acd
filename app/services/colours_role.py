"""The child that finds syntax colours: text in, spans out, nothing else.

Started as `cloche.py _role colours` in `/` with a clean environment. Lexers are regular expressions
that run on text which an agent wrote, so they get a process of their own: it may be slow, or be
killed, and the screen goes on. Both directions carry frames of a 4-byte little-endian length and a
msgpack body.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import select
import struct
import sys
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from snapshot.highlight import START, highlight_window, lexer_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snapshot.highlight import Checkpoint, Span

MAX_FRAME = 16 << 20
"""Longest frame in bytes; a side is plain above 1 MiB anyway."""

WINDOW = 400
"""Lines that one answer covers."""

MEMORY = 1 << 30
"""Address space of the child in bytes."""

HEADER = struct.Struct("<I")

KINDS = (
    ("Comment", "comment"),
    ("Keyword.Constant", "number"),
    ("Keyword.Type", "builtin"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Operator", "operator"),
    ("Name.Function", "function"),
    ("Name.Class", "class"),
    ("Name.Exception", "class"),
    ("Name.Namespace", "class"),
    ("Name.Builtin", "builtin"),
    ("Name.Decorator", "decorator"),
    ("Name.Tag", "tag"),
    ("Name.Attribute", "function"),
    ("Name.Constant", "number"),
    ("Name.Variable", "variable"),
    ("Literal.String.Interpol", "operator"),
    ("Literal.String.Escape", "operator"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Generic.Heading", "heading"),
    ("Generic.Subheading", "heading"),
    ("Generic.Strong", "class"),
    ("Generic.Emph", "string"),
)
"""Which colour a token has: the first entry that is the token or one of its parents."""

COLOURS = tuple(dict.fromkeys(kind for _, kind in KINDS))
"""Names of the colours, by the numbers that answers carry."""


class Request(msgspec.Struct, frozen=True):
    """A text to colour."""

    id: int
    name: bytes
    text: str


class Answer(msgspec.Struct, frozen=True):
    """Spans of some lines: for each line start, end and number of the colour, flat."""

    id: int
    """That of the request."""
    first: int
    lines: list[list[int]]
    last: bool = False
    """No more answers follow for this text."""


def colour_of(token: str) -> int:
    """Return the number of a token's colour, −1 where it has none."""
    for name, kind in KINDS:
        if token == name or token.startswith(f"{name}."):
            return COLOURS.index(kind)
    return -1


def flat(spans: Sequence[Span]) -> list[int]:
    """Return a line's spans as numbers; neighbours of the same colour are joined."""
    found: list[int] = []
    for span in spans:
        colour = colour_of(span.token)
        if colour < 0:
            continue
        if found and found[-1] == colour and found[-2] == span.start:
            found[-2] = span.end
        else:
            found += [span.start, span.end, colour]
    return found


def answers(request: Request) -> Iterator[Answer]:
    """Yield the spans of a text from its first line on."""
    lexer = lexer_for(request.name, request.text)
    count = request.text.count("\n") + 1
    if not lexer:
        yield Answer(request.id, 0, [], last=True)
        return
    points: Sequence[Checkpoint] = START
    for first in itertools.count(0, WINDOW):
        window = highlight_window(request.text, lexer, first, first + WINDOW, points)
        points = window.checkpoints
        last = first + WINDOW >= count
        yield Answer(request.id, first, [flat(line) for line in window.lines], last)
        if last:
            return


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return one body, None at the end of the stream or when a length is out of bounds."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def write_frame(stream: BinaryIO, value: msgspec.Struct) -> None:
    """Write one value."""
    body = msgspec.msgpack.encode(value)
    stream.write(HEADER.pack(len(body)) + body)
    stream.flush()


def run(_argv: Sequence[str]) -> int:
    """Answer requests on standard input until it ends."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    decoder = msgspec.msgpack.Decoder(Request)
    with contextlib.suppress(BrokenPipeError):
        while (body := read_frame(sys.stdin.buffer)) is not None:
            for answer in answers(decoder.decode(body)):
                write_frame(sys.stdout.buffer, answer)
                if not answer.last and something_waits():
                    break
    return 0


def something_waits() -> bool:
    """Tell whether another text is asked for; nobody wants the rest of this one then."""
    return bool(select.select([sys.stdin.buffer], [], [], 0)[0])
