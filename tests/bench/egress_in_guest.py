"""What a guest does with its network for a benchmark: a program for `python3 -c`."""

from __future__ import annotations

import os
import socket
import sys
import time

WAIT_S = 30.0
BLOCK = os.urandom(1 << 20)


def down(host: str, port: str, seconds: str) -> float:
    """Read for so long; return bytes a second."""
    place = bytearray(1 << 20)
    with socket.create_connection((host, int(port)), WAIT_S) as sock:
        sock.recv_into(place)  # the host is there
        count, began = 0, time.monotonic()
        while time.monotonic() < began + float(seconds):
            got = sock.recv_into(place)
            if not got:
                raise EOFError
            count += got
        return count / (time.monotonic() - began)


def up(host: str, port: str, seconds: str) -> float:
    """Send for so long and wait until all has arrived; return bytes a second."""
    with socket.create_connection((host, int(port)), WAIT_S) as sock:
        count, began = 0, time.monotonic()
        while time.monotonic() < began + float(seconds):
            count += sock.send(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(16)
        return count / (time.monotonic() - began)


if __name__ == "__main__":
    operations = {one.__name__: one for one in (down, up)}
    sys.stdout.write(repr(operations[sys.argv[1]](*sys.argv[2:])))
