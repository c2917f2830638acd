"""PID 1 of the guest: shipped ready in a wheel, compiled by musl-gcc in a checkout."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from blake3 import blake3

from vm.image.tools import one_sentence, require, run

SOURCES = Path(__file__).resolve().parent.parent / "guest"
FLAGS = (
    "-std=gnu17", "-O2", "-static", "-s", "-Wall", "-Wextra", "-Werror",
    "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2",
)  # fmt: skip
_COMPILE_SECONDS = 120.0


def source_hash() -> str:
    """Return blake3 (hex) over the C sources and the compiler's flags."""
    digest = blake3(" ".join(FLAGS).encode())
    for path in sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")]):
        content = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def guest_init(store: Path) -> bytes:
    """Return the static `/init`, from the wheel, from the store's cache or freshly compiled.

    Raises HostLacks without musl-gcc, VMError when it does not compile.
    """
    name = f"init-{source_hash()[:32]}"
    shipped = SOURCES / "prebuilt" / name
    if shipped.is_file():
        return shipped.read_bytes()
    cached = store / "cache" / "guest" / name
    if not cached.is_file():
        compile_init(cached)
    return cached.read_bytes()


def compile_init(target: Path) -> None:
    """Compile all of `vm/guest` into `target`, which appears complete or not at all."""
    require("musl-gcc")
    with one_sentence("Compiling the guest's first process"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / "init"
            sources = sorted(str(path) for path in SOURCES.glob("*.c"))
            argv = ["musl-gcc", *FLAGS, "-o", str(fresh), *sources]
            run(argv, what="musl-gcc", seconds=_COMPILE_SECONDS)
            os.replace(fresh, target)
