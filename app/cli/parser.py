"""The grammar of the command line. Imports nothing but argparse, for `--help` must be quick."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Adder = Callable[..., argparse.ArgumentParser]
    Commands = argparse._SubParsersAction["Parser"]  # pyright: ignore[reportPrivateUsage]

ABOUT: Final = (
    "Runs coding agents in microVMs on a snapshot of your workspace; you take home only the hunks "
    "you accept. Without a command: the workstation on the current folder."
)


EMPTY: Final = re.compile("--[a-z-]+=")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are ours: one sentence and the next step."""

    def error(self, message: str) -> NoReturn:
        """Raise AppError `usage`."""
        sentence = message[:1].upper() + message[1:]
        raise AppError("usage", f"{sentence.rstrip('.')}.", f"See: {self.prog} --help")


def build(version: str) -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="cloche", description=ABOUT, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"cloche {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def add(name: str, summary: str, session: bool = False) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print one JSON object")
        if session:
            command.add_argument("session", metavar="ID", help="id, unique prefix of it, or name")
        return command

    _sessions(add)
    _guest(add)
    _review(add)
    _host(add, commands)
    _egress(commands)
    return parser


def parse(parser: Parser, words: list[str], *, takes_rest: Collection[str]) -> argparse.Namespace:
    """Parse a command line; for a command of `takes_rest`, say where a `--` is missing.

    Raises AppError `usage`.
    """
    _refuse_empty(words)
    arguments, unknown = parser.parse_known_args(words)
    if not unknown:
        return arguments
    sentence = f"Unrecognized arguments: {' '.join(unknown)}."
    if arguments.command not in takes_rest or unknown[0].startswith("-"):
        raise AppError("usage", sentence, f"See: {_named(arguments.command)} --help")
    named = [getattr(arguments, name, None) for name in ("session", "agent")]
    first = 1 + max((words.index(name) for name in named if name in words), default=0)
    at = words.index(unknown[0], first)
    before, after = shlex.join(words[:at]), shlex.join(words[at:])
    raise AppError("usage", sentence, f"cloche {before} -- {after}")


def _refuse_empty(words: list[str]) -> None:
    """Refuse an empty word: a variable that a script forgot to set must not mean a default."""
    for before, word in zip(["", *words], words, strict=False):
        if word and not EMPTY.fullmatch(word):
            continue
        option = word.rstrip("=") or (before if before.startswith("--") else "")
        what = f"What stands after {option}" if option else "A word of the command"
        command = next((one for one in words if one.isidentifier()), None)
        raise AppError("usage", f"{what} is empty.", f"See: {_named(command)} --help")


def _named(command: str | None) -> str:
    return f"cloche {command}" if command else "cloche"


def _sessions(add: Adder) -> None:
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
    run.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="HOST:GUEST",
        help="forward a port of 127.0.0.1 to the guest's; can be given again",
    )
    _network(run)
    _queue(run)
    add("ps", "list the sessions")
    add("stop", "mirror for the last time and end the machine", session=True)
    rm = add("rm", "delete a session and what it mirrored", session=True)
    rm.add_argument("--force", action="store_true", help="stop it first")
    rename = add("rename", "give a session another name", session=True)
    rename.add_argument("name", metavar="NAME", help="up to 60 characters, of no other session")
    resume = add("resume", "boot a session's disk again", session=True)
    resume.add_argument("--no-agent", action="store_true", help="only read the disk, then stop")
    _queue(resume)
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


def _network(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--egress",
        choices=("locked", "standard", "permissive"),
        default="",
        metavar="PROFILE",
        help="what may be reached without a rule: locked (model providers), standard (also "
        "development hosts and your registries; the rest asks), permissive (everything public); "
        "default: the configuration's",
    )
    command.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME[:PORT]",
        help="let this name through (*.NAME: those below it); can be given again",
    )
    command.add_argument(
        "--allow-cidr",
        action="append",
        default=[],
        metavar="CIDR[:PORT]",
        help="let these public addresses through; can be given again",
    )
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


