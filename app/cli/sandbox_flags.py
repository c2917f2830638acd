"""What the flags of `cloche sandbox` mean; every one is checked before a machine is started."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.cli.network_flags import egress_of
from app.client.copying import check_source, destination
from app.client.sandboxes import SandboxSpec
from app.config import LIMITS
from app.errors import AppError
from app.programs import Program, check_words
from app.services.sandbox import CopyPair, SandboxRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SECONDS: Final = (1, 3600)
MAX_VARIABLES: Final = 200
MAX_COPIES: Final = 100
_NAME: Final = re.compile(r"[^=\0]+\Z")
_HELP: Final = "See: cloche sandbox --help"
_TOO_LARGE: Final = "Give it a file: --copy-in HOST:GUEST, or --stdin-file FILE"


def request_of(arguments: argparse.Namespace) -> SandboxRequest:
    """Return what was asked for; its `stdin` is open then. Raises AppError."""
    program = _program(arguments)
    spec = SandboxSpec(
        argv=program.argv,
        workspace=arguments.workspace,
        image=arguments.image,
        memory=_limit("memory", arguments.memory),
        vcpus=_limit("vcpus", arguments.vcpus),
        scratch=_limit("scratch", arguments.scratch),
        egress=egress_of(arguments, ask=False),
    )
    return SandboxRequest(
        program,
        spec,
        timeout_s=_seconds(arguments.timeout_s),
        copy_in=_copies_in(arguments.copy_in),
        copy_out=_copies_out(arguments.copy_out),
        stdin=_stdin(arguments.stdin_file),
    )


def _program(arguments: argparse.Namespace) -> Program:
    argv: tuple[str, ...] = tuple(arguments.rest or ())
    if not argv:
        raise AppError("usage", "What shall be run?", "cloche sandbox -- CMD")
    pairs: list[str] = arguments.env
    env = dict(map(_variable, pairs))
    if len(env) > MAX_VARIABLES:
        raise AppError("usage", f"A command gets at most {MAX_VARIABLES} variables.", _HELP)
    cwd: str = arguments.cwd
    if cwd and not cwd.startswith("/"):
        text = f"'{cwd}' is no absolute path of the guest."
        raise AppError("usage", text, f"--cwd /workspace/{cwd}")
    check_words([*argv, cwd], env, way_out=_TOO_LARGE)
    return Program(argv, root=arguments.root, cwd=cwd, env=env)


def _variable(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not _NAME.match(name):
        raise AppError("usage", f"'{pair}' sets no variable.", "--env NAME=VALUE")
    return name, value


def _seconds(value: float) -> float:
    least, greatest = SECONDS
    if not least <= value <= greatest:  # which no NaN is
        text = f"A sandbox may take {least} to {greatest} seconds, not {value:g}."
        raise AppError("usage", text, f"--timeout-s {greatest}")
    return value


def _limit(name: str, value: int | None) -> int | None:
    least, greatest = LIMITS[name]
    if value is not None and not least <= value <= greatest:
        text = f"--{name} is a whole number from {least} to {greatest}, not {value}."
        raise AppError("usage", text, _HELP)
    return value


def _pairs(texts: Sequence[str], flag: str, form: str) -> list[tuple[str, str]]:
    if len(texts) > MAX_COPIES:
        text = f"--{flag} can be given {MAX_COPIES} times."
        raise AppError("usage", text, "Copy a folder that holds them all.")
    found: list[tuple[str, str]] = []
    for text in texts:
        left, colon, right = text.partition(":")
        if not (colon and left and right):
            raise AppError("usage", f"'{text}' names no two paths.", f"--{flag} {form}")
        found.append((left, right))
    return found


def _copies_out(texts: Sequence[str]) -> tuple[CopyPair, ...]:
    pairs: list[CopyPair] = []
    for guest, host in _pairs(texts, "copy-out", "GUEST:HOST"):
        path = destination(os.fsencode(guest), Path(host)).absolute()
        if not os.access(path.parent, os.W_OK | os.X_OK):
            text = f"You may not write into {path.parent}."
            raise AppError("refused", text, f"--copy-out {guest}:HOST")
        if any(pair.host == path for pair in pairs):
            text = f"Two copies would be called {path}."
            raise AppError("usage", text, f"--copy-out {guest}:HOST")
        meant = host.endswith("/") and not Path(host).is_dir()
        pairs.append(CopyPair(os.fsencode(guest), path, meant))
    return tuple(pairs)


def _copies_in(texts: Sequence[str]) -> tuple[CopyPair, ...]:
    pairs: list[CopyPair] = []
    for host, guest in _pairs(texts, "copy-in", "HOST:GUEST"):
        path = Path(host).absolute()
        check_source(path)
        if not os.access(path, os.R_OK):
            raise AppError("refused", f"You may not read {path}.", f"Look: ls -ld '{path}'")
        pairs.append(CopyPair(os.fsencode(guest), path))
    return tuple(pairs)


def _stdin(text: str | None) -> int | None:
    if text is None or text == "-":
        return None if text is None else 0
    try:
        file = os.open(text, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        code = "not-found" if isinstance(error, FileNotFoundError) else "refused"
        reason = error.strerror or "it cannot be opened"
        raise AppError(code, f"{text} cannot be read: {reason}.", "--stdin-file FILE") from error
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise AppError("usage", f"{text} is a folder.", f"--copy-in {text}:GUEST")
    return file
