"""How the workstation is opened: with this user's sessions, on this terminal, until they leave."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from app.config import load_config
from app.errors import AppError
from app.paths import Paths
from app.services.egress_rules import LocalEgress
from app.services.layouts import Layouts
from app.services.local import LocalFleet
from app.services.outside import Outside
from app.ui.app import ClocheApp
from app.ui.ending import ended_by_signals
from app.ui.live_terminals import LiveTerminals
from app.ui.theming import chosen_palette
from themes.glyphs import glyphs_of_environment
from widgets.terminal_keys import OuterDriver, mend_parser

if TYPE_CHECKING:
    from pathlib import Path

DUMB = ("dumb", "unknown")
"""Terminals that only print line by line; Rich takes them for 80x25 whatever their size is."""


def run_workstation(workspace: Path, *, paths: Paths | None = None) -> int:
    """Open the workstation on `workspace` and return its exit status when the user leaves.

    Sessions go on when it ends. `paths` defaults to those of the environment. Raises AppError on a
    terminal that cannot place a text on its screen.
    """
    if os.environ.get("TERM") in DUMB:
        raise AppError(
            "usage",
            f"The workstation needs a screen, and TERM={os.environ['TERM']} is none.",
            "Take another terminal, or see: cloche ps, cloche attach, cloche changes",
        )
    found = paths or Paths.from_environment()
    palette = chosen_palette(os.environ.get("CLOCHE_THEME", ""))
    ui = load_config(found.config).ui
    outside = Outside(ui.open_with)
    threading.Thread(target=outside.sweep, name="sweep", daemon=True).start()
    app = ClocheApp(
        workspace.resolve(),
        LocalFleet(found),
        LiveTerminals(found, palette, prefix=ui.prefix, direct_keys=ui.direct_keys),
        glyphs=glyphs_of_environment(),
        theme=palette.name,
        layouts=Layouts(found.state / "layouts"),
        egress=LocalEgress(found),
        bell=ui.bell,
        prefix=ui.prefix,
        direct_keys=ui.direct_keys,
        outside=outside,
        keys=ui.keys,
    )
    return run_app(app)


def run_app(app: ClocheApp) -> int:
    """Run the application on this terminal and return its exit status."""
    mend_parser()
    app.driver_class = OuterDriver
    with ended_by_signals(app.exit):
        app.run()
    return app.return_code or 0