def _guest(add: Adder) -> None:
    attach = add(
        "attach",
        "use the agent's terminal here (ctrl+g or your prefix, then d leaves, t takes it)",
        session=True,
    )
    attach.add_argument("--read-only", action="store_true", help="watch; keys do nothing")
    exe = add("exec", "run a command in the session's guest", session=True)
    exe.epilog = "-- CMD: the command and its arguments"
    exe.add_argument("--root", action="store_true", help="as root of the agent's world")
    exe.add_argument("--timeout-s", type=float, default=None, metavar="N", help="end it after N s")
    _sandbox(add)
    copy = add("cp", "copy files and folders between this host and a session's guest")
    copy.add_argument("source", metavar="SRC", help="ID:PATH, or a path of this host")
    copy.add_argument("target", metavar="DST", help="a path of this host, or ID:PATH")
    copy.add_argument("--root", action="store_true", help="as root of the agent's world")
    ssh = add("ssh", "use the guest by OpenSSH's client, as the agent's user", session=True)
    ssh.epilog = "[-- CMD]: a command and its arguments instead of a shell"
    ssh.add_argument("--root", action="store_true", help="as root of the agent's world")
    add("ssh-config", "print a configuration for ssh, scp and sftp", session=True)
    send = add("send", "type a prompt into the agent's terminal and submit it", session=True)
    send.add_argument("text", metavar="TEXT", help="the prompt; - reads it from stdin")
    port = add("port", "forward ports of this host's 127.0.0.1 to the guest's", session=True)
    port.add_argument(
        "forward", metavar="HOST:GUEST", nargs="?", default="", help="default: list them"
    )
    port.add_argument("--remove", type=int, default=None, metavar="HOST", help="forget this one")
    add("proxy", "carry an SSH client's bytes (for ProxyCommand)", session=True)


def _sandbox(add: Adder) -> None:
    box = add("sandbox", "run one command in a machine of its own, of which nothing is left")
    box.epilog = "-- CMD: the command and its arguments; its exit status is the answer"
    box.add_argument(
        "--timeout-s",
        type=float,
        default=120,
        metavar="N",
        help="for the machine's start and the command together (default: 120)",
    )
    box.add_argument("--workspace", type=Path, default=None, metavar="DIR", help="default: none")
    box.add_argument(
        "--image", default="base", metavar="NAME", help="see: cloche image list; default: base"
    )
    box.add_argument("--vcpus", type=int, default=None, metavar="N", help="processors")
    box.add_argument("--memory", type=int, default=None, metavar="MIB", help="memory in MiB")
    box.add_argument("--scratch", type=int, default=None, metavar="GIB", help="disk in GiB")
    _network(box)
    box.add_argument("--root", action="store_true", help="as root of the machine's world")
    box.add_argument("--cwd", default="", metavar="DIR", help="in the guest; default: /workspace")
    box.add_argument("--stdin-file", default=None, metavar="FILE", help="its input; - is stdin")
    for flag, form, text in (
        ("--env", "NAME=VALUE", "a variable for the command; can be given again"),
        ("--copy-in", "HOST:GUEST", "copy a file or folder in before; can be given again"),
        ("--copy-out", "GUEST:HOST", "copy a file or folder out after; can be given again"),
    ):
        box.add_argument(flag, action="append", default=[], metavar=form, help=text)


def _review(add: Adder) -> None:
    add("changes", "list what the agent changed", session=True)
    diff = add("diff", "print what the agent changed", session=True)
    diff.add_argument("path", metavar="PATH", nargs="?", default="", help="only this path")
    diff.add_argument("--patch", action="store_true", help="exact bytes, for git apply")
    comment = add("comment", "comment on what the agent changed, or list comments", session=True)
    comment.add_argument(
        "place",
        metavar="PATH[:LINE[-LINE]]",
        nargs="?",
        default="",
        help="a file, or lines of it; . is the whole review",
    )
    comment.add_argument(
        "text", metavar="TEXT", nargs="?", default="", help="the comment; - reads it from stdin"
    )
    comment.add_argument("--hunk", default="", metavar="HID", help="comment on this hunk")
    comment.add_argument("--old", action="store_true", help="LINE counts in the snapshot's file")
    comment.add_argument("--list", action="store_true", help="list the comments (the default)")
    comment.add_argument("--remove", default="", metavar="CID", help="remove a comment by its id")
    review = add("review", "say how far a review is, export it, or ask for changes", session=True)
    review.add_argument(
        "--export",
        choices=("prompt", "patch"),
        default="",
        metavar="WHAT",
        help="prompt: what to ask the agent for; patch: what is accepted, for git apply",
    )
    review.add_argument(
        "--import",
        dest="patch",
        default="",
        metavar="FILE",
        help="decide as a patch says that was exported and edited; - reads it from stdin",
    )
    review.add_argument(
        "--send", action="store_true", help="show that prompt and type it into the agent's terminal"
    )
    commits = add("commits", "list the agent's commits, or take them as refs", session=True)
    commits.add_argument(
        "--fetch",
        action="store_true",
        help="write them into the workspace's repository as refs/cloche/ID/BRANCH",
    )
    merge = add("merge", "write accepted changes into the workspace", session=True)
    merge.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="PATTERN",
        help="accept a path, or what a gitignore-style pattern matches; can be given again",
    )
    merge.add_argument(
        "--reject",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave out what would be accepted; can be given again",
    )
    merge.add_argument(
        "--hunk",
        action="append",
        default=[],
        metavar="HID",
        help="accept one hunk by its id or the beginning of it; can be given again",
    )
    merge.add_argument(
        "--accept-safe", action="store_true", help="accept all that cannot execute by side effect"
    )
    merge.add_argument(
        "--resolve",
        action="append",
        default=[],
        metavar="PATH=SIDE",
        help="solve the conflicts of a path: base, yours, agent, both or both-reversed; can be "
        "given again",
    )
    merge.add_argument("--dry-run", action="store_true", help="only say what would be written")
    undo = add("undo", "take a whole merge back")
    undo.add_argument("merge", metavar="MERGE", help="the id that merge printed")


