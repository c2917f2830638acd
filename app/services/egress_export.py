"""Writes rows of the egress log to a new file, one JSON object a line."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from app.services.egress_view import Row

LOT = 1000
"""Rows that are written at once."""


def default_path(folder: Path, now: float) -> Path:
    """Return a name with the time in it, in a folder.

    None of a workspace: there the next snapshot and git would take the log.
    """
    return folder / time.strftime("egress-%Y%m%d-%H%M%S.jsonl", time.localtime(now))


def export(path: Path, rows: Sequence[Row]) -> int:
    """Write rows, newest first, to a file that is not there yet (mode 0600); how many there were.

    A connection is one line with the bytes of its end. Names stand as the guest sent them: JSON
    escapes what is no text. Raises AppError `usage` for a path where something is, or no folder.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            for start in range(0, len(rows), LOT):
                file.write(b"".join(_lines(rows[start : start + LOT])))
    except FileExistsError:
        text = f"There is a file {path} already; nothing was written."
        raise AppError("usage", text, "Give another name") from None
    except (FileNotFoundError, NotADirectoryError):
        raise AppError("usage", f"There is no folder {path.parent}.", "Give another") from None
    return len(rows)


def _lines(rows: Iterable[Row]) -> Iterable[bytes]:
    for row in rows:
        entry: dict[str, Any] = msgspec.to_builtins(row.entry)
        entry |= {"up": row.up, "down": row.down, "duration_ms": row.duration_ms}
        yield msgspec.json.encode({"session": row.session, **entry}) + b"\n"
