"""What work in the guest costs through the keeper, against a bare SSH connection to the same guest.

`python -m tests.bench.exec --json [--runs N]`; boots two machines and kills the keeper of one, so
that both ways are measured in turn: a host's load changes. `keeper_exec_ms` is `exec true` by a
client whose connection is open, `bare_run_ms` asyncssh's `run("true")` on a connection of our own
to a guest's sshd. Goal: ratio at most 1.5. `cli_exec_ms` is the whole command line,
`cli_start_ms` what it adds; goal 600. `copy_mb_s` is 100 MB out by the code of `cloche cp` over
the bulk port, `sftp_mb_s` the same by sftp over the bare connection; goal: at least five times as
fast. Without KVM the guests are emulated, and their part of it all is the largest.
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

    Call = Callable[[], Awaitable[object]]

SIZE: Final = 100_000_000
REPEATS: Final = 4
"""Commands of one run: each is short, and the host's noise is not."""

CONNECT_S: Final = 30.0


async def side_by_side(ours: Call, theirs: Call, runs: int) -> tuple[list[float], list[float]]:
    """Seconds of `runs` calls of each, in turn, after one of each that does not count."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(runs + 1):
        for work, times in zip((ours, theirs), found, strict=True):
            began = time.perf_counter()
            await work()
            if number:
                times.append(time.perf_counter() - began)
    return found


def ms(seconds: list[float]) -> dict[str, float]:
    """Summarise in milliseconds."""
    return summary([value * 1000 for value in seconds])


def speed(seconds: list[float]) -> dict[str, float]:
    """Summarise as MB/s."""
    return summary([SIZE / 1e6 / value for value in seconds])


def quiet(_: CopyReport) -> None:
    """Show nothing."""


async def measure(
    world: World, kept: str, bare: str, folder: Path, runs: int
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    """Measure commands and copies: on `kept` by its keeper, on `bare` without one."""
    identity = Identity.load(world.paths.session(bare) / "identity.json")
    port, target = control_socket(world, bare), folder / "copied"

    async with await SessionClient.open(world.paths, kept) as client:
        direct = await ssh.connect(port, identity, CONNECT_S)
        commands = await side_by_side(
            lambda: client.exec(("true",)), lambda: direct.run("true"), runs * REPEATS
        )
        direct.abort()
        await direct.wait_closed()

        files = await ssh.connect(port, identity, CONNECT_S, "agent")
        async with files.start_sftp_client() as sftp:
            copies = await side_by_side(
                lambda: copy_out(client, b"big", target, root=False, progress=quiet),
                lambda: sftp.get("/workspace/big", folder / "fetched"),
                runs,
            )
        files.abort()
        await files.wait_closed()
    assert target.stat().st_size == (folder / "fetched").stat().st_size == SIZE
    return commands, copies


def control_socket(world: World, session: str) -> Path:
    """Return where the guest's control port is, in or beside the folder of the sockets."""
    (found,) = world.paths.sockets(session).rglob("port-control.sock")
    return found


def started(world: World, project: Path) -> str:
    """Boot a session that has the file to copy; return its id."""
    told = world.json("run", "shell", "--detach", "--workspace", str(project))
    session = str(told["session"])
    world.wait_for(session, "agent_state", "working", "idle")
    fill = f"head -c {SIZE} /dev/urandom > big; sync"
    world.json("exec", session, "--", "sh", "-c", fill)
    return session


def cli_times(world: World, session: str, runs: int) -> list[float]:
    """Seconds of whole command lines."""
    found: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        world.run("exec", session, "--", "true")
        found.append(time.perf_counter() - began)
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
            kept, bare = started(world, project), started(world, project)
            world.kill_keeper(bare)
            (ours, theirs), (copies, fetches) = asyncio.run(
                measure(world, kept, bare, folder, runs)
            )
            whole = cli_times(world, kept, runs * REPEATS)
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
