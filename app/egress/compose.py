"""Joins everything that says what a session may reach into the one policy that decides."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from app.config import load_config, load_project
from app.egress.registries.asking import Asker
from app.egress.registries.gather import Host, gather
from app.egress.registries.sources import Sorted, sort_out
from app.egress.rules_file import Section, load_rules
from app.egress.session import SessionEgress
from app.egress.settings import AgentSettings, Project
from app.wire_text import path_text
from vm.egress.names import INTERNAL
from vm.egress.policy import Policy
from vm.egress.profiles import ProfileName, profile, providers_of, takes_registries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from app.config import Config
    from app.paths import Paths
    from vm.egress.kinds import Action

NOTHING: Final = AgentSettings()
"""What is said of an agent that the configuration does not name."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A policy, and what the user should know of it."""

    policy: Policy
    wait: int
    """How many seconds a connection waits for an answer."""
    notes: tuple[str, ...] = ()
    """One sentence for each registry of this host that no rule can open."""


@dataclass(frozen=True, slots=True)
class About:
    """Which session a policy is for."""

    agent: str
    workspace: Path | None
    """None: a sandbox without one."""
    egress: SessionEgress = field(default_factory=SessionEgress)
    ask: bool = True
    """Whether somebody can answer; headless runs deny what would be asked."""
    services: Iterable[str] | None = None
    """The broker's services that the session has; None: those that its agent is given."""


def compose(paths: Paths, about: About, host: Host | None = None) -> Composed:
    """Read all files that have a say and return the policy.

    A session's registries are those that were found when it began. For anything else `host` says
    where they are looked for; None: on this host. Takes about a second where a tool must be asked
    for the first time. Raises AppError for a file with a mistake in it.
    """
    config = load_config(paths.config)
    settings = config.egress
    mine = settings.agents.get(about.agent, NOTHING)
    rules = load_rules(paths.config)
    project = Project() if about.workspace is None else load_project(about.workspace)
    wanted: ProfileName = about.egress.profile or mine.profile or settings.profile
    name, unlisted = project.tightened(wanted, settings.unlisted)
    registries = _registries(paths, about, name, host)
    here = Section() if about.workspace is None else rules.project(path_text(about.workspace))
    providers = providers_of(about.agent) if mine.providers is None else mine.providers
    policy = Policy(
        profile=profile(name, providers, cast("Action | None", unlisted or None)),
        always=rules.always.deny,
        workspace=here.deny,
        session=about.egress.parsed(),
        project=project.deny,
        user=(*here.allow, *rules.always.allow, *registries.rules),
        ask=about.ask,
        closed=about.egress.closed or not about.egress.network,
        internal=tuple(f"{name}.{INTERNAL}" for name in _services(config, about)),
    )
    return Composed(policy, settings.wait, registries.refused)


def _services(config: Config, about: About) -> Iterable[str]:
    if about.services is not None:
        return about.services
    agent = config.agents.get(about.agent)
    return agent.services if agent is not None else ()


def _registries(paths: Paths, about: About, name: ProfileName, host: Host | None) -> Sorted:
    if not takes_registries(name):
        return Sorted((), ())
    if about.egress.registries is not None:
        return Sorted(about.egress.registry_rules(), about.egress.notes)
    if host is None:
        host = Host(ask=Asker(dict(os.environ), paths.cache, about.workspace))
    return sort_out(gather(host))
