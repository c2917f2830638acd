"""Patch export in git's dialect, and the check that an export says what it must.

A patch is made from base and result, never the other way round: decisions work on lines, text is
for people and for `git apply`. Binary contents and empty folders cannot be said in it; each gets a
line of its own before the patch proper, where `git apply` looks for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .aspects import FOLDER
from .diff import Block, diff
from .errors import StoreDamaged
from .hunks import CONTEXT
from .lines import is_binary, split_plain
from .safe_text import safe_name
from .slider import slide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .decisions import Decisions
    from .review_file import FileReview

_NO_NEWLINE: Final = b"\n\\ No newline at end of file\n"
_ESCAPES: Final = {
    0x07: b"\\a", 0x08: b"\\b", 0x09: b"\\t", 0x0A: b"\\n", 0x0B: b"\\v", 0x0C: b"\\f",
    0x0D: b"\\r", 0x22: b'\\"', 0x5C: b"\\\\",
}  # fmt: skip


class _Version(NamedTuple):
    """One side of an entry of a patch; an empty mode says that it is not there."""

    path: bytes
    mode: str
    content: bytes


class PatchFacts(NamedTuple):
    """What a patch says, counted by an independent parser."""

    files: int
    added: int
    removed: int


def export_patch(
    reviews: Iterable[FileReview], decisions: Decisions, context: int = CONTEXT
) -> bytes:
    """Return a patch from the base to the base with what was accepted."""
    return b"".join(piece for review in reviews for piece in _file(review, decisions, context))


def _file(review: FileReview, decisions: Decisions, context: int) -> Iterator[bytes]:
    """Yield one file's part of the patch."""
    result = review.result(decisions)
    if result is None:
        return
    file = review.file
    old = _Version(file.old_path or file.path, file.old_mode, review.base or b"")
    new = _Version(result.path or old.path, result.mode, result.content)
    modes = (old.mode, new.mode)
    if FOLDER in modes or any(is_binary(side.content) for side in (old, new)):
        what = "a folder" if FOLDER in modes else "binary"
        yield f"# not in this patch, for it is {what}: ".encode()
        yield safe_name(file.path).text.encode() + b"\n"
    elif old.mode and new.mode and old.mode[:3] != new.mode[:3]:
        # git says a change of type as a removal and a creation.
        yield from _entry(old, _Version(old.path, "", b""), context)
        yield from _entry(_Version(new.path, "", b""), new, context)
    else:
        yield from _entry(old, new, context)


def _entry(old: _Version, new: _Version, context: int) -> Iterator[bytes]:
    """Yield header and hunks of one entry; nothing if both sides are the same."""
    if old == new:
        return
    yield b"diff --git " + quoted(b"a/" + old.path) + b" " + quoted(b"b/" + new.path) + b"\n"
    yield from _mode_lines(old, new)
    if old.mode and new.mode and old.path != new.path:
        yield b"rename from " + quoted(old.path) + b"\nrename to " + quoted(new.path) + b"\n"
    if old.content != new.content:
        yield b"--- " + (_name(b"a/" + old.path) if old.mode else b"/dev/null") + b"\n"
        yield b"+++ " + (_name(b"b/" + new.path) if new.mode else b"/dev/null") + b"\n"
        yield from _hunks(split_plain(old.content), split_plain(new.content), context)


def _mode_lines(old: _Version, new: _Version) -> Iterator[bytes]:
    if not old.mode:
        yield f"new file mode {new.mode}\n".encode()
    elif not new.mode:
        yield f"deleted file mode {old.mode}\n".encode()
    elif old.mode != new.mode:
        yield f"old mode {old.mode}\nnew mode {new.mode}\n".encode()


def quoted(name: bytes) -> bytes:
    """Return a name as git writes it: in C quotes where a byte could mislead a reader.

    Names with ` b/` in them are quoted as well, their blanks in octal, though git would not do so:
    in a `diff --git` line nobody could tell where the first name ends.
    """
    plain = all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in name)
    if plain and b" b/" not in name:
        return name
    return b'"' + b"".join(_escaped(byte) for byte in name).replace(b" b/", b"\\040b/") + b'"'


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return bytes((byte,)) if 0x20 <= byte < 0x7F else b"\\%03o" % byte


def _name(name: bytes) -> bytes:
    """Return a name for a `---` or `+++` line: a tab ends one that holds blanks."""
    written = quoted(name)
    return written + b"\t" if b" " in name and written == name else written


def _hunks(old: Sequence[bytes], new: Sequence[bytes], context: int) -> Iterator[bytes]:
    """Yield the hunks between two versions."""
    group: list[Block] = []
    for block in slide(diff(old, new), old, new):
        if group and block.old_start - group[-1].old_end > 2 * context:
            yield from _hunk(group, old, new, context)
            group = []
        group.append(block)
    if group:
        yield from _hunk(group, old, new, context)


def _hunk(
    group: Sequence[Block], old: Sequence[bytes], new: Sequence[bytes], context: int
) -> Iterator[bytes]:
    """Yield one hunk with its header."""
    above = min(context, group[0].old_start)
    below = min(context, len(old) - group[-1].old_end)
    start, end = group[0].old_start - above, group[-1].old_end + below
    new_start, new_end = group[0].new_start - above, group[-1].new_end + below
    yield b"@@ -%b +%b @@\n" % (_range(start, end), _range(new_start, new_end))
    at = start
    for block in group:
        yield from (_line(b" ", line) for line in old[at : block.old_start])
        yield from (_line(b"-", line) for line in old[block.old_start : block.old_end])
        yield from (_line(b"+", line) for line in new[block.new_start : block.new_end])
        at = block.old_end
    yield from (_line(b" ", line) for line in old[at:end])


def _range(start: int, end: int) -> bytes:
    """Return a side's place; an empty one names the line before it."""
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + _NO_NEWLINE


def read_elsewhere(patch: bytes) -> PatchFacts | None:
    """Return what `unidiff` reads in a patch; None when it cannot."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        parsed = PatchSet.from_string(patch.decode("utf-8", "surrogateescape"))
    except UnidiffParseError:
        return None
    return PatchFacts(len(parsed), parsed.added, parsed.removed)


def check_export(patch: bytes) -> PatchFacts:
    """Parse a patch with `unidiff` and count what it says.

    Names and "added"/"removed" are not taken from that parser: it does not decode quoted names and
    takes an emptied file for a removed one.

    Raises:
        StoreDamaged: it cannot be parsed, or parts of it would be lost.

    """
    facts = read_elsewhere(patch)
    if facts is None:
        raise StoreDamaged(
            "The exported patch cannot be parsed.", "Export single files to find the cause."
        )
    if facts != _written(patch):
        raise StoreDamaged(
            "The exported patch reads otherwise than it was written.",
            "Export single files to find the cause.",
        )
    return facts


def _written(patch: bytes) -> PatchFacts:
    """Count entries and lines by walking the hunks as their headers say."""
    files = added = removed = old_left = new_left = 0
    for line in split_plain(patch):
        if old_left > 0 or new_left > 0:
            mark = line[:1]
            added += mark == b"+"
            removed += mark == b"-"
            old_left -= mark in (b"-", b" ")
            new_left -= mark in (b"+", b" ")
        elif line.startswith(b"diff --git "):
            files += 1
        elif line.startswith(b"@@ "):
            old_left, new_left = (_count(part) for part in line.split()[1:3])
    return PatchFacts(files, added, removed)


def _count(part: bytes) -> int:
    return int(part.partition(b",")[2])
