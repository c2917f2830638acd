"""What the egress gateway carries, through a tap with the Linux kernel's TCP as the guest.

`python -m tests.bench.egress --json [--runs N]`; as root, or where user namespaces are allowed. The
gateway has a process of its own, and so has the host that it connects to. `down_mb_s` and
`up_mb_s` are one connection of 400 MB (goals 150 and 100); `connect_ms` is what a connection takes
through the gateway and `direct_ms` on the loopback alone: the difference is what is added (goal 2).
`flows_mib` is the memory of 500 open connections that have each echoed 64 KiB (goal 40),
`handshakes_per_s` connections that are made, used for a byte and closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import socket
import time
from typing import TYPE_CHECKING, Final

from tests.bench.report import publish, runs_wanted, summary
from tests.vm import egress_guest as guest
from tests.vm.egress_tap import Judge, Namespace, TapLink, resolve_here
from vm.egress.dial import DirectDialer
from vm.egress.gateway import Gateway
from vm.egress.table import NameTable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from vm.egress.kinds import Entry

SIZE: Final = 400 << 20
FLOWS: Final = 500
BLOCK: Final = random.Random(1).randbytes(1 << 20)
"""Not zeros, whose checksum costs next to nothing."""
NAME: Final = "bench.example"


def host(ports: Connection) -> None:
    """Serve three ports: one sends, one takes, one echoes. Runs until it is ended."""
    asyncio.run(_serve(ports))


async def _serve(ports: Connection) -> None:
    servers = [
        await asyncio.start_server(handler, "127.0.0.1", 0, limit=1 << 20, backlog=1024)
        for handler in (_send, _take, _echo)
    ]
    ports.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()


async def _send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(SIZE // len(BLOCK)):
        writer.write(BLOCK)
        await writer.drain()
    writer.close()


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 20):
        pass
    writer.write(b"done")
    writer.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def gateway(tap: int, calls: Connection) -> None:
    """Run the gateway on a tap; answer each call with its memory in bytes."""
    asyncio.run(_run(tap, calls))


async def _run(tap: int, calls: Connection) -> None:
    loop = asyncio.get_running_loop()
    judge, link = Judge(), TapLink(tap, loop)
    table = NameTable([(NAME, "198.18.0.1")])
    served = Gateway(judge, DirectDialer(judge, resolve_here), _forget, table)
    served.attach(link)
    link.start(served.take)
    calls.send(0)
    while await asyncio.to_thread(calls.recv):
        calls.send((_resident(), served.open))


def _forget(entry: Entry) -> None:
    """Keep no log."""


def _resident() -> int:
    """This process's memory that nobody shares, in bytes (proc(5), smaps_rollup)."""
    with open("/proc/self/smaps_rollup") as rollup:
        rows = [line.split() for line in rollup]
    return sum(int(row[1]) << 10 for row in rows if row[0] in ("Private_Dirty:", "Private_Clean:"))


def measure(runs: int) -> dict[str, object]:
    """Measure everything."""
    ways = multiprocessing.get_context("fork")
    ports, served = ways.Pipe()
    hosting = ways.Process(target=host, args=(served,), daemon=True)
    hosting.start()
    send, take, echo = ports.recv()
    namespace = Namespace()
    calls, answers = ways.Pipe()
    serving = ways.Process(target=gateway, args=(namespace.tap, answers), daemon=True)
    serving.start()
    os.close(namespace.tap)
    calls.recv()
    try:
        return _figures(namespace, calls, (send, take, echo), runs)
    finally:
        for process in (hosting, serving):
            process.terminate()
            process.join()
        namespace.close()  # the last, for the others have copies of its pipes


def _figures(
    namespace: Namespace, calls: Connection, ports: tuple[int, int, int], runs: int
) -> dict[str, object]:
    send, take, echo = ports
    there = "198.18.0.1"
    memory = _memory(namespace, calls, there, echo)  # of a process that has done nothing else
    down = [SIZE / 1e6 / namespace.call(guest.swallow, there, send) for _ in range(runs + 1)]
    up = [SIZE / 1e6 / namespace.call(guest.pour, there, take, SIZE) for _ in range(runs + 1)]
    began = time.monotonic()
    connects = [namespace.call(guest.one_by_one, 200, there, echo)[1] for _ in range(runs)]
    rate = 200 * runs / (time.monotonic() - began)
    direct = [_direct(echo) for _ in range(runs)]
    return {
        "down_mb_s": summary(down[1:]),
        "up_mb_s": summary(up[1:]),
        "connect_ms": summary([value * 1000 for value in connects]),
        "direct_ms": summary(direct),
        "handshakes_per_s": round(rate, 1),
        **memory,
    }


def _direct(port: int) -> float:
    times: list[float] = []
    for _ in range(200):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port)):
            times.append(time.monotonic() - began)
    return sorted(times)[100] * 1000


def _memory(namespace: Namespace, calls: Connection, there: str, port: int) -> dict[str, object]:
    def ask() -> tuple[int, int]:
        calls.send(1)
        memory, count = calls.recv()
        return int(memory), int(count)

    before, _ = ask()
    namespace.call(guest.keep_open, FLOWS, there, port, 1 << 16)
    after, count = ask()
    namespace.call(guest.let_go)
    return {"flows": count, "flows_mib": round((after - before) / (1 << 20), 1)}


def main() -> None:
    """Measure and print."""
    publish(measure(runs_wanted(3)))


if __name__ == "__main__":
    main()
