"""Hatchling's hook for wheels: compile the guest's PID 1, so that no user needs a compiler.

Without musl-gcc, or elsewhere than on x86-64, the wheel is made without it and says so; Cloche then
compiles it on the user's machine when it builds an image.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType

TARGET = "_cloche/vm/guest"
NOTICES = ("/usr/share/doc/musl-dev/copyright", "/usr/share/doc/musl/copyright")
"""musl's licence, which asks to go with programs that hold a copy of it."""


class GuestHook(BuildHookInterface[Any]):
    """Adds `prebuilt/init-<hash>` to a wheel that is no editable one."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary folder and name the result among the files to take in."""
        if self.target_name != "wheel" or version == "editable":
            return
        missing = _missing()
        if missing:
            self.app.display_warning(f"The wheel has no compiled guest program: {missing}.")
            return
        recipe = _recipe(Path(self.root))
        self._folder = tempfile.TemporaryDirectory()
        program = Path(self._folder.name) / recipe.program_name()
        subprocess.run(recipe.compile_command(program), check=True, timeout=120)
        place = f"{TARGET}/{recipe.PREBUILT}"
        build_data["force_include"][str(program)] = f"{place}/{program.name}"
        for notice in [path for path in NOTICES if Path(path).is_file()][:1]:
            build_data["force_include"][notice] = f"{place}/musl-copyright.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Drop the temporary folder."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()


def _missing() -> str:
    """Return why the program cannot be compiled here, empty when it can."""
    if platform.machine() != "x86_64":
        return f"this machine is {platform.machine()}, the guest is x86_64"
    absent = [name for name in ("musl-gcc", "as") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found" if absent else ""


def _recipe(root: Path) -> ModuleType:
    """Load `vm/image/recipe.py` by its path: its package needs our dependencies."""
    spec = importlib.util.spec_from_file_location("recipe", root / "vm" / "image" / "recipe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
