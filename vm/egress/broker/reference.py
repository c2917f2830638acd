"""Where a credential comes from: a reference in the user's configuration, never the value.

`env:NAME`, `file:/absolute/path`, `keyring:SERVICE/ACCOUNT` (libsecret's `secret-tool`),
`command:PROGRAM ARGUMENT…`, whose output is the value, or `oauth:/absolute/path` (see `oauth`).
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vm.egress.broker.secret import MAX_BYTES, Secret
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WAIT_S: Final = 30.0
"""A keyring may first ask its user for a password."""
LINE_END: Final = 2
"""Bytes of a line's end after a value."""

_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_KINDS: Final = ("env", "file", "keyring", "command", "oauth")
_WAY: Final = (
    "Write env:NAME, file:/PATH, keyring:SERVICE/ACCOUNT, command:PROGRAM ARGUMENT or oauth:/PATH"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A checked reference: its kind and what follows the colon."""

    kind: str
    target: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}"


def parse(text: str) -> Reference:
    """Read a reference; BrokerRefused for what is none, without repeating it.

    What stands there by mistake may be the credential itself.
    """
    kind, colon, target = text.partition(":")
    if not colon or kind not in _KINDS or not target or not target.isprintable():
        raise BrokerRefused("A credential must be named by a reference.", _WAY)
    good = {
        "env": lambda: _ENV.match(target) is not None,
        "file": lambda: Path(target).is_absolute(),
        "keyring": lambda: all(target.partition("/")),
        "command": lambda: _words(target) is not None,
        "oauth": lambda: Path(target).is_absolute(),
    }
    if not good[kind]():
        raise BrokerRefused(f"A reference of the kind {kind} is not well formed.", _WAY)
    return Reference(kind, target)


def _words(text: str) -> list[str] | None:
    try:
        return shlex.split(text) or None
    except ValueError:
        return None  # a quote that is not closed


def read(reference: Reference, env: Mapping[str, str], workspaces: Sequence[Path]) -> Secret:
    """Fetch the value of any kind but `oauth`. BrokerRefused says what to do, not what was found.

    `workspaces` are folders that guests see a snapshot of: no credential may lie there.
    """
    readers = {
        "env": lambda: _from_env(reference.target, env),
        "file": lambda: read_file(Path(reference.target), workspaces, MAX_BYTES + LINE_END),
        "keyring": lambda: _from_keyring(reference.target),
        "command": lambda: _output(_words(reference.target) or [], str(reference)),
    }
    value = readers[reference.kind]()
    return Secret(value.rstrip(b"\r\n"), f"Look at what {reference} holds")


def _from_env(name: str, env: Mapping[str, str]) -> bytes:
    value = env.get(name)
    if not value:
        raise BrokerRefused(f"The environment variable {name} is not set.", f"export {name}=…")
    return os.fsencode(value)


def read_file(path: Path, workspaces: Sequence[Path], most: int) -> bytes:
    """Read a file of the user's alone, one byte more than `most` at the utmost. BrokerRefused."""
    real = Path(os.path.realpath(path))
    for folder in workspaces:
        if real.is_relative_to(os.path.realpath(folder)):
            hint = f"mv {shlex.quote(str(path))} ~/.config/"
            raise BrokerRefused(f"{path} lies in a workspace, which agents see.", hint)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        hint = f"ls -l {shlex.quote(str(path))}"
        raise BrokerRefused(f"{path} cannot be read: {error.strerror}.", hint) from None
    try:
        _check_file(path, os.fstat(fd))
        return os.read(fd, most + 1)
    finally:
        os.close(fd)


def _check_file(path: Path, facts: os.stat_result) -> None:
    quoted = shlex.quote(str(path))
    if not stat.S_ISREG(facts.st_mode):
        raise BrokerRefused(f"{path} is no plain file.", f"ls -l {quoted}")
    if facts.st_uid not in (os.geteuid(), 0):
        raise BrokerRefused(f"{path} belongs to another user.", f"sudo chown $USER {quoted}")
    if facts.st_mode & 0o077:
        raise BrokerRefused(f"{path} can be read by others.", f"chmod 600 {quoted}")


def _from_keyring(target: str) -> bytes:
    service, _, account = target.partition("/")
    if shutil.which("secret-tool") is None:
        raise BrokerRefused(
            "The keyring needs the program secret-tool.", "sudo apt-get install libsecret-tools"
        )
    words = ["secret-tool", "lookup", "service", service, "username", account]
    return _output(words, f"keyring:{target}")


def _output(words: Sequence[str], name: str) -> bytes:
    """Run a program without a shell and return what it prints, bounded in size and time."""
    hint = f"Try it yourself: {shlex.join(words)}"
    try:
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BrokerRefused(f"{name} could not be run: {error.strerror}.", hint) from None
    with child:
        try:
            value = _bounded(child)
            if len(value) > MAX_BYTES + LINE_END:  # it may never end, and is not waited for
                raise BrokerRefused(f"{name} prints more than a credential can have.", hint)
            status = child.wait(timeout=WAIT_S)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise BrokerRefused(f"{name} gave no value in time.", hint) from None
        finally:
            child.kill()
    if status != 0:
        raise BrokerRefused(f"{name} ended with status {status}.", hint)
    return value


def _bounded(child: subprocess.Popen[bytes]) -> bytes:
    """Read at most what a credential may have and one more. Raises TimeoutError."""
    assert child.stdout is not None
    until, found = time.monotonic() + WAIT_S, b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while len(found) <= MAX_BYTES + LINE_END:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            piece = os.read(child.stdout.fileno(), MAX_BYTES + LINE_END + 1 - len(found))
            if not piece:
                break
            found += piece
    return found
