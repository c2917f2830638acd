"""Agents as data: what to start in the guest, with which environment and which helper files.

Cloche knows no agent by code. `shell` and `demo` are made here, the well-known ones stand in
`agents.yaml`, others in the user's configuration.
"""

from __future__ import annotations

import difflib
import shlex
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec
import yaml

from app.errors import AppError
from vm.egress.names import INTERNAL
from vm.install import PREFIX, PROGRAMS, USUAL_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

DEMO_PATH = "/home/agent/.cloche-demo.py"
"""Where the demo's script is put in the agent's world: outside the workspace."""


LOGIN_SHELL = 'command -v bash >/dev/null 2>&1 && exec bash -l "$@"; exec sh -l "$@"'
"""An image need not have bash; `sh` it has."""


Need = Literal["required", "optional"]
"""Whether an agent is started without a service of the broker."""

NEEDS: Final[tuple[Need, ...]] = get_args(Need)

OWN_PREFIX: Final = "/home/agent/.local"
"""Where `install` puts a program in a session; looked at before the image's own folders."""

STARTER: Final = (
    'command -v "$2" >/dev/null 2>&1 || { printf "%s\\n" "$1" >&2; exit 127; }; shift; exec "$@"'
)
"""Says what to install where the program is not there. Arguments: that text, the command."""


class Agent(msgspec.Struct, frozen=True):
    """One agent: `command` is an argument vector, run in `/workspace` of the guest."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Texts that are written into the agent's world before it starts, by absolute path."""
    first: dict[str, str] = {}
    """The same where there is no such file yet: settings, which are the session's from then on."""
    description: str = ""
    source: str = "built in"
    services: dict[str, Need] = {}
    """The services of the broker that it is given."""
    image: str = ""
    """What it stands on where nobody says otherwise; empty: `stands_on` knows."""
    below: str = msgspec.field(default="", name="from")
    """The recipe whose image is made into the agent's own by `install`."""
    install: str = ""
    """A shell's line that brings the program into a machine that has the network, `{prefix}` being
    the folder that it is installed into."""
    fetch: tuple[str, ...] = ()
    """What an image is made of before `install` is tried: PACKAGE FILE NAME of `npm_fetch.py`."""
    stalled_s: int = 300
    """Seconds without output and processor time, while a program of its has the terminal, after
    which the agent counts as stalled; 0: never."""

    @property
    def stands_on(self) -> str:
        """The image of its sessions: one of its own where there is a recipe for that."""
        return self.image or (self.name if self.below else "base")

    def argv(self, session: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return what is started; where the program can be missing, with a word about it."""
        words = (*(self._filled(word) for word in self.command), *more)
        if not self.install:
            return words
        line = self.install.replace(PREFIX, OWN_PREFIX)
        told = (
            f"{self.command[0]} is not in this machine. Bring it into the session:\n"
            f"  cloche exec {session} -- sh -c {shlex.quote(line)}\n"
            f"  cloche stop {session} && cloche resume {session}"
        )
        if self.below:
            told += f"\nor have an image with it for every session: cloche image build {self.name}"
        return ("sh", "-c", STARTER, "sh", told, *words)

    def variables(self, world: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in a world that has one.

        Its own wins; addresses of services are filled in, and variables that the world has.
        """
        own = {name: self._filled(text) for name, text in self.env.items()}
        for name, value in world.items():
            own = {key: text.replace(f"{{{name}}}", value) for key, text in own.items()}
        found = {**world, **own}
        if self.install and "PATH" not in self.env:
            usual = world.get("PATH") or USUAL_PATH
            found["PATH"] = f"{OWN_PREFIX}/bin:{PROGRAMS}/bin:{usual}"
        return found

    def first_files(self) -> dict[str, str]:
        """Return `first` with the addresses of services filled in."""
        return {path: self._filled(text) for path, text in self.first.items()}

    def _filled(self, text: str) -> str:
        for service in self.services:
            text = text.replace(f"{{{service}}}", f"http://{service}.{INTERNAL}")
        return text


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


@cache
def npm_fetch_script() -> str:
    """Return the text of what fetches a package's program (it runs in a machine, never here)."""
    return resources.files(__name__).joinpath("npm_fetch.py").read_text("utf-8")


def builtin() -> dict[str, Agent]:
    """Return the agents that come with Cloche, by name."""
    return {agent.name: agent for agent in (shell(), demo(), *_well_known())}


@cache
def _well_known() -> tuple[Agent, ...]:
    data: dict[str, dict[str, Any]] = yaml.safe_load(
        resources.files(__name__).joinpath("agents.yaml").read_text("utf-8")
    )
    return tuple(
        msgspec.convert({"name": name, **settings}, Agent) for name, settings in data.items()
    )


def find_agent(agents: Mapping[str, Agent], name: str) -> Agent:
    """Return the agent called `name`; AppError `not-found` with the nearest name otherwise."""
    found = agents.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, agents, n=1)
    hint = f"Did you mean: cloche run {near[0]}" if near else "See them: cloche agents list"
    raise AppError("not-found", f"There is no agent called '{name}'.", hint)
