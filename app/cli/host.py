"""Commands about this host: images, agents, version."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from app.agents import find_agent
from app.config import load_config
from app.errors import EXIT_DONE
from app.paths import Paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from app.agents import Agent
    from app.cli.output import Output
    from app.config import Config


def version(_: argparse.Namespace, output: Output) -> int:
    """Print the version."""
    from cloche import __version__

    output.result({"version": __version__}, lambda: output.line(f"cloche {__version__}"))
    return EXIT_DONE


def agents(arguments: argparse.Namespace, output: Output) -> int:
    """List the agents that can be run, or show one."""
    config = load_config(Paths.from_environment().config)
    if arguments.action == "inspect":
        return _inspect(config, find_agent(config.agents, arguments.name), output)
    ordered = [config.agents[name] for name in sorted(config.agents)]
    output.result(
        {"agents": [_agent(agent) for agent in ordered]},
        lambda: output.table(
            [(agent.name, agent.description or " ".join(agent.command)) for agent in ordered]
        ),
    )
    return EXIT_DONE


def _agent(agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "command": list(agent.command),
        "env": sorted(agent.env),
        "description": agent.description,
        "source": agent.source,
        "image": agent.stands_on,
        "install": agent.install,
        "services": dict(agent.services),
    }


def _inspect(config: Config, agent: Agent, output: Output) -> int:
    """Show all that a session of an agent is given; of keys only where they are looked for."""
    from vm.image import store

    mine = config.egress.agents.get(agent.name)
    found = _agent(agent) | {
        "image_built": agent.stands_on in store.names(Paths.from_environment().store),
        "services": _services(config, agent),
        "profile": (mine.profile if mine is not None else "") or config.egress.profile,
        "providers": _providers(agent, None if mine is None else mine.providers),
    }
    output.result({"agent": found}, lambda: _print_agent(found, output))
    return EXIT_DONE


def _services(config: Config, agent: Agent) -> list[dict[str, object]]:
    """Return what the broker is for an agent, service by service."""
    from vm.egress.broker.services import with_own

    known = with_own(config.broker.services)
    return [
        {
            "name": name,
            "need": need,
            "upstream": f"{known[name].host}:{known[name].port}",
            "url": known[name].url,
            "credential": str(known[name].credential),
            "env": sorted(known[name].env),
        }
        for name, need in agent.services.items()
    ]


def _providers(agent: Agent, own: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the hosts of the model providers that an agent may reach, by provider."""
    from vm.egress.profiles import load, providers_of

    hosts = load().providers
    names = providers_of(agent.name) if own is None else own
    return {name: [rule.text for rule in hosts[name]] for name in names}


def _print_agent(found: dict[str, Any], output: Output) -> None:
    rows = [
        ("name", found["name"]),
        ("description", found["description"]),
        ("command", shlex.join(found["command"])),
        ("image", found["image"] + ("" if found["image_built"] else " (not there yet)")),
        ("install", found["install"]),
        ("variables", " ".join(found["env"])),
        ("profile", found["profile"]),
        ("source", found["source"]),
    ]
    rows += [
        (f"service {one['name']}", f"{one['need']}, {one['upstream']}, key: {one['credential']}")
        for one in found["services"]
    ]
    rows += [(f"hosts of {name}", " ".join(hosts)) for name, hosts in found["providers"].items()]
    output.table([(name, text) for name, text in rows if text])


def image(arguments: argparse.Namespace, output: Output) -> int:
    """Build or import an image, list those that are there, or remove one."""
    from app.cli import image_make, images

    action = {
        "build": image_make.build,
        "import": image_make.bring,
        "list": images.list_images,
        "rm": images.remove,
    }[arguments.action]
    return action(arguments, output)
