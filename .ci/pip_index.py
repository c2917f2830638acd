"""Print the package index that pip is configured to use, and nothing where it has its default.

uv does not read pip's configuration, and pip itself may not be installed. The places are those of
pip's own documentation ("Configuration Files"), the later ones winning.
"""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path

SECTIONS = ("global", "install")
"""Those that `pip install` reads, the later one winning."""


def files() -> list[Path]:
    """Return the configuration files that pip would read, the weakest first."""
    home = Path.home()
    system = [Path(f) / "pip/pip.conf" for f in _split("XDG_CONFIG_DIRS", "/etc/xdg")]
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    found = [*reversed(system), Path("/etc/pip.conf"), home / ".pip/pip.conf", own]
    return [*found, Path(named)] if named else found


def _split(variable: str, default: str) -> list[str]:
    return [part for part in (os.environ.get(variable) or default).split(":") if part]


def index() -> str:
    """Return the index's address, empty where pip has its default."""
    if given := os.environ.get("PIP_INDEX_URL", ""):
        return given
    parser = configparser.RawConfigParser()
    parser.read(files(), encoding="utf-8")
    found = ""
    for section in SECTIONS:
        found = parser.get(section, "index-url", fallback=found)
    return found.strip()


if __name__ == "__main__":
    sys.stdout.write(index())
