"""What keeper and gateway say to each other: one JSON object a line, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from vm.egress.kinds import Entry  # noqa: TC001 - msgspec reads the annotations
from vm.egress.policy import Policy  # noqa: TC001 - msgspec reads the annotations
from vm.egress.proxy import Proxies
from vm.egress.questions import TIMEOUT_S, Question

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINE: Final = 4 << 20
"""Bytes of one message. A policy of ten thousand rules has about two million."""


class InForce(msgspec.Struct, tag="policy", frozen=True):
    """To the gateway: what holds from now on."""

    policy: Policy
    timeout_s: float = TIMEOUT_S
    """How long a question waits for its answer, those that are open included."""
    proxies: Proxies = Proxies()
    """This host's way out, credentials included. Only the first message's counts, as of `door`."""
    door: str = ""
    """Where the session's credential broker takes connections; empty: there is none."""


class Typed(msgspec.Struct, tag="typed", frozen=True):
    """To the gateway: somebody types into the machine, which may have no time for its network."""


class Happened(msgspec.Struct, tag="entry", frozen=True):
    """From the gateway: a line for the log."""

    entry: Entry


class Waits(msgspec.Struct, tag="questions", frozen=True):
    """From the gateway: all that is asked now; empty when nothing is."""

    questions: tuple[Question, ...]


class Holds(msgspec.Struct, tag="holds", frozen=True):
    """From the gateway: one more policy that was sent is in force."""


Order = InForce | Typed
Report = Happened | Waits | Holds

_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_beginnings: msgspec.json.Decoder[InForce] = msgspec.json.Decoder(InForce)
_rows: msgspec.json.Decoder[tuple[str, str]] = msgspec.json.Decoder(tuple[str, str])


def line(message: Order | Report) -> bytes:
    """Return a message as it goes over the wire."""
    return msgspec.json.encode(message) + b"\n"


def report(raw: bytes) -> Report:
    """Read what a gateway says. Raises msgspec.DecodeError, a ValueError."""
    return _reports.decode(raw)


def beginning(raw: bytes) -> InForce:
    """Read what a keeper says first. Raises msgspec.DecodeError, a ValueError."""
    return _beginnings.decode(raw)


def order(raw: bytes) -> Order:
    """Read what a keeper says. Raises msgspec.DecodeError, a ValueError."""
    return _orders.decode(raw)


def row(name: str, address: str) -> bytes:
    """Return one row of the file of names."""
    return msgspec.json.encode((name, address)) + b"\n"


def rows(raw: bytes) -> Iterable[tuple[str, str]]:
    """Read a file of names. What a crash cut off at its end is no row. Raises a ValueError."""
    return [_rows.decode(text) for text in raw.split(b"\n")[:-1]]
