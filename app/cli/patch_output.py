"""Putting out a patch: exact bytes, checked by another parser, to anything but a terminal."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Final

from app.errors import EXIT_DONE, AppError
from snapshot.patch import check_export

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.cli.output import Output

CANNOT: Final = "binary, special or a mode without its file: a patch cannot carry it"


def refuse_terminal(output: Output, command: str) -> None:
    """Refuse what may hold control sequences to a terminal; `command` is what to write instead.

    Raises AppError `usage`.
    """
    if not output.json and sys.stdout.isatty():
        text = "A patch is exact bytes and may hold control sequences, so it goes to no terminal."
        raise AppError("usage", text, command)


def put_patch(output: Output, session: str, data: bytes, left_out: Sequence[str]) -> int:
    """Check a patch and write it; name the paths that it cannot carry. The exit status."""
    facts = check_export(data)
    value = {"session": session, **facts._asdict(), "left_out": left_out}
    value["patch"] = base64.b64encode(data).decode()
    output.result(value, lambda: output.exact(data))
    for name in left_out:
        output.note(f"not in the patch: {name} ({CANNOT})")
    return EXIT_DONE
