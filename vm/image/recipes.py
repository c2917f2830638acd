"""What goes into the images that are built here, as data.

Packages come from the host's own apt sources. Recipes add to the base system and never take from
it, so whatever works in `base` works in every built image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vm.errors import VMError

MAX_PACKAGES: Final = 500
_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}\Z")
"""Names as Debian's policy has them (section 5.6.1)."""

BASE_PACKAGES: Final = (
    "git", "python3", "curl", "ca-certificates", "less", "vim-tiny", "ncurses-term",
    "procps", "file", "patch", "xz-utils",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image: a name, and what its base system has beyond Debian's minimum."""

    name: str
    description: str
    packages: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what apt could take for something else than names."""
        odd = [name for name in self.packages if not _PACKAGE.match(name)]
        if odd:
            raise VMError(
                f"{odd[0]!r} is no name of a package.", "Look for it: apt-cache search WORD"
            )
        if len(self.packages) > MAX_PACKAGES:
            raise VMError(f"A recipe has at most {MAX_PACKAGES} packages.")


_BUILT_IN: Final = (
    Recipe("base", "git, Python and what a shell needs", BASE_PACKAGES),
    Recipe(
        "dev",
        "base with C and C++ compilers, make and CMake, Python's tools, node and npm",
        (
            *BASE_PACKAGES,
            *("build-essential", "cmake", "pkg-config", "gdb"),
            *("python3-dev", "python3-pip", "python3-venv"),
            *("nodejs", "npm"),
            *("ripgrep", "jq", "unzip", "zip", "openssh-client", "sqlite3", "bc", "tree"),
        ),
    ),
)

RECIPES: Final = {recipe.name: recipe for recipe in _BUILT_IN}
"""The recipes that come with Cloche, by name."""
