"""What work in the guest costs through the keeper, against a bare SSH connection to the same guest.

`python -m tests.bench.exec --json [--runs N]`; boots a machine. `keeper_exec_ms` is `exec true` by
a client whose connection is open, `bare_run_ms` asyncssh's `run("true")` on a connection of our own
to the guest's sshd (the keeper is killed for it). Goal: ratio at most 1.5. `cli_exec_ms` is the
whole command line, `cli_start_ms` what it adds; goal 600. `copy_mb_s` is 100 MB out by the code of
`cloche cp` over the bulk port, `sftp_mb_s` the same file by sftp over the bare connection; goal: at
least five times as fast. Without KVM the guest is emulated, and its part of it all is the largest.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.client.copying import copy_out
from app.client.session import SessionClient
from app.paths import Paths
from tests.bench.report import publish, runs_wanted, summary
from tests.e2e.sessions import World
from vm.machine import ssh
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.client.copying import CopyReport

SIZE: Final = 100_000_000
REPEATS: Final = 4
"""Commands of one run: each is short, and the host's noise is not."""

CONNECT_S: Final = 30.0


async def times(work: Callable[[], Awaitable[object]], runs: int) -> list[float]:
    """Seconds that each of `runs` calls took, after one that does not count."""
    await work()
    found: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        await work()
        found.append(time.perf_counter() - began)
    return found


def ms(seconds: list[float]) -> dict[str, float]:
    """Summarise in milliseconds."""
    return summary([value * 1000 for value in seconds])


def speed(seconds: list[float]) -> dict[str, float]:
    """Summarise as MB/s."""
    return summary([SIZE / 1e6 / value for value in seconds])


def quiet(_: CopyReport) -> None:
    """Show nothing."""


async def through_the_keeper(
    world: World, session: str, folder: Path, runs: int
) -> tuple[list[float], list[float]]:
    """Measure `exec` and a copy out on one open connection."""
    async with await SessionClient.open(world.paths, session) as client:
        fill = ("sh", "-c", f"head -c {SIZE} /dev/urandom > big")
        await client.exec(fill, timeout_s=300)

        async def copy() -> None:
            target = folder / "copied"
            await copy_out(client, b"big", target, root=False, progress=quiet)
            assert target.stat().st_size == SIZE

        commands = await times(lambda: client.exec(("true",)), runs * REPEATS)
        return commands, await times(copy, runs)


async def bare(
    world: World, session: str, folder: Path, runs: int
) -> tuple[list[float], list[float]]:
    """Measure the same without a keeper, which must be gone: the guest's port has one host."""
    identity = Identity.load(world.paths.session(session) / "identity.json")
    port = control_socket(world, session)
    direct = await ssh.connect(port, identity, CONNECT_S)
    commands = await times(lambda: direct.run("true"), runs * REPEATS)
    direct.abort()
    await direct.wait_closed()
    files = await ssh.connect(port, identity, CONNECT_S, "agent")
    async with files.start_sftp_client() as sftp:
        target = folder / "fetched"
        fetches = await times(lambda: sftp.get("/workspace/big", target), runs)
        assert target.stat().st_size == SIZE
    files.abort()
    await files.wait_closed()
    return commands, fetches


def control_socket(world: World, session: str) -> Path:
    """Return where the guest's control port is, in or beside the folder of the sockets."""
    (found,) = world.paths.sockets(session).rglob("port-control.sock")
    return found


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        world = World(folder / "w", Paths.from_environment().store)
        try:
            told = world.json("run", "shell", "--detach", "--workspace", str(project))
            session = str(told["session"])
            world.wait_for(session, "agent_state", "working", "idle")
            world.run("exec", session, "--", "true")
            whole: list[float] = []
            for _ in range(runs):
                began = time.perf_counter()
                world.run("exec", session, "--", "true")
                whole.append(time.perf_counter() - began)
            ours, copies = asyncio.run(through_the_keeper(world, session, folder, runs))
            world.kill_keeper(session)
            theirs, fetches = asyncio.run(bare(world, session, folder, runs))
        finally:
            world.close()
    publish(figures(ours, theirs, whole, copies, fetches))


def figures(
    ours: list[float],
    theirs: list[float],
    whole: list[float],
    copies: list[float],
    fetches: list[float],
) -> dict[str, object]:
    """Put the times beside each other."""
    exec_ms, run_ms, cli_ms = ms(ours), ms(theirs), ms(whole)
    copy, sftp = speed(copies), speed(fetches)
    return {
        "keeper_exec_ms": exec_ms,
        "bare_run_ms": run_ms,
        "exec_ratio": round(exec_ms["median"] / run_ms["median"], 2),
        "cli_exec_ms": cli_ms,
        "cli_start_ms": round(cli_ms["median"] - exec_ms["median"]),
        "copy_mb_s": copy,
        "sftp_mb_s": sftp,
        "copy_ratio": round(copy["median"] / sftp["median"], 1),
    }


if __name__ == "__main__":
    main()
