"""Stand-ins for a guest and for QEMU, over real unix sockets and real processes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from vm.machine.link import MAGIC
from vm.machine.spec import MachineSpec, Resources

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

FAKE_QEMU = Path(__file__).with_name("fake_qemu.py")


@contextlib.asynccontextmanager
async def listening(path: Path, serve: Serve) -> AsyncGenerator[None]:
    """Serve every connection to `path` with `serve`; all of them end with the block."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """Play PID 1's part of the preamble, well behaved."""
    nonce = ""
    while True:
        words = (await reader.readline()).removeprefix(MAGIC).decode().split()
        if words[:2] == [token, "HELLO"]:
            nonce = words[2]
            writer.write(MAGIC + f"{token} READY {nonce}\n".encode())
        elif words == [token, "START", nonce]:
            writer.write(MAGIC + f"{token} BEGIN {nonce}\n".encode())
            return


def fake_binary(folder: Path, mode: str) -> str:
    """Write a program that behaves like QEMU in the way `mode` names (see fake_qemu.py)."""
    path = folder / f"qemu-{mode}"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_QEMU} {mode} "$@"\n')
    path.chmod(0o700)
    return str(path)


def spec_for(folder: Path, binary: str) -> MachineSpec:
    """Return a spec without disks whose files lie in `folder`."""
    kernel = folder / "kernel"
    kernel.write_bytes(b"kernel")
    return MachineSpec(
        name="fake",
        accelerator="tcg",
        kernel=kernel,
        initrd=kernel,
        disks=(),
        runtime=folder,
        console=folder / "console.log",
        log=folder / "qemu.log",
        resources=Resources(1, 128),
        binary=binary,
    )
