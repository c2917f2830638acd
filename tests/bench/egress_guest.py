"""The gateway against QEMU's own user networking, in one real guest with a card of each.

`python -m tests.bench.egress_guest --json [--runs N]`; boots one machine. `gateway` and `user` are
MB/s of one connection from and to a server of this host, a few seconds each, in turn; the ratios
are of the medians (goal: at least 2). `echo_ms` is a key typed into `cat` over SSH until its echo
is back, while the guest's network is idle and while it loads (or sends) as fast as it can through
the gateway, which hears of the keys as it does from a session's keeper. `echo_…_ratio` is of the
medians (goal: at most 2), `echo_…_quick_ratio` of what the quickest tenth took, which a busy host's
other work disturbs the least. `cpu` is the same
while a program of the guest uses the processor and no network: what any work there costs. The
second card exists here alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import shlex
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench import egress_in_guest
from tests.bench.egress import BLOCK, NAME
from tests.bench.report import publish, runs_wanted, summary
from tests.e2e import vmlab
from tests.vm.egress_tap import Judge, resolve_here
from vm.egress.dial import DirectDialer
from vm.egress.gateway import Gateway
from vm.egress.table import NameTable
from vm.machine.commands import Command, enter_words, run, run_toolkit
from vm.machine.disks import create_overlay
from vm.machine.identity import Identity
from vm.machine.machine import Machine, boot
from vm.machine.spec import Resources

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from multiprocessing.connection import Connection

    from vm.egress.kinds import Entry

GATEWAY_WAY: Final = "198.18.0.1"
USER_WAY: Final = "10.0.2.2"
"""The host's loopback, as user networking names it (QEMU's manual, "Network emulation")."""
RAISE: Final = "busybox ifconfig eth1 10.0.2.15 netmask 255.255.255.0 up"
SECONDS: Final = 4.0
"""What one transfer takes."""
LIMIT_S: Final = 120.0
"""What it may take, with its start and its end, in an emulated guest on a busy host."""
KEYS: Final = 60
KEY_S: Final = 60.0
PROGRAM: Final = Path(egress_in_guest.__file__).read_text()
QEMU: Final = """#!/bin/sh
exec qemu-system-x86_64 "$@" -netdev user,id=user0,ipv6=off \\
    -device virtio-net-pci,netdev=user0,mac=02:c1:0c:4e:00:99,romfile=
"""
BUSY: Final = "while True: pass"


def host(ports: Connection) -> None:
    """Serve two ports: one sends without end, one takes. Runs until it is ended."""
    asyncio.run(_serve(ports))


async def _serve(ports: Connection) -> None:
    servers = [
        await asyncio.start_server(handler, "127.0.0.1", 0, limit=1 << 20)
        for handler in (_send, _take)
    ]
    ports.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()


async def _send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(BLOCK)
            await writer.drain()


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 20):
            pass
        writer.write(b"done")
        writer.close()
        await writer.wait_closed()


def gateway(path: Path, keys: Connection) -> None:
    """Run a gateway for the machine of a socket, until that ends; hear of `keys` that are typed."""
    judge = Judge()
    dialer = DirectDialer(judge, resolve_here)
    table = NameTable([(NAME, GATEWAY_WAY)])

    async def serve() -> None:
        served = Gateway(judge, dialer, _forget, table)

        def typed() -> None:
            keys.recv()
            served.typed()

        asyncio.get_running_loop().add_reader(keys.fileno(), typed)
        await served.serve(path)

    asyncio.run(serve())


def _forget(entry: Entry) -> None:
    """Keep no log."""


@contextlib.asynccontextmanager
async def machine() -> AsyncGenerator[vmlab.LabVM]:
    """Boot a machine with both cards, as large as a session's; without a jail for its script."""
    image, identity = vmlab.lab_image(), Identity.new()
    async with vmlab.short_folder() as folder, contextlib.AsyncExitStack() as stack:
        qemu = folder / "qemu"
        qemu.write_text(QEMU)
        qemu.chmod(0o700)
        spec = vmlab.lab_spec(image, folder, vmlab.make_workspace(folder), vmlab.template())
        spec = replace(spec, network=True, jail=None, binary=str(qemu), resources=Resources())
        await create_overlay(folder / "scratch.qcow2", vmlab.template())
        vmlab.put_secrets(image, spec, identity)
        started = await Machine.start(spec)
        stack.push_async_callback(started.stop, 2.0)
        connection = await boot(started, identity, vmlab.BOOT_DEADLINE_S)
        vm = vmlab.LabVM(started, identity, folder, connection)
        stack.push_async_callback(vm.close)
        yield vm


