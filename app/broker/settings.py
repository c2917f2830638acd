"""The broker's part of the user's configuration: services, where their keys are, and a cap.

    broker:
      services:
        anthropic: {credential: "file:/home/me/.keys/anthropic"}
        lab: {upstream: "https://api.lab.example", credential: "env:LAB_KEY", …}
      cap: {usd: 5, tokens: 2000000}

A workspace's file has no such part: agents write there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from app.config_checks import mapping, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.config_yaml import Document, Key

BUILT_IN: Final = ("anthropic", "openai", "google", "openrouter", "github")
"""The services of `vm/egress/broker/services.yaml`, which is read only where one is needed."""

KEY: Final[Key] = ("broker",)
MAX_TOKENS: Final = 10_000_000_000
MAX_USD: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the user says about the broker."""

    services: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, "Mapping[str, Any]"]
    )
    """Settings by service, as they stand in the file; they were checked."""
    tokens: int | None = None
    usd: float | None = None

    def known(self) -> tuple[str, ...]:
        """Return the names of all services."""
        return tuple(dict.fromkeys((*BUILT_IN, *self.services)))


def read_broker(document: Document, value: Any) -> BrokerSettings:
    """Read the part. Raises AppError `bad-config` that names file, line and column."""
    if value is None:
        return BrokerSettings()
    given = mapping(document, KEY, value, ("services", "cap"))
    tokens, usd = _cap(document, given.get("cap"))
    return BrokerSettings(_services(document, given.get("services")), tokens, usd)


def _services(document: Document, value: Any) -> dict[str, dict[str, Any]]:
    if value is None:
        return {}
    from vm.egress.broker.services import with_own
    from vm.errors import BrokerRefused

    given = mapping(document, (*KEY, "services"), value, None)
    for name, data in given.items():
        try:
            with_own({name: data})
        except BrokerRefused as error:
            sentence = error.message.rstrip(".")
            raise document.error((*KEY, "services", name), sentence, error.hint) from None
    return given


def _cap(document: Document, value: Any) -> tuple[int | None, float | None]:
    if value is None:
        return None, None
    key = (*KEY, "cap")
    given = mapping(document, key, value, ("usd", "tokens"))
    tokens = given.get("tokens")
    if tokens is not None:
        tokens = number(document, (*key, "tokens"), tokens, 1, MAX_TOKENS)
    usd = given.get("usd")
    if usd is None:
        return tokens, None
    if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not 0 < usd <= MAX_USD:
        raise document.error((*key, "usd"), f"'usd' must be a number above 0, at most {MAX_USD}")
    return tokens, float(usd)
