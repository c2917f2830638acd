"""Running git's plumbing on bytes of an agent: in a jail, in a bare repository of ours.

The jail has namespaces of its own (no network, no other processes), the system's programs and
libraries, the repository, and for reading the objects of the user's. There is no home, no
workspace and no configuration but the one written here; time, memory and output are bounded.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import SnapshotError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECONDS: Final = 120.0
MEMORY: Final = 2 << 30
"""Address space in bytes of one git process."""

_SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ENVIRONMENT: Final = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_SETTINGS: Final = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"),
    *("pack.threads=1", "core.bigFileThreshold=32m", "core.alternateRefsCommand="),
)
"""Over everything that a repository's own configuration says."""


class Ran(NamedTuple):
    """How a git process ended."""

    code: int
    out: bytes
    err: str


def run_git(
    repository: Path,
    words: Sequence[str],
    *,
    stdin: bytes = b"",
    readable: Sequence[Path] = (),
) -> Ran:
    """Run git on a repository that it may write to; `readable` folders keep their names.

    Raises:
        ToolMissing: git or bubblewrap is not there.
        SnapshotError: it took too long.

    """
    command = [*_jail(repository, readable), _tool("git"), *_flags(), *words]
    env = _ENVIRONMENT | {"GIT_DIR": str(repository)}
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            env=env,
            cwd="/",
            timeout=SECONDS,
            check=False,
            preexec_fn=_bounded,
        )
    except subprocess.TimeoutExpired as error:
        raise SnapshotError(
            f"git {words[0]} took longer than {SECONDS:.0f} s.", "Try it again: cloche commits ID"
        ) from error
    return Ran(done.returncode, done.stdout, done.stderr.decode(errors="replace")[-4000:])


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _flags() -> list[str]:
    return [word for setting in _SETTINGS for word in ("-c", setting)]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        package = "bubblewrap" if name == "bwrap" else name
        raise ToolMissing(f"{name} is not installed.", f"Run: sudo apt-get install --yes {package}")
    return found


def _jail(repository: Path, readable: Sequence[Path]) -> list[str]:
    words = [_tool("bwrap"), "--unshare-all", "--die-with-parent", "--new-session"]
    words += ["--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/usr", "/usr"]
    for folder in _SYSTEM:
        if os.path.islink(folder):
            words += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            words += ["--ro-bind", folder, folder]
    words += ["--dev", "/dev", "--tmpfs", "/tmp"]
    for shown in readable:
        words += ["--ro-bind", str(shown), str(shown)]
    return [*words, "--bind", str(repository), str(repository), "--chdir", "/", "--"]
