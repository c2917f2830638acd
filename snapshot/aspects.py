"""What of a changed file is decided apart from its lines: name, mode, kind, content as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from blake3 import blake3

from .hunks import Aspect, AspectKind, unit_id
from .safe_text import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .review_sides import ChangedFile

FILE: Final = "100644"
EXECUTABLE: Final = "100755"
LINK: Final = "120000"
FOLDER: Final = "040000"

_TYPE_NAMES: Final = {FILE: "file", LINK: "link", FOLDER: "folder"}


def aspects_of(
    file: ChangedFile, base: bytes | None, agent: bytes | None, *, by_lines: bool
) -> tuple[Aspect, ...]:
    """Return a file's aspects: rename, the content where it has no lines, the executable bit.

    Args:
        file: what changed.
        base: content of the base side, None where there is none.
        agent: content of the agent's side, None where there is none.
        by_lines: whether the content is decided by lines.

    """
    return tuple(_aspects(file, base, agent, by_lines))


def _aspects(
    file: ChangedFile, base: bytes | None, agent: bytes | None, by_lines: bool
) -> Iterator[Aspect]:
    if file.old_path is not None:
        yield _named(file, "rename", f"{decode(file.old_path)} → {decode(file.path)}")
    kind = None if by_lines else _whole_kind(file, same=base == agent)
    if kind:
        label = _whole_label(file, kind, base, agent)
        yield _named(file, kind, label, _digest(base), _digest(agent))
    if _mode_changed(file):
        yield _named(file, "mode", f"{file.old_mode or FILE} → {file.mode}")


def _named(file: ChangedFile, kind: AspectKind, label: str, *contents: str) -> Aspect:
    parts = (kind, file.old_mode, file.mode, *contents)
    name = unit_id(file.path, file.old_path or b"", *(part.encode() for part in parts))
    return Aspect(name, kind, label)


def _whole_kind(file: ChangedFile, *, same: bool) -> AspectKind | None:
    """Return what is decided about the content at once; None where `same` content is none."""
    types = {_type(mode) for mode in (file.old_mode, file.mode) if mode}
    if same and file.old_mode and file.mode and len(types) == 1:
        return None
    if types == {LINK}:
        return "link"
    if not file.old_mode:
        return "creation"
    if not file.mode:
        return "deletion"
    return "type" if len(types) == 2 else "binary"


def _whole_label(
    file: ChangedFile, kind: AspectKind, base: bytes | None, agent: bytes | None
) -> str:
    if kind == "link":
        return f"{decode(base or b'') or '–'} → {decode(agent or b'') or '–'}"
    names = [_TYPE_NAMES.get(_type(m), m) for m in (file.old_mode, file.mode) if m]
    if kind == "type":
        return " → ".join(names)
    sizes = [len(side) for side in (base, agent) if side is not None]
    return f"{names[-1]}, " + " → ".join(f"{size} bytes" for size in sizes)


def _mode_changed(file: ChangedFile) -> bool:
    """Return whether the executable bit of a file changed (a new file starts without)."""
    if file.mode not in (FILE, EXECUTABLE) or file.old_mode in (LINK, FOLDER):
        return False
    return file.mode != (file.old_mode or FILE)


def _type(mode: str) -> str:
    """Return a mode without the executable bit."""
    return FILE if mode == EXECUTABLE else mode


def _digest(data: bytes | None) -> str:
    return "" if data is None else blake3(data).hexdigest()