def _host(add: Adder, commands: Commands) -> None:
    add("doctor", "look whether this host can run Cloche, and say how to mend it")
    add("version", "print the version")
    images = {
        "build": "build an image",
        "import": "bring in an image for containers: from a registry, a layout or an archive",
        "list": "list the images, why they are stale, and what was built earlier",
        "rm": "remove an image or a version of one that no session needs",
    }
    _group(commands, "image", "guest images", images)
    agents = {
        "list": "list the agents that can be run",
        "inspect": "show what a session of an agent is given",
    }
    _group(commands, "agents", "agents", agents)


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


def _egress(commands: Commands) -> None:
    text = "what agents may reach"
    group = commands.add_parser("egress", help=text, description=text, allow_abbrev=False)
    inner = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions = {
        "explain": "say what happens to a connection, and by which rule",
        "rules": "list the rules that hold, in the order in which they decide",
        "allow": "add a rule that lets names or addresses through",
        "deny": "add a rule that refuses names or addresses",
        "log": "print what a session tried to reach",
        "cap": "put another cap on what a session may use of models",
    }
    for action, summary in actions.items():
        command = inner.add_parser(action, help=summary, description=summary, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print one JSON object")
        if action == "cap":
            command.add_argument("session", metavar="ID", help="id, unique prefix of it, or name")
            command.add_argument("--usd", type=_above_zero, metavar="N", help="US dollars")
            command.add_argument("--tokens", type=int, metavar="N", help="tokens in all")
            continue
        if action == "log":
            text = "id, unique prefix of it, or name; without it, with --follow: all sessions"
            command.add_argument("session", metavar="ID", nargs="?", default="", help=text)
            text = "go on as it happens; with --json one object a line"
            command.add_argument("--follow", action="store_true", help=text)
            continue
        if action == "explain":
            command.add_argument("target", metavar="HOST[:PORT]", help="without a port: 443")
        if action in ("allow", "deny"):
            command.add_argument("rule", metavar="RULE", help="NAME[:PORT], *.NAME or CIDR[:PORT]")
            command.add_argument(
                "--project", action="store_true", help="for this folder's sessions"
            )
            command.add_argument("--always", action="store_true", help="for every session")
        command.add_argument("--session", default="", metavar="ID", help="for this session")
        command.set_defaults(agent="shell", private=False)
        if action == "allow":
            private = "let it lead to a private address, too"
            command.add_argument("--private", action="store_true", help=private)
        if action in ("explain", "rules"):
            command.add_argument("--agent", default="shell", metavar="AGENT", help="default: shell")


def _above_zero(text: str) -> float:
    """Read a sum of money. Raises ValueError."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def _group(commands: Commands, name: str, summary: str, actions: dict[str, str]) -> None:
    group = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    inner = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, text in actions.items():
        command = inner.add_parser(action, help=text, description=text, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print one JSON object")
        if (name, action) == ("image", "build"):
            command.add_argument(
                "name", metavar="NAME", nargs="?", default="base", help="default: base"
            )
            command.add_argument(
                "--force", action="store_true", help="build it anew even when it is there"
            )
        if (name, action) == ("image", "import"):
            _import(command)
        if (name, action) == ("image", "list"):
            command.add_argument(
                "--offline", action="store_true", help="ask no registry whether a tag moved on"
            )
        if (name, action) == ("agents", "inspect"):
            command.add_argument("name", metavar="AGENT", help="see: cloche agents list")
        if (name, action) == ("image", "rm"):
            command.add_argument(
                "target",
                metavar="IMAGE",
                nargs="?",
                default="",
                help="a name, or the beginning of a digest",
            )
            command.add_argument(
                "--unused", action="store_true", help="every earlier version that nothing needs"
            )
            command.add_argument(
                "--dry-run", action="store_true", help="only say what would be removed"
            )