async def guest(vm: vmlab.LabVM, *words: object) -> float:
    """Run an operation of `egress_in_guest`."""
    argv = ("python3", "-c", PROGRAM, *map(str, words))
    done = await run(vm.ssh, Command(argv), timeout_s=LIMIT_S)
    if done.exit_code:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return float(done.stdout)


async def echoes(vm: vmlab.LabVM, keys: Connection) -> list[float]:
    """Type keys, of which the gateway hears, each after the echo of the one before.

    Returns milliseconds of each.
    """
    words = shlex.join(enter_words(Command(("cat",))))
    times: list[float] = []
    async with vm.ssh.create_process(words, term_type="xterm", encoding=None) as typed:
        for number in range(KEYS + 5):
            keys.send(None)
            began = time.perf_counter()
            typed.stdin.write(b"k")
            async with asyncio.timeout(KEY_S):
                await typed.stdout.readexactly(1)
            if number >= 5:
                times.append((time.perf_counter() - began) * 1000)
        typed.terminate()
        typed.close()
    return times


async def echoes_while(vm: vmlab.LabVM, keys: Connection, *words: str) -> list[float]:
    """Type while a program of the guest runs, which is ended afterwards."""
    command = shlex.join(enter_words(Command(words)))
    async with vm.ssh.create_process(command, term_type="xterm", encoding=None) as busy:
        await vm.sh("sleep 2")  # it has begun
        times = await echoes(vm, keys)
        if busy.exit_status is not None:
            raise RuntimeError(f"it ended too early: {await busy.stdout.read()!r}")
        busy.stdin.write(b"\x03")
        async with asyncio.timeout(KEY_S):
            await busy.wait()
    return times


async def measure(
    vm: vmlab.LabVM, keys: Connection, ports: tuple[int, int], runs: int
) -> dict[str, object]:
    """Measure everything in one machine."""
    raised = await run_toolkit(vm.ssh, RAISE)
    if raised.exit_code:
        raise RuntimeError(raised.stderr.decode(errors="replace"))
    ways = {"gateway": GATEWAY_WAY, "user": USER_WAY}
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(runs):
        for operation, port in zip(("down", "up"), ports, strict=True):
            for way, there in ways.items():
                rate = await guest(vm, operation, there, port, SECONDS)
                found.setdefault((operation, way), []).append(rate / 1e6)
    told: dict[str, Any] = {
        way: {f"{operation}_mb_s": summary(found[operation, way]) for operation in ("down", "up")}
        for way in ways
    }
    for operation in ("down", "up"):
        ours, theirs = (statistics.median(found[operation, way]) for way in ways)
        told[f"{operation}_ratio"] = round(ours / theirs, 2)
    return {**told, **await _typing(vm, keys, ports, runs)}


async def _typing(
    vm: vmlab.LabVM, keys: Connection, ports: tuple[int, int], runs: int
) -> dict[str, object]:
    load = [
        ("python3", "-c", PROGRAM, operation, GATEWAY_WAY, str(port), "3600")
        for operation, port in zip(("down", "up"), ports, strict=True)
    ]
    times: dict[str, list[float]] = {"idle": [], "down": [], "up": [], "cpu": []}
    for _ in range(runs):
        times["idle"] += await echoes(vm, keys)
        times["down"] += await echoes_while(vm, keys, *load[0])
        times["up"] += await echoes_while(vm, keys, *load[1])
        times["cpu"] += await echoes_while(vm, keys, "python3", "-c", BUSY)
    told: dict[str, object] = {"echo_ms": {kind: summary(found) for kind, found in times.items()}}
    for name, middle in (("ratio", statistics.median), ("quick_ratio", _quick)):
        for kind in ("down", "up", "cpu"):
            told[f"echo_{kind}_{name}"] = round(middle(times[kind]) / middle(times["idle"]), 2)
    return told


def _quick(times: list[float]) -> float:
    """What a tenth of the keys took less than."""
    return statistics.quantiles(times, n=10)[0]


async def _all(ports: tuple[int, int], runs: int) -> dict[str, object]:
    async with machine() as vm:
        ways = multiprocessing.get_context("spawn")
        path = vm.spec.network_socket
        heard, keys = ways.Pipe(duplex=False)
        serving = ways.Process(target=gateway, args=(path, heard), daemon=True)
        serving.start()
        try:
            return await measure(vm, keys, ports, runs)
        finally:
            serving.terminate()
            serving.join()


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    ways = multiprocessing.get_context("spawn")
    ports, served = ways.Pipe()
    hosting = ways.Process(target=host, args=(served,), daemon=True)
    hosting.start()
    try:
        publish(asyncio.run(_all(tuple(ports.recv()), runs)))
    finally:
        hosting.terminate()
        hosting.join()


if __name__ == "__main__":
    main()
