"""Start Cloche; the only importable name that an installed Cloche adds to a Python environment.

In a checkout the packages `app`, `widgets`, `vm`, `snapshot` and `themes` lie beside this file. A
wheel keeps them one folder down, in `_cloche`, so that none of those common words lands in
site-packages; `main` is what puts that folder on the import path.
"""

from __future__ import annotations

import sys
from pathlib import Path

__version__ = "0.1.0"


def _find_packages() -> None:
    """Put the folder that holds our packages first on the import path, and nothing of the cwd.

    A workspace may hold its own `app/`, `vm/` or `yaml.py`; the empty entry that Python adds for
    the current directory (and the cwd itself) must never win over ours.
    """
    here = Path(__file__).resolve().parent
    packages = here / "_cloche"
    folder = str(packages if packages.is_dir() else here)
    sys.path[:] = [folder, *(entry for entry in sys.path if entry not in ("", folder))]


def main() -> int:
    """Run the command line and return its exit status."""
    if sys.argv[1:] in (["--version"], ["version"]):
        sys.stdout.write(f"cloche {__version__}\n")
        return 0
    _find_packages()
    from app.main import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
