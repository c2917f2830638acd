"""How Cloche's own clients ask a keeper for a program in the guest.

The command of an SSH channel is a list of quoted words then, and its environment says the rest. Any
other SSH client sends a line for the guest's shell.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

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
