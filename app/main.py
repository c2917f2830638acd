"""The command line's entry: finds the command, runs it, turns every error into one sentence."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from app.errors import EXIT_OURS, EXIT_USAGE, AppError, app_error, exit_code, naming
from app.standard import drop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.cli.output import Output

COMMANDS: Final = {
    "run": ("app.cli.run", "run"),
    "ps": ("app.cli.sessions", "ps"),
    "stop": ("app.cli.sessions", "stop"),
    "rm": ("app.cli.sessions", "rm"),
    "resume": ("app.cli.sessions", "resume"),
    "rename": ("app.cli.sessions", "rename"),
    "logs": ("app.cli.logs", "logs"),
    "attach": ("app.cli.attach", "attach"),
    "exec": ("app.cli.guest", "execute"),
    "cp": ("app.cli.copy", "copy"),
    "ssh": ("app.cli.ssh", "ssh"),
    "sandbox": ("app.cli.sandbox", "sandbox"),
    "ssh-config": ("app.cli.ssh", "ssh_config"),
    "send": ("app.cli.send", "send"),
    "port": ("app.cli.ports", "port"),
    "proxy": ("app.cli.guest", "proxy"),
    "changes": ("app.cli.review", "changes"),
    "diff": ("app.cli.review", "diff"),
    "comment": ("app.cli.comment", "comment"),
    "review": ("app.cli.asking", "review"),
    "commits": ("app.cli.commits", "commits"),
    "merge": ("app.cli.merge", "merge"),
    "undo": ("app.cli.merge", "undo"),
    "doctor": ("app.cli.doctor", "doctor"),
    "version": ("app.cli.host", "version"),
    "image": ("app.cli.host", "image"),
    "agents": ("app.cli.host", "agents"),
    "egress": ("app.cli.egress", "egress"),
}
"""Module and function of each command; only the one that is asked for is imported."""

TAKES_REST: Final = frozenset({"run", "exec", "ssh", "sandbox"})
"""Commands that pass on what stands after `--`."""

ROLES: Final = {
    "broker": ("app.broker.role", "run"),
    "colours": ("app.services.colours_role", "run"),
    "gateway": ("app.gateway.lean", "run"),
    "keeper": ("app.keeper.role", "run"),
    "pane-worker": ("vm.terminal.worker", "main"),
}
"""Our own child processes (see docs/architecture.md)."""

INTERRUPTED: Final = 130
"""Exit status after ctrl+c: 128 + SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; the launcher's entry."""
    return run(sys.argv[1:] if argv is None else argv)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit status."""
    if argv[:1] == ["_role"] or argv[:1] == ("_role",):
        return _role(list(argv[1:]))
    head, rest = _split(list(argv))
    from app.cli.output import Output

    output = Output(as_json="--json" in head)
    try:
        return _answer(head, rest, output)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return drop()  # whoever read us is gone
    except AppError as error:  # not even an error could be said where the answers go
        return _failed(error, head, output)


def _answer(head: list[str], rest: list[str] | None, output: Output) -> int:
    try:
        return _dispatch(head, rest, output)
    except BrokenPipeError:
        raise
    except Exception as error:  # every error ends as one sentence, never as a traceback
        return _failed(error, head, output)


def _split(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """Cut the command line at the first `--`: what follows belongs to the guest."""
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def _dispatch(head: list[str], rest: list[str] | None, output: Output) -> int:
    from app.cli.parser import build, parse
    from cloche import __version__

    arguments = parse(build(__version__), head, takes_rest=TAKES_REST if rest is None else ())
    if arguments.command is None:
        return _workstation(rest)
    takes_rest = arguments.command in TAKES_REST
    if rest is not None and not takes_rest:
        raise AppError("usage", f"'{arguments.command}' takes nothing after --.")
    arguments.rest = rest
    module, name = COMMANDS[arguments.command]
    command = getattr(import_module(module), name)
    session = getattr(arguments, "session", None)
    try:
        status: int = command(arguments, output)
    except BrokenPipeError:
        raise  # no error of the session's
    except Exception as error:  # only what is one of ours gets another hint
        known = app_error(error)
        if known is None or not session:
            raise
        raise naming(known, session) from error
    return status


def _workstation(rest: list[str] | None) -> int:
    from pathlib import Path

    if rest:
        raise AppError("usage", "The workstation takes nothing after --.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AppError("usage", "The workstation needs a terminal.", "See: cloche --help")
    from app.ui.opening import run_workstation

    return run_workstation(Path.cwd())


def _role(argv: list[str]) -> int:
    if not argv or argv[0] not in ROLES:
        return EXIT_USAGE
    module, name = ROLES[argv[0]]
    status: int = getattr(import_module(module), name)(argv[1:])
    return status


def _failed(error: Exception, head: list[str], output: Output) -> int:
    known = app_error(error)
    if known is None:
        if os.environ.get("CLOCHE_DEBUG"):
            raise error
        known = AppError(
            "internal",
            f"Cloche failed: {type(error).__name__}: {error}",
            "Show where: CLOCHE_DEBUG=1 cloche …",
        )
    output.failure(known)
    if isinstance(error, AppError) and error.status is not None:
        return error.status
    return EXIT_OURS if _speaks_for_guest(head, known) else exit_code(known.code)


def _speaks_for_guest(head: list[str], error: AppError) -> bool:
    """Tell whether the status of this command is the guest's, so that ours must be 125."""
    return head[:1] in (["exec"], ["ssh"], ["sandbox"]) and error.code != "usage"
