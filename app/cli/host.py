"""Commands about this host: images, agents, version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.config import load_config
from app.errors import EXIT_DONE
from app.paths import Paths

if TYPE_CHECKING:
    import argparse

    from app.agents import Agent
    from app.cli.output import Output


def version(_: argparse.Namespace, output: Output) -> int:
    """Print the version."""
    from cloche import __version__

    output.result({"version": __version__}, lambda: output.line(f"cloche {__version__}"))
    return EXIT_DONE


def agents(_: argparse.Namespace, output: Output) -> int:
    """List the agents that can be run."""
    known = load_config(Paths.from_environment().config).agents
    ordered = [known[name] for name in sorted(known)]
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
    }


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
