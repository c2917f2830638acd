"""The profiles as values, read from `profiles.yaml`: what is let through where nobody said more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import yaml

from vm.egress.policy import Profile
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vm.egress.kinds import Action
    from vm.egress.rules import Rule

ProfileName = Literal["locked", "standard", "permissive"]

NAMES: Final[tuple[ProfileName, ...]] = get_args(ProfileName)
"""From the tightest to the widest."""

DEFAULT: Final[ProfileName] = "standard"


@dataclass(frozen=True, slots=True)
class ProfileData:
    """What the file says: hosts by provider, development hosts, and each profile's switches."""

    providers: Mapping[str, tuple[Rule, ...]]
    development: tuple[Rule, ...]
    switches: Mapping[str, Mapping[str, Any]]
    agents: Mapping[str, tuple[str, ...]]
    """The providers of well-known agents."""


@cache
def load() -> ProfileData:
    """Read the file that comes with Cloche."""
    text = resources.files("vm.egress").joinpath("profiles.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return ProfileData(
        {name: _rules(hosts, name) for name, hosts in data["providers"].items()},
        _rules(data["development"], "development hosts"),
        data["profiles"],
        {name: tuple(providers) for name, providers in data["agents"].items()},
    )


def _rules(hosts: Iterable[str], origin: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(host, "allow", origin=origin) for host in hosts)


def providers_of(agent: str) -> tuple[str, ...]:
    """Return the providers of an agent by its name; all of them for one that nobody knows."""
    data = load()
    return data.agents.get(agent, tuple(data.providers))


def profile(name: ProfileName, providers: Iterable[str], unlisted: Action | None = None) -> Profile:
    """Return a profile for an agent that talks to these providers.

    `unlisted` is what the user wants instead of the profile's own for names that no rule is about.
    Raises KeyError for a provider that the file does not have.
    """
    data = load()
    switches = data.switches[name]
    rules = [rule for provider in providers for rule in data.providers[provider]]
    if switches["development"]:
        rules.extend(data.development)
    named = tuple(replace(rule, origin=f"profile {name}, {rule.origin}") for rule in rules)
    return Profile(name, named, unlisted or switches["unlisted"], switches["hidden"])


def takes_registries(name: ProfileName) -> bool:
    """Tell whether the registries that this host is configured for belong to a profile."""
    return bool(load().switches[name]["registries"])


def tightest(first: ProfileName, second: ProfileName) -> ProfileName:
    """Return the tighter of two profiles."""
    return NAMES[min(NAMES.index(first), NAMES.index(second))]
