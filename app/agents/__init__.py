"""Agents as data: what to start in the guest, with which environment and which helper files.

Cloche knows no agent by code. Two come with it (`shell`, `demo`); others stand in the user's
configuration.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEMO_PATH = "/home/agent/.cloche-demo.py"
"""Where the demo's script is put in the agent's world: outside the workspace."""


LOGIN_SHELL = 'command -v bash >/dev/null 2>&1 && exec bash -l "$@"; exec sh -l "$@"'
"""An image need not have bash; `sh` it has."""


class Agent(msgspec.Struct, frozen=True):
    """One agent: `command` is an argument vector, run in `/workspace` of the guest."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Texts that are written into the agent's world before it starts, by absolute path."""
    description: str = ""
    source: str = "built in"


def shell() -> Agent:
    """Return the agent that is only a login shell."""
    words = ("sh", "-c", LOGIN_SHELL, "sh")
    return Agent("shell", words, description="a login shell in the workspace")


def demo() -> Agent:
    """Return the deterministic script that shows what a session looks like."""
    return Agent(
        "demo",
        ("python3", "-I", DEMO_PATH),
        files={DEMO_PATH: demo_script()},
        description="ten seconds of work, with a change of every kind",
    )


@cache
def demo_script() -> str:
    """Return the text of the demo's script (it runs in the guest, never here)."""
    return resources.files(__name__).joinpath("demo_script.py").read_text("utf-8")


def builtin() -> dict[str, Agent]:
    """Return the agents that come with Cloche, by name."""
    return {agent.name: agent for agent in (shell(), demo())}


def find_agent(agents: Mapping[str, Agent], name: str) -> Agent:
    """Return the agent called `name`; AppError `not-found` with the nearest name otherwise."""
    found = agents.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, agents, n=1)
    hint = f"Did you mean: cloche run {near[0]}" if near else "See them: cloche agents list"
    raise AppError("not-found", f"There is no agent called '{name}'.", hint)
