"""The guest's relay and bulk server as a process of this host, spoken to over sockets."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vm.image.guest import SOURCES

HARNESS = Path(__file__).with_name("guest_harness.c")
PARTS = (
    "link.c", "relay.c", "bulk.c", "list.c", "copy.c", "util.c", "terminal.c", "hold.c", "place.c",
    "activity.c",
)  # fmt: skip
TOKEN = "0123456789abcdef" * 2
WAIT_S = 20.0
PREFIX = f"\x16\x03CLOCHE {TOKEN} ".encode()
FAKE_ENTER = """#!/bin/sh
exec sh -c "$1"
"""
FAKE_SSHD = """#!/bin/sh
echo "banner"
read -r line || exit 0
[ "$line" = flood ] && exec cat /dev/zero
[ "$line" = die ] && exit 1
[ "${line#guest hold}" != "$line" ] && { eval "./$line"; echo "exit $?"; }
exec cat
"""


def compile_harness(target: Path) -> None:
    """Build the harness with address and undefined-behaviour sanitizers."""
    folders = {"CGROUP": "cgroup/", "WORKSPACE_UPPER": "ws", "ROOT_UPPER": "root",
               "SSHD": "./sshd", "WORLD": ".", "WORKSPACE": "ws",
               "TERMINAL_SOCKET": "hold.sock", "ENTER": "./enter"}  # fmt: skip
    subprocess.run(
        [
            *("cc", "-std=gnu17", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"),
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            *(f'-D{name}="{value}"' for name, value in folders.items()),
            *("-Dreboot=harness_reboot", "-Dclock_settime=harness_clock"),
            "-Dchroot=harness_chroot",
            *("-o", str(target), str(HARNESS), *(str(SOURCES / part) for part in PARTS)),
        ],
        check=True,
        timeout=120,
    )


@dataclass
class Port:
    """The host's end of one port."""

    socket: socket.socket
    buffer: bytes = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def until(self, mark: bytes) -> bytes:
        """Return what comes before `mark`, which is taken as well."""
        while mark not in self.buffer:
            # what cannot be the beginning of the mark any more is not kept in a flood
            self.buffer = self.buffer[-(1 << 20) :] + self._more()
        before, _, self.buffer = self.buffer.partition(mark)
        return before

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.buffer += self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 18)
        if not data:
            raise EOFError("the guest is gone")
        return data

    def hello(self) -> str:
        """Say HELLO, wait for READY; return the nonce."""
        nonce = secrets.token_hex(16)
        self.send(PREFIX + f"HELLO {nonce}\n".encode())
        self.until(PREFIX + f"READY {nonce}\n".encode())
        return nonce

    def connect(self) -> None:
        nonce = self.hello()
        self.send(PREFIX + f"START {nonce}\n".encode())
        self.until(PREFIX + f"BEGIN {nonce}\n".encode())


@dataclass
class BulkPort(Port):
    """The bulk port with its frames."""

    def ask(self, kind: bytes, payload: bytes = b"") -> None:
        self.send(struct.pack("<I", 1 + len(payload)) + kind + payload)

    def answer(self) -> tuple[bytes, bytes]:
        (length,) = struct.unpack("<I", self.take(4))
        assert 1 <= length <= 1 << 20
        frame = self.take(length)
        return frame[:1], frame[1:]

    def get(self, path: bytes, inode: int, limit: int = 1 << 30, tree: int = 0) -> None:
        head = struct.pack("<IBQQH", 7, tree, inode, limit, len(path))
        self.ask(b"G", head + path)

    def content(self) -> tuple[bytes, bytes, bytes]:
        """Return all data of a get, then its last frame."""
        data = b""
        while True:
            kind, payload = self.answer()
            if kind != b"d":
                return data, kind, payload
            assert payload[:4] == b"\x07\0\0\0"
            data += payload[4:]


class Guest:
    """The running harness in `folder`."""

    def __init__(self, program: Path, folder: Path) -> None:
        for name in ("ws", "root", "cgroup/agent", "cgroup/keep"):
            (folder / name).mkdir(parents=True)
        (folder / "cgroup/keep/cgroup.procs").touch()
        (folder / "guest").symlink_to(program)
        for name, script in (("sshd", FAKE_SSHD), ("enter", FAKE_ENTER)):
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        control, inner_control = socket.socketpair()
        bulk, inner_bulk = socket.socketpair()
        for end in (inner_control, inner_bulk):
            end.setblocking(False)
        for end in (control, bulk):
            end.settimeout(WAIT_S)
        descriptors = (inner_control.fileno(), inner_bulk.fileno())
        self._console = (folder / "console").open("wb")
        self._process = subprocess.Popen(
            [str(program), *map(str, descriptors), TOKEN],
            cwd=folder,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stderr=self._console,
            start_new_session=True,
        )
        inner_control.close()
        inner_bulk.close()
        self.folder = folder
        self.control = Port(control)
        self.bulk = BulkPort(bulk)

    def console(self) -> str:
        return (self.folder / "console").read_text()

    def close(self) -> None:
        alive = self._process.poll() is None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_S)
        self._console.close()
        self.control.socket.close()
        self.bulk.socket.close()
        assert "Sanitizer" not in self.console()
        assert "runtime error" not in self.console()
        assert alive
