"""What git may do over HTTPS: fetch, and push where a rule names repository and ref.

After git's `gitprotocol-http` and `gitprotocol-pack`. Whether a push overwrites history is not on
the wire, so a rule for a ref is a rule for that, too; deletions are refused. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vm.egress.kinds import Refused
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.egress.broker.target import Target

MAX_COMMANDS: Final = 64 * 1024
"""Bytes of the commands of one push; some 400 refs."""

_PATH: Final = re.compile(
    r"/([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+){1,3})"
    r"/(info/refs|git-upload-pack|git-receive-pack)\Z"
)
_COMMAND: Final = re.compile(
    rb"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs/.+)\Z"
)
_REF: Final = re.compile(rb"refs/[A-Za-z0-9._/+@=-]{1,240}\Z")
_RULE: Final = re.compile(r"([A-Za-z0-9._/-]+) (refs/[A-Za-z0-9._/+@=-]+\*?)\Z")

Action = Literal["fetch", "push-list", "push"]


@dataclass(frozen=True, slots=True)
class PushRule:
    """`OWNER/REPOSITORY refs/heads/NAME`; a ref may end in `*`."""

    repository: str
    ref: str

    def passes(self, repository: str, ref: str) -> bool:
        """Tell whether a push of this ref is meant."""
        if repository != self.repository:
            return False
        return ref.startswith(self.ref[:-1]) if self.ref.endswith("*") else ref == self.ref


def parse_push(text: str) -> PushRule:
    """Read a rule. BrokerRefused where it does not name both."""
    match = _RULE.match(text)
    if match is None or ".." in text:
        hint = "Write OWNER/REPOSITORY refs/heads/NAME, where NAME may end in *"
        raise BrokerRefused(f"{text[:200]!r} is no rule for pushes.", hint)
    return PushRule(match[1].removesuffix(".git").lower(), match[2])


def action(method: str, target: Target, push: Iterable[PushRule]) -> tuple[Action, str]:
    """Return what a request does and with which repository. Raises Refused."""
    match = _PATH.match(target.path)
    if match is None:
        raise Refused("git-path")
    repository, what = match[1].removesuffix(".git").lower(), match[2]
    asks = (method, what, target.query)
    if asks in (
        ("GET", "info/refs", "service=git-upload-pack"),
        ("POST", "git-upload-pack", ""),
    ):
        return "fetch", repository
    if not any(rule.repository == repository for rule in push):
        raise Refused("git-push" if "receive-pack" in what + target.query else "git-path")
    if asks == ("GET", "info/refs", "service=git-receive-pack"):
        return "push-list", repository
    if asks == ("POST", "git-receive-pack", ""):
        return "push", repository
    raise Refused("git-path")


class Commands:
    """Reads the commands of a push; `feed` until `whole`, then what was fed may go on."""

    def __init__(self, repository: str, rules: Iterable[PushRule]) -> None:
        self._repository = repository
        self._rules = tuple(rules)
        self._data = b""
        self._at = 0
        self._first = True
        self.whole = False

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body. Raises Refused for a command that no rule names."""
        self._data += piece
        while not self.whole and len(self._data) - self._at >= 4:
            head = self._data[self._at : self._at + 4]
            if not re.fullmatch(rb"[0-9a-fA-F]{4}", head):
                raise Refused("git-framing")
            size = int(head, 16)
            if size == 0:
                self.whole = True
                return
            if size < 5:
                raise Refused("git-framing")
            if self._at + size > MAX_COMMANDS:
                raise Refused("git-too-many-commands")
            if len(self._data) - self._at < size:
                return
            self._line(self._data[self._at + 4 : self._at + size])
            self._at += size

    def _line(self, line: bytes) -> None:
        command, nul, features = line.partition(b"\0")
        if nul and not self._first:
            raise Refused("git-framing")
        if b"push-options" in features.split():
            raise Refused("git-push-options")
        match = _COMMAND.match(command.removesuffix(b"\n"))
        if match is None or not _REF.match(match[3]) or b".." in match[3]:
            raise Refused("git-command")
        self._first = False
        if not match[2].strip(b"0"):
            raise Refused("git-delete")
        ref = match[3].decode("ascii")
        if not any(rule.passes(self._repository, ref) for rule in self._rules):
            raise Refused("git-push")
