"""The package tools of this host as a guest can run them: pip as one archive, node with its npm.

The base image has neither. pip is the one that this Python brings for new environments, compiled
beforehand, for an emulated processor takes minutes to compile it.
"""

from __future__ import annotations

import compileall
import ensurepip
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

WHEELS: Final = Path("/usr/share/python-wheels")
"""Where Debian has the wheels that ensurepip has elsewhere."""

IN_BASE: Final = frozenset(
    [
        "linux-vdso",
        "libdl",
        "libstdc++",
        "libm",
        "libgcc_s",
        "libpthread",
        "libc",
        "ld-linux-x86-64",
    ]
)
"""Libraries of the base image that a program may need."""

UNREAD: Final = frozenset(("docs", "man", "html", "tap-snapshots"))
"""Parts of npm that no installation reads."""


def pip_archive(folder: Path) -> Path | None:
    """Make `pip.zip`, to be put into PYTHONPATH; None where this Python brings no pip."""
    bundled = Path(ensurepip.__file__).parent / "_bundled"
    wheels = sorted([*bundled.glob("pip-*.whl"), *WHEELS.glob("pip-*.whl")])
    if not wheels:
        return None
    tree = folder / "pip"
    with zipfile.ZipFile(wheels[-1]) as wheel:
        wheel.extractall(tree)
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    assert compileall.compile_dir(tree, quiet=1, legacy=True, invalidation_mode=unchecked)
    # stored, for unpacking takes its time, too; sources are for a guest of another version
    with zipfile.ZipFile(folder / "pip.zip", "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(tree.rglob("*")):
            archive.write(path, path.relative_to(tree))
    shutil.rmtree(tree)
    return folder / "pip.zip"


def node() -> Path | None:
    """Return this host's node, if it needs no library that the base image lacks."""
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run(["ldd", found], capture_output=True, text=True, timeout=60, check=False)
    names = re.findall(r"^\s*(?:\S*/)?([^\s/]+?)\.so\b", said.stdout, re.MULTILINE)
    return Path(found).resolve() if names and IN_BASE.issuperset(names) else None


def npm_archive(folder: Path) -> Path | None:
    """Make `npm.tar`, whose `bin/npm-cli.js` node runs; None where there is no such npm."""
    found = shutil.which("npm")
    program = None if found is None else Path(found).resolve()
    if program is None or program.name != "npm-cli.js":
        return None

    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(member.name).parts
        read = not UNREAD.intersection(parts) and not member.name.endswith((".md", ".map"))
        return member if read else None

    with tarfile.open(folder / "npm.tar", "w") as archive:
        archive.add(program.parents[1], ".", filter=wanted)
    return folder / "npm.tar"
