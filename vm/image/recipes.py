"""What goes into the images that are built here, as data.

Packages come from the host's own apt sources. Recipes add to the base system and never take from
it, so whatever works in `base` works in every built image. What no apt source has is installed by a
line of shell in a machine of its own, into one folder: `vm.image.added`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vm.errors import VMError
from vm.install import PREFIX, PROGRAMS

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
    packages: tuple[str, ...] = ()
    below: str = ""
    """The recipe whose image it adds `install` to; empty: it is made of packages."""
    install: str = ""
    """A line of shell that installs into `{prefix}`; run in a machine, never on this host."""

    before: str = ""
    """A line that is tried first, and does all if it succeeds; `install` finds nothing of it."""

    @property
    def command(self) -> str:
        """The lines with the folder that an image has for them."""
        line = self.install
        if self.before:
            line = f"({self.before}) || (rm -rf {PREFIX}/*; {self.install})"
        return line.replace(PREFIX, PROGRAMS)

    def __post_init__(self) -> None:
        """Refuse what apt could take for something else than names, and what cannot be made."""
        if bool(self.below) != bool(self.install) or (self.install and self.packages):
            raise VMError("A recipe has packages, or an image that something is installed into.")
        if self.install and PREFIX not in self.install:
            raise VMError(
                f"Its install does not say {PREFIX}, the folder to install into.",
                f"Write it so: npm install -g --prefix {PREFIX} NAME",
            )
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
