"""The grammar of `egress`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.cli.grammar import SESSION, add_group, add_session

if TYPE_CHECKING:
    import argparse

    from app.cli.grammar import Commands
    from vm.egress.broker.meter import CapAnswer


ACTIONS: Final = {
    "explain": "say what happens to a connection, and by which rule",
    "rules": "list the rules that hold, in the order in which they decide",
    "allow": "add a rule that lets names or addresses through",
    "deny": "add a rule that refuses names or addresses",
    "log": "print what a session tried to reach",
    "cap": "put another cap on what a session may use of models",
}


def add_egress(commands: Commands) -> None:
    """Add what tells and rules what agents may reach."""
    found = add_group(commands, "egress", "what agents may reach", ACTIONS)
    _explain(found["explain"])
    _about_session(found["rules"], agent=True)
    _allow(found["allow"])
    _deny(found["deny"])
    _log(found["log"])
    _cap(found["cap"])


def _explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", metavar="HOST[:PORT]", help="without a port: 443")
    _about_session(command, agent=True)


def _allow(command: argparse.ArgumentParser) -> None:
    _deny(command)
    text = "let it lead to a private address, too"
    command.add_argument("--private", action="store_true", help=text)


def _deny(command: argparse.ArgumentParser) -> None:
    command.add_argument("rule", metavar="RULE", help="NAME[:PORT], *.NAME or CIDR[:PORT]")
    command.add_argument("--project", action="store_true", help="for this folder's sessions")
    command.add_argument("--always", action="store_true", help="for every session")
    _about_session(command, agent=False)


def _about_session(command: argparse.ArgumentParser, *, agent: bool) -> None:
    """Add the session whose rules are meant, or what else stands for one that is not there."""
    command.add_argument("--session", default="", metavar="ID", help="for this session")
    command.set_defaults(agent="shell", private=False)
    if agent:
        command.add_argument("--agent", default="shell", metavar="AGENT", help="default: shell")


def _log(command: argparse.ArgumentParser) -> None:
    text = f"{SESSION}; without it, with --follow: all sessions"
    command.add_argument("session", metavar="ID", nargs="?", default="", help=text)
    text = "go on as it happens; with --json one object a line"
    command.add_argument("--follow", action="store_true", help=text)


def _cap(command: argparse.ArgumentParser) -> None:
    add_session(command)
    command.add_argument("--usd", type=_above_zero, metavar="N", help="US dollars")
    command.add_argument("--tokens", type=int, metavar="N", help="tokens in all")
    answers: dict[str, tuple[CapAnswer, str]] = {
        "--more": ("raise", "as much again as the cap that it began with"),
        "--none": ("lift", "no cap for this session any more"),
        "--stop": ("stop", "refuse what waits at the cap, and what comes"),
    }
    group = command.add_mutually_exclusive_group()
    for flag, (answer, text) in answers.items():
        group.add_argument(flag, dest="answer", action="store_const", const=answer, help=text)


def _above_zero(text: str) -> float:
    """Read a sum of money. Raises ValueError."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value
