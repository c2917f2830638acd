"""The grammar of the commands that work inside of a guest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.grammar import add_repeated
from app.cli.grammar_sessions import add_network

if TYPE_CHECKING:
    from app.cli.grammar import Adder


def add_guest(add: Adder) -> None:
    """Add what works inside of a guest."""
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
    add_network(box)
    box.add_argument("--root", action="store_true", help="as root of the machine's world")
    box.add_argument("--cwd", default="", metavar="DIR", help="in the guest; default: /workspace")
    box.add_argument("--stdin-file", default=None, metavar="FILE", help="its input; - is stdin")
    for flag, form, text in (
        ("--env", "NAME=VALUE", "a variable for the command"),
        ("--copy-in", "HOST:GUEST", "copy a file or folder in before"),
        ("--copy-out", "GUEST:HOST", "copy a file or folder out after"),
    ):
        add_repeated(box, flag, form, text)
