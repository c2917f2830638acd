"""`cloche ssh` and `cloche ssh-config`: the guest for OpenSSH's own clients.

The configuration is whole in itself: no file of the user's is read, no key and no agent of theirs
is offered. The keeper's socket asks for none, since only its owner reaches it; its host key is
pinned. The guest's own key never leaves the keeper.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Final

from app.client import fleet
from app.client.launch import launcher
from app.errors import EXIT_DONE, AppError, not_running
from app.files import write_atomic
from app.paths import Paths, private_folder
from app.programs import check_words
from app.records import read_session

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from app.cli.output import Output
    from app.protocol import SessionInfo

KNOWN_HOSTS: Final = "known_hosts"
CONFIG: Final = "ssh_config"
ROOT: Final = "agent-root"
"""User name that means the world's root."""

TEMPLATE: Final = """\
Host {alias}
    HostName {alias}
    HostKeyAlias {alias}
    User {user}
    ProxyCommand {proxy}
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    HostKeyAlgorithms ssh-ed25519
    UpdateHostKeys no
    IdentityFile none
    IdentitiesOnly yes
    IdentityAgent none
    PubkeyAuthentication no
    PasswordAuthentication no
    KbdInteractiveAuthentication no
    ForwardAgent no
    ForwardX11 no
    ClearAllForwardings yes
    PermitLocalCommand no
    ControlMaster no
    ControlPath none
    Compression no
    LogLevel ERROR
"""
"""Every line closes something that a user's or a host's own configuration may have opened."""


def ssh(arguments: argparse.Namespace, _: Output) -> int:
    """Become OpenSSH's client, as the agent's user or with --root as the world's root."""
    check_words(arguments.rest or ())
    program = shutil.which("ssh")
    if program is None:
        raise AppError(
            "host-lacks", "There is no ssh here.", "Install: sudo apt-get install openssh-client"
        )
    paths = Paths.from_environment()
    info = _running(paths, arguments.session)
    config = write_config(paths, info)
    words = [program, "-F", os.fspath(config), *(("-l", ROOT) if arguments.root else ())]
    words.append(alias_of(info.id))
    if arguments.rest:
        words.append(shlex.join(arguments.rest))
    elif sys.stdin.isatty():
        words.insert(1, "-t")
    sys.stdout.flush()
    os.execv(program, words)


def ssh_config(arguments: argparse.Namespace, output: Output) -> int:
    """Print a configuration for ssh, scp and sftp, and keep it in the session's folder."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session, sandbox=True)
    config = write_config(paths, info)
    text = config.read_text()
    fields = {"session": info.id, "host": alias_of(info.id), "file": str(config), "config": text}
    output.result(fields, lambda: output.block(text.rstrip("\n")))
    return EXIT_DONE


def _running(paths: Paths, session: str) -> SessionInfo:
    info = fleet.find_session(paths, session, sandbox=True)
    if info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
    return info


def alias_of(session: str) -> str:
    """Return the host name that a session has in its configuration."""
    return f"cloche-{session}"


def write_config(paths: Paths, info: SessionInfo) -> Path:
    """Write configuration and host key into the session's folder; the configuration's path."""
    folder = private_folder(paths.session(info.id))
    key = read_session(folder).control_key
    alias = alias_of(info.id)
    write_atomic(folder / KNOWN_HOSTS, f"{alias} {' '.join(key.split()[:2])}\n".encode())
    text = TEMPLATE.format(
        alias=alias,
        user="agent",
        proxy=_quoted(_proxy_words(info.id)),
        known=_path(folder / KNOWN_HOSTS),
    )
    write_atomic(folder / CONFIG, text.encode())
    return folder / CONFIG


def _proxy_words(session: str) -> list[str]:
    # the state home is named, for whoever runs ssh later may have another one
    kept = ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    named = [f"{name}={os.environ[name]}" for name in kept if os.environ.get(name)]
    start = [sys.executable, "-P", os.fspath(launcher()), "proxy", session]
    return ["env", *named, *start] if named else start


def _quoted(words: list[str]) -> str:
    """Quote for the shell, and for ssh's own percent signs."""
    return shlex.join(words).replace("%", "%%")


def _path(path: Path) -> str:
    """Quote a path for ssh_config; AppError for one that it cannot hold."""
    text = os.fspath(path)
    if any(character in text for character in '"\n\\') or "${" in text:
        raise AppError("refused", f"{text} cannot stand in an ssh configuration.", "")
    return '"' + text.replace("%", "%%") + '"'
