"""Commands about this host: images, agents, version."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from app.config import load_config
from app.errors import EXIT_DONE, AppError
from app.paths import Paths, private_folder

if TYPE_CHECKING:
    import argparse

    from app.agents import Agent
    from app.cli.output import Output
    from vm.image import ImageSet


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
    """Build an image, list those that are there, or remove one."""
    if arguments.action == "build":
        return _build(arguments, output)
    from app.cli import images

    return (
        images.remove(arguments, output) if arguments.action == "rm" else images.list_images(output)
    )


RECIPES: Final = ("base",)
"""What can be built."""


def _build(arguments: argparse.Namespace, output: Output) -> int:
    from vm.image import build_image

    if arguments.name not in RECIPES:
        text = f"There is no recipe for an image called '{arguments.name}'."
        raise AppError("not-found", text, f"Build one of these: {', '.join(RECIPES)}")
    paths = Paths.from_environment()
    private_folder(paths.data)
    private_folder(paths.store)
    bar = _Bar(shown=sys.stderr.isatty())
    try:
        built = build_image(
            paths.store, name=arguments.name, progress=bar.show, force=arguments.force
        )
    finally:
        bar.end()  # what is said next, an error too, begins its own line
    output.result(
        {"image": _image(built)}, lambda: output.line(f"image {built.name} {built.digest[:12]}")
    )
    return EXIT_DONE


def _image(found: ImageSet) -> dict[str, Any]:
    return {name: str(value) for name, value in asdict(found).items()}


class _Bar:
    """Progress on stderr: a bar on a terminal, one line a step elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._last = ""

    def show(self, what: str, share: float) -> None:
        """Draw the bar."""
        if self._shown:
            cells = round(30 * min(1.0, max(0.0, share)))
            line = f"{'━' * cells}{'─' * (30 - cells)} {share:4.0%} {what}"
            # a line that wraps could not be drawn over
            sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        elif what != self._last:
            sys.stderr.write(f"{what}\n")
        self._last = what
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line, if there is one."""
        if self._shown and self._last:
            sys.stderr.write("\n")
