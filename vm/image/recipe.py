"""How the guest's PID 1 is compiled, and the name of the result.

The wheel's build hook loads this file alone, in an environment without our dependencies: nothing
but the standard library is imported here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "guest"
FLAGS = (
    "-std=gnu17", "-O2", "-static", "-s", "-Wall", "-Wextra", "-Werror",
    "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2",
)  # fmt: skip
PREBUILT = "prebuilt"
"""The folder below SOURCES where a wheel has the compiled program."""


def source_hash() -> str:
    """Return sha256 (hex) over the C sources and the compiler's flags."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")]):
        content = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def program_name() -> str:
    """Return the file name of the program that these sources make."""
    return f"init-{source_hash()[:32]}"


def compile_command(target: Path) -> list[str]:
    """Return the command line that compiles all of SOURCES into the static program `target`."""
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    return ["musl-gcc", *FLAGS, "-o", str(target), *sources]
