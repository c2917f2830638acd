"""Errors of the application itself, and the one table that maps every error to an exit code."""

from __future__ import annotations

import errno
import os
import re
import shlex

from snapshot.errors import SnapshotError
from vm.errors import VMError

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DECISION = 3
EXIT_MISSING = 4
EXIT_HOST = 5
EXIT_TIMEOUT = 124
EXIT_OURS = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127

EXIT_BY_CODE = {
    "usage": EXIT_USAGE,
    "not-found": EXIT_MISSING,
    "no-such": EXIT_MISSING,
    "host-lacks": EXIT_HOST,
    "no-jail": EXIT_HOST,
    "no-memory": EXIT_HOST,
    "image-missing": EXIT_HOST,
}
"""Error codes with an exit status of their own; every other code ends with `EXIT_FAILED`."""


class AppError(Exception):
    """Something that Cloche could not do.

    `code` is stable and machine readable, `message` one sentence, `hint` the exact next step.
    `status` is the exit status where the code's own does not hold.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", *, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status


def app_error(error: BaseException) -> AppError | None:
    """Return the AppError that says the same as an error of `vm`, `snapshot` or the system.

    None for anything that is a fault of Cloche itself.
    """
    if isinstance(error, AppError):
        return error
    if isinstance(error, VMError | SnapshotError):
        return AppError(error.code, error.message, error.hint)
    if isinstance(error, OSError):
        return _system_error(error)
    return None


def naming(error: AppError, session: str) -> AppError:
    """Return the error with a session's own name where its hint says only `ID`."""
    hint = re.sub(r"\bID\b", lambda _: shlex.quote(session), error.hint)
    if hint == error.hint:
        return error
    return AppError(error.code, error.message, hint, status=error.status)


def not_running(session: str, state: str, message: str = "", hint: str = "") -> AppError:
    """Return the error of asking something of a session whose machine does not run (yet).

    `message` and `hint` are the session's own: why it is paused, and what helps.
    """
    if state == "paused" and message and hint:
        return AppError("not-running", message, hint)
    hint = (
        "Wait until it runs, then do it again: cloche ps"
        if state == "starting"
        else f"Start it: cloche resume {session}"
    )
    return AppError("not-running", f"The session {session} is {state}.", hint)


def is_full(error: OSError) -> bool:
    """Tell whether an error means that a disk, or the user's part of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _system_error(error: OSError) -> AppError:
    about = f" ({os.fsdecode(error.filename)})" if error.filename is not None else ""
    if is_full(error):
        return AppError("disk-full", f"The disk is full{about}.", "Free some space: df -h")
    reason = error.strerror or type(error).__name__
    return AppError("system", f"The system refused{about}: {reason}.", "Look: cloche doctor")


def exit_code(code: str) -> int:
    """Return the exit status for an error code."""
    return EXIT_BY_CODE.get(code, EXIT_FAILED)
