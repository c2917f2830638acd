"""Starts the real pane worker without the command line around it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vm.terminal.worker import main

raise SystemExit(main(sys.argv[1:]))
