"""A guest's pip and npm work under `standard` with what this host has configured, and no more.

Which registries these are is the host's affair: no name of one stands here. The guest is given the
tools of this host (`package_tools`) and installs a small package with each, through the gateway. A
tool that this host has not, or that installs nothing here either, skips its test with that reason.
npm takes as long as all else of it, and is tried where everything is (`CLOCHE_FULL=1`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from app.egress.registries.gather import Host
from app.egress.registries.guest_env import guest_env
from tests.e2e import package_tools
from tests.e2e.sessions import World, store_of
from tests.sampling import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

HOST_S = 90
GUEST_S = 400
CONFIGURED = ("PIP_", "UV_", "SSL_CERT_", "NPM_CONFIG_", "npm_config_", "NODE_EXTRA_")
"""Beginnings of the variables by which a user configures package tools."""

NO_NAME = 6
"""curl's exit status for a name without an address."""

PIP = (
    "-m pip install --quiet --no-cache-dir --disable-pip-version-check --no-input "
    "--only-binary :all: --target {target} six"
)
NPM = (
    "install --silent --no-audit --no-fund --no-update-notifier --ignore-scripts "
    "--prefix {target} left-pad"
)
BOTH = f"""
cd /tmp
step() {{ name=$1; shift; "$@" > $name.out 2>&1; echo "$name $?"; tail -n 20 $name.out >&2; }}
if [ -e pip.zip ]; then
    PYTHONPATH=/tmp/pip.zip step pip python3 {PIP.format(target="/tmp/site")} &
fi
if [ -e npm.tar ]; then
    mkdir npm && tar -xf npm.tar -C npm && step npm ./node npm/bin/npm-cli.js \
        {NPM.format(target="/tmp/modules")} &
fi
wait
PYTHONPATH=/tmp/site step six python3 -c 'import six; assert six.__file__.startswith("/tmp/site")'
[ ! -e npm.tar ] || step left-pad ./node -e 'require("/tmp/modules/node_modules/left-pad")(1, 2)'
curl -sS --max-time 20 http://elsewhere.example/
"""


@dataclass(frozen=True)
class Tool:
    """A package tool: its files with their places in a guest, and how this host runs it itself."""

    files: tuple[tuple[Path, str], ...]
    words: tuple[str, ...]
    variables: dict[str, str]

    def works_here(self) -> bool:
        """Tell whether it installs on this host, with what a guest is given of its settings."""
        environment = os.environ | guest_env(Host()) | self.variables
        try:
            done = subprocess.run(
                self.words,
                env=environment,
                capture_output=True,
                timeout=HOST_S,
                check=False,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def tools_of_this_host(folder: Path) -> dict[str, Tool]:
    """Return those that it has and a guest could run."""
    tools: dict[str, Tool] = {}
    pip = package_tools.pip_archive(folder)
    node = package_tools.node() if FULL else None
    npm = package_tools.npm_archive(folder) if FULL else None
    if pip is not None:
        words = (sys.executable, *PIP.format(target=folder / "site").split())
        tools["pip"] = Tool(((pip, "/tmp/pip.zip"),), words, {"PYTHONPATH": str(pip)})
    if node is not None and npm is not None:
        words = ("npm", *NPM.format(target=folder / "modules").split())
        tools["npm"] = Tool(((node, "/tmp/node"), (npm, "/tmp/npm.tar")), words, {})
    return tools


@dataclass(frozen=True)
class Installed:
    """What a guest was given, how each of its steps ended, and the sandbox's report."""

    tools: dict[str, Tool]
    statuses: dict[str, str]
    report: dict[str, Any]

    def check(self, tool: str, package: str) -> None:
        """Tool and package worked in the guest, or the tool does not work on this host either."""
        if tool not in self.tools:
            pytest.skip(f"this host has no {tool} that the base image could run")
        found = (self.statuses.get(tool), self.statuses.get(package))
        if found != ("0", "0") and not self.tools[tool].works_here():
            pytest.skip(f"{tool} of this host reaches no registry itself")
        assert found == ("0", "0"), self.report


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, guest_image: ImageSet
) -> Iterator[Installed]:
    """One sandbox in which all tools of this host are tried at once."""
    folder = tmp_path_factory.mktemp("packages")
    tools = tools_of_this_host(folder)
    world = World(folder / "w", store_of(guest_image))
    world.environment |= {
        name: value for name, value in os.environ.items() if name.startswith(CONFIGURED)
    }
    world.environment["HOME"] = os.environ["HOME"]
    files = [pair for tool in tools.values() for pair in tool.files]
    copies = [word for host, place in files for word in ("--copy-in", f"{host}:{place}")]
    words = ("sandbox", "--json", "--timeout-s", str(GUEST_S), *copies, "--", "sh", "-c", BOTH)
    try:
        report = world.run(*words, seconds=GUEST_S + HOST_S).json
        steps = [line.split() for line in report["stdout"].splitlines() if line]
        yield Installed(tools, {step[0]: step[-1] for step in steps}, report)
    finally:
        world.close()


def test_pip_installs_from_the_hosts_registry(installed: Installed) -> None:
    installed.check("pip", "six")


def test_npm_installs_from_the_hosts_registry(installed: Installed) -> None:
    if not FULL:
        pytest.skip("npm is tried with CLOCHE_FULL=1")
    installed.check("npm", "left-pad")


def test_nothing_else_is_reached(installed: Installed) -> None:
    assert installed.report["exit_code"] == NO_NAME, installed.report
    denied = [(one["host"], one["code"]) for one in installed.report["egress"]["denied"]]
    assert denied == [("elsewhere.example", "not-listed")]
