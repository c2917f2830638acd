"""Asks a package tool itself for what is built into it, where its configuration says nothing.

A tool runs with a bounded time in `/`, never in a workspace, whose files could configure it, and
never from a workspace, which could be the program. Its answer is remembered until the tool changes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError
from app.files import read_regular, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S: Final = 15.0
MAX_ANSWER: Final = 64 << 10
"""Most bytes of an answer that are read."""

CACHE: Final = "registries.json"
PASSED: Final = ("HOME", "LANG", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS")
"""Variables that a tool gets; those of the tools themselves were looked at before."""

FIXED: Final = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "NO_UPDATE_NOTIFIER": "1"}
"""Keeps a tool from loading another version of itself, or from asking for one."""


class Asker:
    """Runs tools of this host and remembers what they said."""

    def __init__(
        self, variables: Mapping[str, str], cache: Path | None, avoid: Path | None
    ) -> None:
        """`cache`: the folder of the memory, None for none; `avoid`: a workspace."""
        self._variables = variables
        self._file = None if cache is None else cache / CACHE
        self._path = _safe_path(variables.get("PATH", ""), avoid)
        self._known = _load(self._file)

    def __call__(self, *argv: str) -> str:
        """Return what a tool prints; empty when it is not there, fails or takes too long."""
        program = shutil.which(argv[0], path=self._path)
        if program is None:
            return ""
        key = _key(program, argv)
        if key not in self._known:
            answer = self._run(program, argv)
            if not answer:
                return ""
            self._remember(key, answer)
        return self._known[key]

    def _run(self, program: str, argv: tuple[str, ...]) -> str:
        given = {name: self._variables[name] for name in PASSED if name in self._variables}
        with tempfile.TemporaryFile() as out:
            try:
                subprocess.run(
                    [program, *argv[1:]],
                    cwd="/",
                    env={**given, **FIXED, "PATH": self._path},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.DEVNULL,
                    timeout=TIMEOUT_S,
                    check=True,
                )
            except (OSError, subprocess.SubprocessError):
                return ""  # a tool that cannot say it has nothing that could be allowed
            out.seek(0)
            return out.read(MAX_ANSWER).decode("utf-8", "replace")

    def _remember(self, key: str, answer: str) -> None:
        self._known[key] = answer
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # only a memory: without it the tool is asked again
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self._file, msgspec.json.encode(self._known))


def _safe_path(path: str, avoid: Path | None) -> str:
    """Return a PATH without what is relative or lies in the workspace."""
    folders = [one for one in path.split(os.pathsep) if one.startswith("/")]
    if avoid is not None:
        outside = avoid.resolve()
        folders = [one for one in folders if not Path(one).resolve().is_relative_to(outside)]
    return os.pathsep.join(folders)


def _key(program: str, argv: tuple[str, ...]) -> str:
    """Name a question and the version of the tool that it went to."""
    found = os.stat(program)
    return f"{program} {found.st_ino} {found.st_size} {found.st_mtime_ns} {' '.join(argv[1:])}"


def _load(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        return msgspec.json.decode(read_regular(file, 1 << 20), type=dict[str, str])
    except (OSError, AppError, msgspec.MsgspecError):
        return {}  # only a memory
