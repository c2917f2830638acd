"""`cloche logs ID --cast`: the terminal's record for players of asciicasts."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.errors import EXIT_DONE, AppError
from app.records import read_session
from app.services.cast import Cast
from snapshot.renameat import move

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output

STDOUT: Final = "-"
BUFFER: Final = 64 << 10


def export(arguments: argparse.Namespace, folder: Path, output: Output) -> int:
    """Write the record of the session in `folder` to a file, or to stdout for `-`."""
    if arguments.cast == STDOUT and output.json:
        raise AppError(
            "usage", "The cast and a JSON object cannot both go to stdout.", "--cast FILE"
        )
    cast = Cast(folder, read_session(folder))
    if arguments.cast == STDOUT:
        _print(cast, output)
        return EXIT_DONE
    target = Path(arguments.cast or f"{folder.name}.cast")
    size = _write(cast, target, force=arguments.force)
    fields = {"session": folder.name, "cast": str(target), "bytes": size}
    output.result(fields, lambda: output.line(f"{target}: {size} bytes"))
    return EXIT_DONE


def _print(cast: Cast, output: Output) -> None:
    waiting = bytearray()
    for line in cast.lines():  # ASCII without control characters: a terminal may see it
        waiting += line
        if len(waiting) >= BUFFER:
            output.exact(bytes(waiting))
            waiting.clear()
    output.exact(bytes(waiting))


def _write(cast: Cast, target: Path, *, force: bool) -> int:
    """Put the whole cast in place, or nothing; return its bytes."""
    if target.is_dir():
        raise AppError("exists", f"{target} is a folder.", "Name a file: --cast FILE")
    if not force and os.path.lexists(target):
        raise _taken(target)
    fresh = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    try:
        size = _fill(cast, fresh)
        _place(fresh, target, force=force)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
    return size


def _fill(cast: Cast, fresh: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    # what an agent printed may be as secret as its workspace
    with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
        file.writelines(cast.lines())
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _place(fresh: Path, target: Path, *, force: bool) -> None:
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if force:
            os.rename(fresh.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            move(folder, os.fsencode(fresh.name), folder, os.fsencode(target.name))
        os.fsync(folder)
    except FileExistsError as error:
        raise _taken(target) from error
    finally:
        os.close(folder)


def _taken(target: Path) -> AppError:
    return AppError("exists", f"{target} is there already.", "Replace it: add --force")
