"""PID 1 of the guest: shipped ready in a wheel, compiled by musl-gcc in a checkout."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from vm.image.recipe import PREBUILT, SOURCES, compile_command, program_name, source_hash
from vm.image.tools import one_sentence, require, run

__all__ = ["COMPILERS", "SOURCES", "compile_init", "find_init", "guest_init", "source_hash"]

COMPILERS = ("musl-gcc", "as")
"""What compiling takes; the assembler is named, for Debian 13 installs musl-gcc without it."""
_COMPILE_SECONDS = 120.0


def find_init(store: Path) -> Path | None:
    """Return where the finished `/init` is: in the wheel or in the store's cache."""
    name = program_name()
    for path in (SOURCES / PREBUILT / name, _cached(store, name)):
        if path.is_file():
            return path
    return None


def guest_init(store: Path) -> bytes:
    """Return the static `/init`, from the wheel, from the store's cache or freshly compiled.

    Raises HostLacks without musl-gcc, VMError when it does not compile.
    """
    found = find_init(store)
    if found is None:
        found = _cached(store, program_name())
        compile_init(found)
    return found.read_bytes()


def _cached(store: Path, name: str) -> Path:
    return store / "cache" / "guest" / name


def compile_init(target: Path) -> None:
    """Compile all of `vm/guest` into `target`, which appears complete or not at all."""
    require(*COMPILERS)
    with one_sentence("Compiling the guest's first process"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / "init"
            run(compile_command(fresh), what="musl-gcc", seconds=_COMPILE_SECONDS)
            os.replace(fresh, target)
