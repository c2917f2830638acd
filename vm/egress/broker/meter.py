"""What a session used, when it has to ask, and what an answer makes of its caps.

Pure but for the reading of the price list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from vm.egress.broker.usage import Usage

_DATED: Final = re.compile(r"(?:-[0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})\Z")
"""How providers name a model's version after its name."""


CapAnswer = Literal["raise", "lift", "stop"]
"""As much again, no cap for this session any more, or nothing more until another word."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Where a session stops and asks; None: nowhere."""

    tokens: int | None = None
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Requests that wait, for a cap is reached; times in unix seconds."""

    requests: int = 0
    since: float = 0.0
    """Since when some wait without a break; it names the question."""
    ends: float = 0.0
    """When the last of them is refused, unless somebody answers."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What was used. `dollars` is only what has a known price; `unpriced` says how much has not."""

    answers: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Tokens of models without a price."""
    silent: int = 0
    """Answers that did not say what they used; their tokens are estimated."""

    def over(self, caps: Caps) -> bool:
        """Tell whether a cap is reached."""
        by_tokens = caps.tokens is not None and self.tokens >= caps.tokens
        return by_tokens or (caps.dollars is not None and self.dollars >= caps.dollars)

    def with_answer(self, usage: Usage) -> Totals:
        """Return the totals with one answer more."""
        now = replace(
            self,
            answers=self.answers + 1,
            tokens=self.tokens + usage.tokens,
            silent=self.silent + (not usage.said),
        )
        price = cost(usage)
        if price is None:
            return replace(now, unpriced=self.unpriced + usage.tokens)
        return replace(now, dollars=self.dollars + price)


def raised(caps: Caps, step: Caps, totals: Totals) -> Caps:
    """Return what "as much again" means: each cap that is reached grows until it is not.

    It grows by its step, one without a step by itself; where none is reached, both grow once.
    """
    tokens, dollars = caps.tokens, caps.dollars
    by_tokens = totals.over(Caps(tokens=tokens))
    by_dollars = totals.over(Caps(dollars=dollars))
    if tokens is not None and (by_tokens or not by_dollars):
        tokens = int(_above(tokens, step.tokens or tokens, totals.tokens))
    if dollars is not None and (by_dollars or not by_tokens):
        dollars = round(_above(dollars, step.dollars or dollars, totals.dollars), 6)
    return Caps(tokens, dollars)


def _above(cap: float, step: float, used: float) -> float:
    """Return the first of cap + step, cap + 2 · step … that is above what was used."""
    times = max(1, int((used - cap) // step) + 1)
    return cap + times * step


@cache
def _prices() -> dict[str, Any]:
    from importlib import resources

    import yaml

    text = resources.files(__package__ or "").joinpath("prices.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def as_of() -> str:
    """Return the day that the price list is of."""
    return str(_prices()["as_of"])


def cost(usage: Usage) -> float | None:
    """Return an answer's list price in US dollars; None where it is not known."""
    price = _price(usage)
    read = usage.fresh + usage.cached + usage.written
    if price is None or read > price.get("up_to", read):
        return None
    if usage.written and "written" not in price:
        return None
    parts = (
        usage.fresh * price["input"],
        usage.cached * price["cached"],
        usage.written * price.get("written", 0.0),
        usage.output * price["output"],
    )
    return sum(parts) / 1_000_000


def _price(usage: Usage) -> dict[str, float] | None:
    """Return the prices of an answer's model.

    An answer that was cut before it named one costs as the dearest, or a program that always hangs
    up at once would never reach a cap in dollars.
    """
    models: dict[str, dict[str, float]] = _prices()["models"]
    if not usage.said and not usage.model:
        dearest = max(models.values(), key=lambda price: price["input"])
        return {name: price for name, price in dearest.items() if name != "up_to"}
    return models.get(_DATED.sub("", usage.model.rpartition("/")[2]))
