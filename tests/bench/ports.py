"""What a forwarded port costs, against bare loopback: connections per second and bytes.

`python -m tests.bench.ports --json [--runs N]`; one machine, whose guest serves on a port that is
forwarded, and the same server on this host's loopback, asked in turn. `connect_ms` is one
connection with one byte there and back, `parallel_per_s` how many of those a second AT_ONCE clients
get, `out_mb_s` and `in_mb_s` a stream of SIZE bytes. `keeper_cpu_ms` is processor time of the
keeper for one of the first kind. Without KVM the guest is emulated, and its part is the largest.
"""

from __future__ import annotations

import concurrent.futures
import shlex
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from tests.bench.exec import ms, processor_time
from tests.bench.quiet import quiet_world
from tests.bench.report import publish, runs_wanted, summary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.sessions import World

SIZE: Final = 10_000_000
AT_ONCE: Final = 8
REPEATS: Final = 20
WAIT_S: Final = 120.0

SERVER: Final = """
import socket, sys, threading
def serve(one):
    want = int.from_bytes(one.recv(4, socket.MSG_WAITALL), "big")
    sent, block = 0, bytes(65536)
    while sent < want:
        sent += one.send(block[:want - sent])
    while one.recv(65536):
        pass
    one.sendall(b"k")
    one.close()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
"""Sends as many bytes as the first four say, takes all that comes, and says when it has it."""


def talk(port: int, out: int, into: int) -> None:
    """Take `out` bytes, give `into` bytes, and hear that they came."""
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as one:
        one.settimeout(WAIT_S)
        one.sendall(out.to_bytes(4, "big"))
        while out:
            got = len(one.recv(min(out, 1 << 16)))
            assert got
            out -= got
        one.sendall(bytes(into))
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b"k"


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def parallel(port: int) -> None:
    """Have AT_ONCE clients connect, REPEATS times in all."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(talk, port, 1, 1) for _ in range(REPEATS)]:
            done.result()


def measure(port: int, runs: int) -> dict[str, dict[str, float]]:
    """Measure one port."""
    talk(port, 1, 1)  # whatever a first one makes ready
    connect = [seconds(lambda: talk(port, 1, 1)) for _ in range(runs * REPEATS)]
    at_once = [REPEATS / seconds(lambda: parallel(port)) for _ in range(runs)]
    out = [SIZE / 1e6 / seconds(lambda: talk(port, SIZE, 1)) for _ in range(runs)]
    into = [SIZE / 1e6 / seconds(lambda: talk(port, 1, SIZE)) for _ in range(runs)]
    return {
        "connect_ms": ms(connect),
        "parallel_per_s": summary(at_once),
        "out_mb_s": summary(out),
        "in_mb_s": summary(into),
    }


def served(world: World, project: Path) -> tuple[str, int]:
    """Boot a session with a server; its id and the forwarded port."""
    words = ("run", "shell", "--detach", "--workspace", str(project), "--port", "0:9000")
    session = str(world.json(*words)["session"])
    world.wait_for(session, "agent_state", "working", "idle", "waiting")
    serving = f"python3 -c {shlex.quote(SERVER)} 9000 > /tmp/serving &"
    script = f"{serving} until grep -q 9000 /tmp/serving; do sleep 0.1; done"
    world.json("exec", session, "--", "sh", "-c", script)
    (forward,) = world.json("port", session)["ports"]
    return session, int(forward["host_port"])


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    with quiet_world() as (world, project):
        session, port = served(world, project)
        with subprocess.Popen(
            [sys.executable, "-c", SERVER, "0"], stdout=subprocess.PIPE, text=True
        ) as local:
            assert local.stdout is not None
            try:
                bare = measure(int(local.stdout.readline()), runs)
            finally:
                local.kill()
        forwarded = measure(port, runs)
        keeper = world.keeper(session)
        before = processor_time(keeper)
        for _ in range(REPEATS):
            talk(port, 1, 1)
        cpu = (processor_time(keeper) - before) / REPEATS
    publish({"forwarded": forwarded, "bare": bare, "keeper_cpu_ms": round(cpu * 1000, 1)})


if __name__ == "__main__":
    main()
