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
    from collections.abc import Iterable, Mapping

WORDS_VARIABLE: Final = "CLOCHE_ARGV"
"""`1`: the command is a list of words."""

ROOT_VARIABLE: Final = "CLOCHE_ROOT"
"""`1`: as root of the agent's world."""

CWD_VARIABLE: Final = "CLOCHE_CWD"
"""The folder in the guest; without it the workspace."""

ENV_VARIABLE: Final = "CLOCHE_ENV"
"""A JSON object of further variables for the program."""


MAX_COMMAND: Final = 90 << 10
"""Bytes of a command with its variables, quoted for a shell. It is one word of the guest's shell in
the end, of which Linux takes 128 KiB (MAX_ARG_STRLEN), and what Cloche adds needs room as well."""

FILE_INSTEAD: Final = "Put it into a file, or give it on stdin: cloche cp FILE ID:/tmp/"
MAX_SHOWN: Final = 60
"""Characters of a refused word that are shown."""

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


def check_words(
    words: Iterable[str], env: Mapping[str, str] | None = None, *, way_out: str = FILE_INSTEAD
) -> None:
    """Refuse what no program in a guest can be given, before anything is sent; else it arrives.

    Raises AppError `usage` for bytes that are no UTF-8, for NUL and for too many of them; its hint
    is `way_out` where it is the size.
    """
    size = 0
    for word in (*words, *(f"{name}={value}" for name, value in (env or {}).items())):
        check_text(word)
        size += len(shlex.quote(word).encode()) + 1
    if size > MAX_COMMAND:
        text = f"The command and its variables have {size} bytes, {MAX_COMMAND} are possible."
        raise AppError("usage", text, way_out)


def check_text(word: str) -> None:
    """Raise AppError `usage` for what cannot be handed to a guest at all."""
    shown = word[:MAX_SHOWN].encode("utf-8", "backslashreplace").decode()
    if "\0" in word:
        raise AppError("usage", "A word with a NUL byte in it cannot be passed on.", "Remove it.")
    try:
        word.encode()
    except UnicodeEncodeError as error:
        text = f"'{shown}' is not UTF-8, so it cannot be passed on."
        raise AppError("usage", text, "Put it into a file: cloche cp FILE ID:/tmp/") from error
