"""Files that appear under their name complete and on the disk, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Generator[IO[str]]:
    """Hold an ASCII file open that takes the name `path` when the block ends well.

    Nobody but its owner can read it. Raises OSError; then what was at `path` is still there.
    """
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        raise
