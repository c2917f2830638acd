"""The toolkit initramfs: PID 1, busybox and OpenSSH with their loader and libraries.

All programs but PID 1 come out of the distribution's packages, unpacked into `tree` and never
installed; nothing of this host's own files goes in.
"""

from __future__ import annotations

import gzip
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from vm.errors import BuildFailed
from vm.image import cpio, elf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.image.modules import Module

_PROGRAMS = ("usr/sbin/sshd", "usr/lib/openssh/sshd-session", "usr/lib/openssh/sshd-auth")
_LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "lib")
_APPLETS = (
    "ash",
    "awk",
    "basename",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dirname",
    "dmesg",
    "du",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "free",
    "grep",
    "head",
    "hostname",
    "id",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mount",
    "mv",
    "nproc",
    "od",
    "pidof",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "reset",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "stty",
    "sync",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "tty",
    "umount",
    "uname",
    "uptime",
    "wc",
    "xargs",
)

_PASSWD = (
    "cloche:*:0:0::/root:/bin/sh\n"
    "sshd:*:100:65534::/run/sshd:/bin/false\n"
    "agent:*:1000:1000::/:/bin/sh\n"
)
_GROUP = "cloche:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"

SSHD_CONFIG = """\
HostKey /session/host_key
AuthorizedKeysFile /session/authorized_keys
AllowUsers cloche agent
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PubkeyAcceptedAlgorithms ssh-ed25519
HostKeyAlgorithms ssh-ed25519
KexAlgorithms curve25519-sha256
Ciphers chacha20-poly1305@openssh.com,aes128-gcm@openssh.com
AllowTcpForwarding local
PermitOpen 127.0.0.1:*
PermitListen none
AllowStreamLocalForwarding no
AllowAgentForwarding no
X11Forwarding no
PermitTunnel no
PermitUserRC no
PermitUserEnvironment no
Compression no
MaxSessions 64
MaxAuthTries 3
LoginGraceTime 0
TCPKeepAlive no
PrintMotd no
PrintLastLog no
UseDNS no
LogLevel ERROR
VersionAddendum none
PidFile none
Subsystem sftp internal-sftp
Match User agent
    DisableForwarding yes
    ChrootDirectory /world
    ForceCommand internal-sftp -d /workspace
    PermitTTY no
"""
"""Publickey only, no environment; nothing is forwarded but what the keeper, whose alone the login
`cloche` is, opens to the guest's own loopback. LoginGraceTime 0 because sshd is started before
its connection, and PID 1 ends it with the link."""


def toolkit_cpio(tree: Path, init: bytes, modules: Iterable[Module]) -> bytes:
    """Return the gzipped archive; equal inputs give equal bytes.

    `tree` holds the unpacked packages, `init` is the static PID 1. Raises BuildFailed when a
    program or library is not in `tree`.
    """
    entries = [*_skeleton(), *_world_devices(), *_own(init), *_modules(modules), *_programs(tree)]
    return gzip.compress(cpio.archive(entries), 9, mtime=0)


def _skeleton() -> list[cpio.Entry]:
    plain = ("dev", "proc", "sys", "base", "ws", "scratch", "world", "run/sshd")
    return [
        *(cpio.folder(path) for path in plain),
        cpio.folder("root", 0o700),
        cpio.folder("tmp", 0o1777),
        cpio.node("dev/console", 5, 1),
        cpio.node("dev/null", 1, 3, 0o666),
        cpio.file("etc/passwd", _PASSWD.encode()),
        cpio.file("etc/group", _GROUP.encode()),
        cpio.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\n"),
        cpio.file("etc/ssh/sshd_config", SSHD_CONFIG.encode(), 0o600),
    ]


def _world_devices() -> list[cpio.Entry]:
    """Return `/nodes`, which becomes the world's `/dev`: nothing there opens hardware."""
    nodes = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
    links = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
    return [
        *(cpio.node(f"nodes/{name}", 1, minor, 0o666) for name, minor in nodes.items()),
        cpio.node("nodes/tty", 5, 0, 0o666),
        *(cpio.link(f"nodes/{name}", f"/proc/self/fd{end}") for name, end in links.items()),
        cpio.link("nodes/ptmx", "pts/ptmx"),
        cpio.folder("nodes/pts"),
        cpio.folder("nodes/shm"),
    ]


def _own(init: bytes) -> list[cpio.Entry]:
    return [
        cpio.file("init", init, 0o755),
        cpio.link("bin/enter", "/init"),
        cpio.link("bin/hold", "/init"),
    ]


def _modules(modules: Iterable[Module]) -> list[cpio.Entry]:
    chosen = list(modules)
    order = "".join(f"{module.when} {module.name}.ko\n" for module in chosen)
    return [
        cpio.file("modules/order", order.encode()),
        *(cpio.file(f"modules/{module.name}.ko", module.data) for module in chosen),
    ]


def _programs(tree: Path) -> list[cpio.Entry]:
    entries = [cpio.link(f"bin/{name}", "busybox") for name in _APPLETS]
    busybox = _find(tree, "bin/busybox")
    entries.append(cpio.file("bin/busybox", busybox.read_bytes(), 0o755))
    sshd = {name: _first(tree, [name]) for name in _PROGRAMS if (tree / name).is_file()}
    if _PROGRAMS[0] not in sshd:
        raise BuildFailed("The distribution's OpenSSH package has no sshd where it should be.")
    for name, path in sshd.items():
        entries.append(cpio.file(name, path.read_bytes(), 0o755))
    return entries + _libraries(tree, [busybox, *sshd.values()])


def _libraries(tree: Path, programs: list[Path]) -> list[cpio.Entry]:
    entries: dict[str, cpio.Entry] = {}
    waiting = [path.read_bytes() for path in programs]
    while waiting:
        data = waiting.pop()
        loader = elf.interpreter(data)
        names = [(name, f"usr/lib/x86_64-linux-gnu/{name}") for name in elf.needed(data)]
        if loader:
            names.append((PurePosixPath(loader).name, loader.lstrip("/")))
        for name, place in names:
            if place not in entries and not _is_loader(name, place):
                found = _library(tree, name).read_bytes()
                entries[place] = cpio.file(place, found, 0o755)
                waiting.append(found)
    return list(entries.values())


def _is_loader(name: str, place: str) -> bool:
    """Libraries name the loader among their needs; it is there already, by the programs' path."""
    return name.startswith("ld-linux") and place.startswith("usr/")


def _library(tree: Path, name: str) -> Path:
    return _first(tree, [f"{folder}/{name}" for folder in _LIBRARY_FOLDERS])


def _find(tree: Path, name: str) -> Path:
    return _first(tree, [name, f"usr/{name}"])


def _first(tree: Path, names: list[str]) -> Path:
    """Return the first that is a file of the tree itself: an absolute link would leave it."""
    for name in names:
        path = (tree / name).resolve()
        if path.is_file() and path.is_relative_to(tree.resolve()):
            return path
    raise BuildFailed(f"The distribution's packages lack {names[0]}.")
