"""How Cloche's own clients ask a keeper for a program in the guest.

The command of an SSH channel is a list of quoted words then, and its environment says the rest. Any
other SSH client sends a line for the guest's shell.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS_VARIABLE: Final = "CLOCHE_ARGV"
"""`1`: the command is a list of words."""

ROOT_VARIABLE: Final = "CLOCHE_ROOT"
"""`1`: as root of the agent's world."""

CWD_VARIABLE: Final = "CLOCHE_CWD"
"""The folder in the guest; without it the workspace."""

ENV_VARIABLE: Final = "CLOCHE_ENV"
"""A JSON object of further variables for the program."""


FAILED: Final = "failed@cloche"
"""The "signal" by which a channel of ours ends where Cloche, not the program, has failed; its
message is a Fault. So no status of a program can be taken for it."""


class Fault(msgspec.Struct, frozen=True):
    """Why there is no exit status."""

    code: str
    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: AppError) -> Fault:
        """Return what stands for an error."""
        return cls(error.code, error.message, error.hint)

    @property
    def line(self) -> str:
        """The fault as a channel carries it."""
        return msgspec.json.encode(self).decode()


def fault_in(line: str) -> AppError:
    """Return the error that a channel carried."""
    try:
        fault = msgspec.json.decode(line, type=Fault)
    except msgspec.MsgspecError:
        return AppError("keeper", "The keeper does not say why the program ended.", "cloche ps")
    return AppError(fault.code, fault.message, fault.hint)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run in the guest."""

    argv: tuple[str, ...]
    root: bool = False
    cwd: str = ""
    """Empty: the workspace."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def command(self) -> str:
        """The channel's command."""
        return shlex.join(self.argv)

    @property
    def environment(self) -> dict[str, str]:
        """The channel's environment."""
        said = {WORDS_VARIABLE: "1"}
        if self.root:
            said[ROOT_VARIABLE] = "1"
        if self.cwd:
            said[CWD_VARIABLE] = self.cwd
        if self.env:
            said[ENV_VARIABLE] = json.dumps(dict(self.env))
        return said
