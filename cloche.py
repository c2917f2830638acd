"""Start Cloche; the only importable name that an installed Cloche adds to a Python environment.

In a checkout the packages `app`, `widgets`, `vm`, `snapshot` and `themes` lie beside this file. A
wheel keeps them one folder down, in `_cloche`, so that none of those common words lands in
site-packages; `main` is what puts that folder on the import path.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__version__ = "0.1.0"


def _find_packages() -> None:
    """Put the folder that holds our packages first on the import path, and nothing of the cwd.

    A workspace may hold its own `app/`, `vm/` or `yaml.py`, and `python -m cloche` as well as an
    empty entry in PYTHONPATH put the current directory in front: it is taken out again.
    """
    here = Path(__file__).resolve().parent
    packages = here / "_cloche"
    folder = str(packages if packages.is_dir() else here)
    try:
        unwanted = {"", folder, str(here), os.getcwd()}
    except FileNotFoundError:  # the current directory was removed: nothing can be imported from it
        unwanted = {"", folder, str(here)}
    kept = [entry for entry in sys.path if entry not in unwanted]
    # An installed launcher lies in site-packages, beside the libraries: that folder stays.
    sys.path[:] = [folder, *kept] if folder == str(here) else [folder, *kept, str(here)]


def main() -> int:
    """Run the command line and return its exit status."""
    _find_packages()
    from app.standard import finish, open_standard

    open_standard()
    try:
        return finish(_run(sys.argv[1:]))
    except SystemExit as ended:  # of `--help`, whose text still waits to be written
        return finish(ended.code if isinstance(ended.code, int) else 1)


def _run(words: list[str]) -> int:
    if words in (["--version"], ["version"]):
        sys.stdout.write(f"cloche {__version__}\n")
        return 0
    from app.main import main as run

    return run(words)


if __name__ == "__main__":
    raise SystemExit(main())
