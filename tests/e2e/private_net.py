"""A network of a test's own: one namespace for Cloche, one for what it can reach, a wire between.

Run as a program within `unshare --net --mount`: it gives the namespace its own /etc/hosts and name
server, makes a second namespace behind a pair of taps, and serves DNS and HTTP there. Every name
below `example` is the one server, but `loop.example`, which is 127.0.0.1. It appends what it was
asked to the files `queries` and `requests` in FOLDER, and says `ready` when it can be used.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import dns.exception
import dns.flags
import dns.message
import dns.rrset

from tests.vm.egress_guest import make_tap

HERE, THERE = "11.1.1.1", "11.1.1.2"
"""Public by their numbers; nothing of them leaves the namespaces."""
ANSWER: Final = b"answered\n"
CLONE_NEWNET: Final = 0x40000000
MS_BIND: Final = 4096
MTU: Final = 1500


def main(folder: Path) -> None:
    """Set everything up and serve until standard input ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    _own_files(libc, folder)
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _check(libc.unshare(CLONE_NEWNET))
        tap = make_tap("02aa00000002", THERE, HERE, MTU)
        socket.send_fds(theirs, [b"t"], [tap])
        os.close(tap)
        _serve(folder, theirs)
        os._exit(0)
    theirs.close()
    near = make_tap("02aa00000001", HERE, THERE, MTU)
    _, (far,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.recv(1)  # the servers listen
    threading.Thread(target=_pump, args=(near, far), daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    ours.close()  # the servers end with it
    os._exit(0)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _own_files(libc: ctypes.CDLL, folder: Path) -> None:
    for name, text in (
        ("hosts", "127.0.0.1 localhost\n"),
        ("resolv.conf", f"nameserver {THERE}\n"),
    ):
        own = folder / name
        own.write_text(text)
        target = os.path.realpath(f"/etc/{name}")
        _check(libc.mount(os.fsencode(own), os.fsencode(target), None, MS_BIND, None))


def _pump(near: int, far: int) -> None:
    """Carry frames from either tap to the other."""
    other = {near: far, far: near}
    while True:
        for ready in select.select([near, far], [], [])[0]:
            with contextlib.suppress(OSError):
                os.write(other[ready], os.read(ready, 1 << 16))


class Site(BaseHTTPRequestHandler):
    """Answers every request, and writes down which host it was for."""

    folder = Path()

    def do_GET(self) -> None:
        _note(self.folder / "requests", self.headers.get("Host", ""))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _serve(folder: Path, life: socket.socket) -> None:
    Site.folder = folder
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((THERE, 53))
    web = ThreadingHTTPServer((THERE, 80), Site)
    for job in (lambda: _answer_names(names, folder), web.serve_forever):
        threading.Thread(target=job, daemon=True).start()
    life.send(b"r")
    life.recv(1)


def _answer_names(names: socket.socket, folder: Path) -> None:
    while True:
        data, asker = names.recvfrom(4096)
        try:
            query = dns.message.from_wire(data)
        except (dns.exception.DNSException, struct.error):
            continue
        asked = query.question[0]
        name = asked.name.to_text(omit_final_dot=True).lower()
        _note(folder / "queries", name)
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        if asked.rdtype == 1:
            address = "127.0.0.1" if name == "loop.example" else THERE
            reply.answer.append(dns.rrset.from_text(asked.name, 1, "IN", "A", address))
        names.sendto(reply.to_wire(), asker)


def _note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
