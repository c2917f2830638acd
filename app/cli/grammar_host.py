"""The grammar of the commands about this host and its images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli.grammar import add_group

if TYPE_CHECKING:
    import argparse

    from app.cli.grammar import Adder, Commands


def add_host(add: Adder, commands: Commands) -> None:
    """Add what is about this host: images, agents, its fitness."""
    add("doctor", "look whether this host can run Cloche, and say how to mend it")
    add("version", "print the version")
    _images(commands)
    agents = {
        "list": "list the agents that can be run",
        "inspect": "show what a session of an agent is given",
    }
    found = add_group(commands, "agents", "agents", agents)
    found["inspect"].add_argument("name", metavar="AGENT", help="see: cloche agents list")


def _images(commands: Commands) -> None:
    actions = {
        "build": "build an image",
        "import": "bring in an image for containers: from a registry, a layout or an archive",
        "list": "list the images, why they are stale, and what was built earlier",
        "rm": "remove an image or a version of one that no session needs",
    }
    found = add_group(commands, "image", "guest images", actions)
    build, rm = found["build"], found["rm"]
    build.add_argument("name", metavar="NAME", nargs="?", default="base", help="default: base")
    text = "build it anew even when it is there"
    build.add_argument("--force", action="store_true", help=text)
    _import(found["import"])
    text = "ask no registry whether a tag moved on"
    found["list"].add_argument("--offline", action="store_true", help=text)
    text = "a name, or the beginning of a digest"
    rm.add_argument("target", metavar="IMAGE", nargs="?", default="", help=text)
    text = "every earlier version that nothing needs"
    rm.add_argument("--unused", action="store_true", help=text)
    rm.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def _import(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "reference",
        metavar="REF",
        help="docker://HOST/NAME:TAG or @DIGEST (also without docker://), oci:DIR:TAG, "
        "docker-archive:FILE (what `docker save` writes), docker-archive:FILE:NAME:TAG",
    )
    command.add_argument(
        "--name", default="", metavar="NAME", help="what it is called here; default: NAME-TAG"
    )
    command.add_argument(
        "--pull",
        choices=("always", "background", "if-not-present", "never"),
        default="always",
        metavar="WHEN",
        help="always (the default): fetch it when it moved on; background: the same, later, when "
        "it is there; if-not-present; never: fail when it is not there",
    )
    command.add_argument(
        "--plain-http", action="store_true", help="speak to its registry also without TLS"
    )
    command.add_argument(
        "--force", action="store_true", help="fetch and pack it even where nothing moved on"
    )
