"""What keeper and broker say to each other: one JSON object a line, never the value of a key."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vm.egress.broker.meter import Caps, Totals, Waiting
from vm.egress.proxy import Proxies

MAX_LINE: Final = 4 << 20


class Begin(msgspec.Struct, tag="begin", frozen=True):
    """To the broker, first: what it serves."""

    services: dict[str, dict[str, Any]]
    """Settings by name; credentials are references."""
    seed: str
    """The session's; its placeholders come of it."""
    workspace: str = ""
    """Where no credential may lie; empty: nowhere in particular."""
    caps: Caps = Caps()
    ask: bool = True
    """Whether somebody can be asked at a cap."""
    totals: Totals = Totals()
    """What the session used before this broker was started."""
    stopped: bool = False
    """At a cap everything is refused: that was the user's answer."""
    proxies: Proxies = Proxies()


class Capped(msgspec.Struct, tag="caps", frozen=True):
    """To the broker: the caps that hold from now on, an answer to `Over` or not."""

    caps: Caps
    stopped: bool = False
    """Nothing waits at them any more; what does is refused."""
    ask: bool = True
    """Whether somebody can be asked now; else as `stopped`."""


class Missing(msgspec.Struct, frozen=True):
    """Why a service is not there."""

    name: str
    message: str
    hint: str
    unset: bool = False
    """Its key was never given: a variable of the environment that is not set."""


class Ready(msgspec.Struct, tag="ready", frozen=True):
    """From the broker, first: what it has."""

    hosts: tuple[str, ...]
    """Internal names that it serves."""
    env: dict[str, str]
    """What the guest is given: addresses and placeholders."""
    missing: tuple[Missing, ...] = ()


class Cannot(msgspec.Struct, tag="cannot", frozen=True):
    """From the broker, first: it holds nothing, and ends."""

    message: str
    hint: str


class Asked(msgspec.Struct, tag="asked", frozen=True):
    """From the broker: a request was answered or refused."""

    host: str
    """The internal name."""
    upstream: str
    method: str
    path: str
    status: int
    code: str
    up: int
    down: int
    seconds: float
    scrubbed: int


class Used(msgspec.Struct, tag="used", frozen=True):
    """From the broker: what the session used in all."""

    totals: Totals


class Over(msgspec.Struct, tag="over", frozen=True):
    """From the broker: a cap is reached, and so many requests wait for a word about it."""

    waiting: Waiting


Order = Begin | Capped
Report = Ready | Cannot | Asked | Used | Over

_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def line(message: Order | Report) -> bytes:
    """Return a message as it goes over the wire."""
    return msgspec.json.encode(message) + b"\n"


def order(raw: bytes) -> Order:
    """Read what a keeper says. Raises msgspec.DecodeError, a ValueError."""
    return _orders.decode(raw)


def report(raw: bytes) -> Report:
    """Read what a broker says. Raises msgspec.DecodeError, a ValueError."""
    return _reports.decode(raw)
