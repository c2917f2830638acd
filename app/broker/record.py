"""What a session's record says of its broker: settings and references, never the value of a key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from app.agents import Need  # noqa: TC001 - msgspec reads the annotation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.agents import Agent
    from app.broker.settings import BrokerSettings


class WantedService(msgspec.Struct, frozen=True):
    """A service that the session's agent is given."""

    data: dict[str, Any]
    """Its settings, as in `services.yaml`."""
    need: Need = "optional"


class BrokerRecord(msgspec.Struct, frozen=True):
    """The broker of one session."""

    services: dict[str, WantedService] = {}
    """By name; empty: the session has no broker."""
    seed: str = ""
    """The session's placeholders come of it. It is worth nothing anywhere else."""
    tokens: int | None = None
    usd: float | None = None

    def variables(self) -> Iterable[str]:
        """Return the variables of the user's environment that hold keys."""
        for service in self.services.values():
            kind, _, name = str(service.data.get("credential", "")).partition(":")
            if kind == "env":
                yield name


def broker_of(agent: Agent, settings: BrokerSettings) -> BrokerRecord:
    """Return what a new session of an agent is given."""
    if not agent.services:
        return BrokerRecord()
    from vm.egress.broker.services import settings_with

    known = settings_with(settings.services)
    wanted = {name: WantedService(known[name], need) for name, need in agent.services.items()}
    return BrokerRecord(wanted, secrets.token_hex(20), settings.tokens, settings.usd)
