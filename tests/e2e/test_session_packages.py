"""A guest's package tools work under `standard` with what this host has configured, and no more.

Which registry that is, is the host's affair: no name of one stands here. The guest takes the steps
of an installation (index page, file, digest, import) without pip, which an emulated processor needs
minutes to load. Where this host cannot take the same steps, the test is skipped with that reason.
"""

from __future__ import annotations

import ensurepip
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.egress.registries.gather import Host
from app.egress.registries.guest_env import guest_env

if TYPE_CHECKING:
    from tests.e2e.sessions import World

pytestmark = pytest.mark.vm

HOST_S = 60
CONFIGURED = ("PIP_", "UV_", "SSL_CERT_")
"""Beginnings of the variables by which a user configures package tools."""

NO_NAME = 6
"""curl's exit status for a name without an address."""

INSTALL = """
import hashlib, os, re, sys, tempfile, urllib.parse, urllib.request

page = (os.environ.get("PIP_INDEX_URL") or sys.argv[1]).rstrip("/") + "/six/"
with urllib.request.urlopen(page, timeout=60) as answer:
    links = re.findall(r'href="([^"]+[.]whl)#sha256=([0-9a-f]{64})"', answer.read().decode())
link, digest = links[-1]
with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=60) as answer:
    wheel = answer.read()
assert hashlib.sha256(wheel).hexdigest() == digest
with tempfile.NamedTemporaryFile(suffix=".whl") as file:
    file.write(wheel)
    file.flush()
    sys.path.insert(0, file.name)
    import six
    assert six.__file__.startswith(file.name)
"""
"""Installs a small package, for one moment."""


def built_in_index() -> str:
    """The index of a pip that nobody configured, which the pip of this Python knows."""
    bundled = Path(ensurepip.__file__).parent / "_bundled"
    wheels = [*bundled.glob("pip-*.whl"), *Path("/usr/share/python-wheels").glob("pip-*.whl")]
    if not wheels:
        pytest.skip("this Python brings no pip that knows an index")
    asking = "from pip._internal.models import index; print(index.PyPI.simple_url)"
    command = [sys.executable, "-c", asking]
    environment = os.environ | {"PYTHONPATH": str(wheels[-1])}
    return subprocess.check_output(command, env=environment, text=True, timeout=HOST_S).strip()


def check_host(index: str) -> None:
    """Skip where this host reaches no registry with what a guest is given of its settings."""
    environment = os.environ | guest_env(Host())
    try:
        command = [sys.executable, "-c", INSTALL, index]
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=HOST_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("no registry answers this host")
    if done.returncode:
        pytest.skip("this host itself reaches no registry of Python packages")


def test_a_package_comes_from_the_hosts_registry_and_nothing_from_elsewhere(world: World) -> None:
    index = built_in_index()
    check_host(index)
    world.environment |= {
        name: value for name, value in os.environ.items() if name.startswith(CONFIGURED)
    }
    world.environment["HOME"] = os.environ["HOME"]
    script = 'python3 -c "$0" "$1" && curl -sS --max-time 20 http://elsewhere.example/'
    done = world.run(
        "sandbox", "--json", "--timeout-s", "220", "--", "sh", "-c", script, INSTALL, index
    )
    report = done.json
    assert report["exit_code"] == NO_NAME, report
    denied = [(one["host"], one["code"]) for one in report["egress"]["denied"]]
    assert denied == [("elsewhere.example", "not-listed")]
