"""Where a session's sockets lie: noted, so that clients with another environment find them."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from app.errors import AppError
from app.files import write_atomic
from app.paths import RUNTIME_NOTE, fallback_runtime, noted_runtime, private_folder
from app.records import find_machine, read_state

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths

log = logging.getLogger(__name__)


def place_sockets(paths: Paths, folder: Path) -> Path:
    """Make the folder of a session's sockets, note where it is and return it.

    A machine that runs keeps it where it is, for its own sockets lie there. Else it is where our
    environment says; where that cannot be made (a runtime folder that went with a login) it is in
    the temporary directory. Raises AppError or OSError where nothing can be made.
    """
    noted = noted_runtime(folder)
    places = [paths.runtime, fallback_runtime()]
    if noted is not None and _machine_runs(folder):
        places.insert(0, noted)
    for place in places:
        try:
            private_folder(place)
        except (AppError, OSError) as error:
            if place == places[-1]:
                raise
            log.warning("sockets cannot be made in %s: %s", place, error)
        else:
            if place != noted:
                write_atomic(folder / RUNTIME_NOTE, os.fsencode(place))
            return private_folder(paths.sockets(folder.name))
    raise AssertionError("the last place has raised")


def _machine_runs(folder: Path) -> bool:
    machine = read_state(folder).machine
    return (machine is not None and machine.alive) or find_machine(folder) is not None
