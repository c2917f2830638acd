"""The grammar of the commands about sessions as wholes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.grammar import add_repeated

if TYPE_CHECKING:
    from app.cli.grammar import Adder


def add_sessions(add: Adder) -> None:
    """Add what starts, lists, ends and names sessions."""
    _run(add)
    add("ps", "list the sessions")
    add("stop", "mirror for the last time and end the machine", session=True)
    rm = add("rm", "delete a session and what it mirrored", session=True)
    rm.add_argument("--force", action="store_true", help="stop it first")
    rename = add("rename", "give a session another name", session=True)
    rename.add_argument("name", metavar="NAME", help="up to 60 characters, of no other session")
    resume = add(
        "resume", "start a session's agent again, from its disk where it was stopped", session=True
    )
    resume.add_argument("--no-agent", action="store_true", help="only read the disk, then stop")
    _queue(resume)
    _logs(add)


def _run(add: Adder) -> None:
    run = add("run", "start an agent in a new microVM on a snapshot of the workspace")
    run.epilog = "[-- ARGS]: what is appended to the agent's own command"
    run.add_argument("agent", metavar="AGENT", help="see: cloche agents list")
    run.add_argument("--headless", action="store_true", help="run to the agent's end, then stop")
    run.add_argument(
        "--detach", action="store_true", help="return as soon as the snapshot is taken"
    )
    run.add_argument("--workspace", type=Path, default=None, metavar="DIR", help="default: here")
    run.add_argument("--name", default="", metavar="NAME", help="what the session is called")
    run.add_argument(
        "--image",
        default="",
        metavar="NAME",
        help="see: cloche image list; default: the agent's, else base",
    )
    run.add_argument(
        "--guest",
        choices=("debug", "standard", "strict"),
        default="",
        metavar="PROFILE",
        help="how much the guest's kernel refuses to the agent: debug, standard or strict; "
        "default: the configuration's",
    )
    add_repeated(run, "--port", "HOST:GUEST", "forward a port of 127.0.0.1 to the guest's")
    add_network(run)
    _queue(run)


def _logs(add: Adder) -> None:
    logs = add("logs", "print what happened in a session", session=True)
    logs.add_argument(
        "--cast",
        nargs="?",
        const="",
        default=None,
        metavar="FILE",
        help="export the terminal's record as asciicast v2: to FILE, - is stdout, default: ID.cast",
    )
    logs.add_argument("--force", action="store_true", help="replace FILE if it is there")


def add_network(command: argparse.ArgumentParser) -> None:
    """Add what a new machine may reach."""
    command.add_argument(
        "--egress",
        choices=("locked", "standard", "permissive"),
        default="",
        metavar="PROFILE",
        help="what may be reached without a rule: locked (model providers), standard (also "
        "development hosts and your registries; the rest asks), permissive (everything public); "
        "default: the configuration's",
    )
    add_repeated(
        command, "--allow-host", "NAME[:PORT]", "let this name through (*.NAME: those below it)"
    )
    add_repeated(command, "--allow-cidr", "CIDR[:PORT]", "let these public addresses through")
    command.add_argument(
        "--deny-egress", action="store_true", help="refuse every connection, and log it"
    )
    command.add_argument(
        "--no-network",
        action="store_false",
        dest="network",
        help="give the machine no network card at all",
    )


def _queue(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--queue",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="wait for memory where there is too little, or be refused at once; default: the "
        "configuration's",
    )
