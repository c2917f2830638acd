"""Runs inside the pane worker's sandbox and tries to get out; prints what came of each try.

It takes the same way as the worker: everything is loaded, then `confine` is called on the worker's
own object. What came of it goes out over the link, the one thing that is left.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vm.terminal import worker
from vm.terminal.seccomp import libc

if TYPE_CHECKING:
    from collections.abc import Callable


def attempts(secret: str, listening: str, parent: int) -> dict[str, Callable[[], object]]:
    """What code in a guest's hands would try."""
    library = libc()
    call = library.syscall

    def raw(number: int, *arguments: object) -> int:
        done = int(call(number, *arguments))
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return done

    def connect() -> None:
        socket.socket(socket.AF_UNIX).connect(listening)

    def thread() -> None:
        import _thread

        _thread.start_new_thread(lambda: None, ())

    return {
        "open home": lambda: os.open(os.path.expanduser("~"), os.O_RDONLY),
        "open secret": lambda: open(secret, "rb").read(),
        "open /proc": lambda: open("/proc/self/maps", "rb").read(),
        "create a file": lambda: os.open(secret + ".new", os.O_CREAT | os.O_WRONLY),
        "list a folder": lambda: os.listdir("/"),
        "stat": lambda: os.stat("/"),
        "unlink": lambda: os.unlink(secret),
        "unix socket": connect,
        "tcp socket": lambda: socket.socket(socket.AF_INET),
        "socketpair": socket.socketpair,
        "pipe": os.pipe,
        "fork": os.fork,
        "thread": thread,
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "signal the parent": lambda: os.kill(parent, signal.SIGTERM),
        "signal 0": lambda: os.kill(parent, 0),
        "ptrace": lambda: raw(101, 16, parent, 0, 0),
        "memfd": lambda: os.memfd_create("x"),
        "executable memory": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
        "set limits": lambda: raw(302, 0, 7, 0, 0),
        "io_uring": lambda: raw(425, 8, 0),
        "bpf": lambda: raw(321, 0, 0, 0),
        "userfaultfd": lambda: raw(323, 0),
        "pidfd_getfd": lambda: raw(438, 0, 0, 0),
        "process_vm_readv": lambda: raw(310, parent, 0, 0, 0, 0, 0),
        "setuid": lambda: os.setuid(0),
        "chroot": lambda: os.chroot("/"),
        "unshare": lambda: raw(272, 0x10000000),
        "ioctl": lambda: __import__("fcntl").ioctl(0, 0x5413, b"\0" * 8),
        "fcntl": lambda: __import__("fcntl").fcntl(0, 1),
    }


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return os.strerror(error.errno or 0)
    except Exception as error:  # whatever it is, it is what came of the try
        return f"{type(error).__name__}: {error}"
    return "DONE"


def main() -> None:
    descriptor, cache, secret, listening = sys.argv[1:5]
    box = worker.prepare(int(descriptor), Path(cache))
    tries = attempts(secret, listening, os.getppid())
    # everything that a try imports must be there already, or the import would be what fails
    import fcntl

    del fcntl
    worker.confine(box)
    told = {name: outcome(attempt) for name, attempt in tries.items()}
    os.write(int(descriptor), json.dumps({"tries": told}).encode() + b"\n")


main()
