"""The network's part of the configuration: the user's options, and what a project may tighten.

In `config.yaml`:

    egress: {profile: standard, unlisted: ask, wait: 60, ca: host}
    agents:
      mine: {command: [my-agent], egress: {profile: locked, providers: [anthropic]}}

In a project's `.cloche.yaml`, which can allow nothing:

    egress: {profile: locked, unlisted: deny, deny: [ads.example]}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from app.config_checks import choice, mapping, number, texts
from vm.egress.addresses import Own
from vm.egress.profiles import DEFAULT, NAMES, ProfileName, load, tightest
from vm.egress.questions import MAX_TIMEOUT_S
from vm.egress.rules import BadRule, Rule, check_effective, parse_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.config_yaml import Document, Key

Unlisted = Literal["", "ask", "deny"]
"""What happens to a name that no rule is about; empty: what the profile says."""

Authorities = Literal["host", "guest"]
"""Whose certificate authorities a guest believes."""

AUTHORITIES: Final = ("host", "guest")
UNLISTED: Final = ("ask", "deny")
WAIT: Final = (5, int(MAX_TIMEOUT_S))
"""Least and most seconds that a connection waits for an answer."""

KEY: Final[Key] = ("egress",)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the user says about one agent."""

    profile: ProfileName | Literal[""] = ""
    providers: tuple[str, ...] | None = None
    """The model providers that it talks to; None: those that are known for its name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's options for every session."""

    profile: ProfileName = DEFAULT
    unlisted: Unlisted = ""
    wait: int = 60
    """How many seconds a connection waits for an answer."""
    agents: Mapping[str, AgentSettings] = field(default_factory=dict[str, AgentSettings])
    ca: Authorities = "host"


@dataclass(frozen=True, slots=True)
class Project:
    """What a workspace's own file tightens."""

    profile: ProfileName = "permissive"
    """A wider one than the user's changes nothing."""
    unlisted: Unlisted = ""
    deny: tuple[Rule, ...] = ()

    def tightened(self, profile: ProfileName, unlisted: Unlisted) -> tuple[ProfileName, Unlisted]:
        """Return what is left of the user's choice."""
        return tightest(profile, self.profile), "deny" if self.unlisted == "deny" else unlisted


def read_settings(document: Document, value: Any, agents: Any) -> Settings:
    """Read the user's options and those of the `agents`, whose other keys were checked before.

    Raises AppError `bad-config`.
    """
    known = ("profile", "unlisted", "wait", "ca")
    given = mapping(document, KEY, {} if value is None else value, known)
    entries: dict[str, dict[str, Any]] = agents or {}
    return Settings(
        _profile(document, KEY, given, DEFAULT),
        _unlisted(document, given),
        number(document, (*KEY, "wait"), given.get("wait", Settings().wait), *WAIT),
        {
            name: read_agent(document, ("agents", name, "egress"), entry["egress"])
            for name, entry in entries.items()
            if entry.get("egress") is not None
        },
        cast("Authorities", choice(document, (*KEY, "ca"), given, AUTHORITIES, "host")),
    )


def read_project(document: Document, value: Any) -> Project:
    """Read what a project tightens. Raises AppError `bad-config`."""
    if value is None:
        return Project()
    given = mapping(document, KEY, value, ("profile", "unlisted", "deny"))
    unlisted = _unlisted(document, given)
    if unlisted == "ask":
        raise document.error((*KEY, "unlisted"), "a project may only set 'unlisted: deny'")
    denies = texts(document, (*KEY, "deny"), given.get("deny", []))
    rules = tuple(_deny(document, index, text) for index, text in enumerate(denies))
    return Project(_profile(document, KEY, given, "permissive"), unlisted, rules)


def read_agent(document: Document, key: Key, value: Any) -> AgentSettings:
    """Read what the user says about one agent. Raises AppError `bad-config`."""
    given = mapping(document, key, value, ("profile", "providers"))
    profile = _profile(document, key, given, DEFAULT) if "profile" in given else ""
    providers = None
    if "providers" in given:
        providers = texts(document, (*key, "providers"), given["providers"])
        for index, name in enumerate(providers):
            if name not in load().providers:
                known = f"Known: {', '.join(load().providers)}"
                reason = f"there is no provider '{name}'"
                raise document.error((*key, "providers", index), reason, known)
    return AgentSettings(profile, providers)


def _profile(
    document: Document, key: Key, given: dict[str, Any], default: ProfileName
) -> ProfileName:
    return cast("ProfileName", choice(document, (*key, "profile"), given, NAMES, default))


def _unlisted(document: Document, given: dict[str, Any]) -> Unlisted:
    if "unlisted" not in given:
        return ""
    return cast("Unlisted", choice(document, (*KEY, "unlisted"), given, UNLISTED, "ask"))


def _deny(document: Document, index: int, text: str) -> Rule:
    key = (*KEY, "deny", index)
    line, _ = document.places[key]
    try:
        rule = parse_rule(text, "deny", origin=f"{document.path.name}:{line}")
        check_effective(rule, Own(), users=False)
    except BadRule as error:
        raise document.error(key, error.reason.rstrip(".")) from None
    return rule
