"""What work in the guest costs through the keeper, against a bare SSH connection to the same guest.

`python -m tests.bench.exec --json [--runs N]`; boots two machines of which one has a keeper at a
time, and measures both ways in turn, then once more with the machines' parts exchanged: neither the
host's load nor a machine of its own kind decides. `keeper_exec_ms` is `exec true` by a client whose
connection is open, `bare_run_ms` asyncssh's `run("true")` on a connection of our own to a guest's
sshd, whose shell does that itself; goal: ratio at most 1.5. `bare_program_ms` runs what the keeper
runs, the program `true` of the agent's world. `keeper_cpu_ms` and `client_cpu_ms` are processor
time of an exec here, by the keeper and by the client. `cli_exec_ms` is the whole command line,
`cli_start_ms` what it adds (goal 600), `cli_cpu_ms` its processor time. `copy_mb_s` is 100 MB out
by the code of `cloche cp` over the bulk port, `sftp_mb_s` the same by sftp over the bare
connection; goal: five times as fast. Without KVM the guests are emulated, and their part of it all
is the largest.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.client.copying import copy_out
from app.client.session import SessionClient
from app.keeper.agent_terminal import ENVIRONMENT
from app.paths import Paths
from tests.bench.report import publish, runs_wanted, summary
from tests.e2e.sessions import World
from vm.machine import ssh
from vm.machine.commands import Command, enter_words
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from app.client.copying import CopyReport

    Call = Callable[[], Awaitable[object]]

SIZE: Final = 100_000_000
REPEATS: Final = 10
"""Commands of one run: each is short, and the host's noise is not."""

CONNECT_S: Final = 30.0


@dataclass
class Times:
    """Seconds of each kind of call, and processor seconds of the keeper and of this process."""

    keeper: list[float] = field(default_factory=list[float])
    bare: list[float] = field(default_factory=list[float])
    program: list[float] = field(default_factory=list[float])
    copies: list[float] = field(default_factory=list[float])
    fetches: list[float] = field(default_factory=list[float])
    keeper_cpu: float = 0.0
    client_cpu: float = 0.0


async def in_turn(works: Sequence[tuple[Call, list[float]]], runs: int) -> None:
    """Note the seconds of `runs` calls of each, in turn, after one of each that does not count."""
    for number in range(runs + 1):
        for work, times in works:
            began = time.perf_counter()
            await work()
            if number:
                times.append(time.perf_counter() - began)


def processor_time(pid: int) -> float:
    """User and system seconds of a process so far (proc(5), stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ms(seconds: list[float]) -> dict[str, float]:
    """Summarise in milliseconds."""
    return summary([value * 1000 for value in seconds])


def speed(seconds: list[float]) -> dict[str, float]:
    """Summarise as MB/s."""
    return summary([SIZE / 1e6 / value for value in seconds])


def quiet(_: CopyReport) -> None:
    """Show nothing."""


async def measure(
    world: World, kept: str, bare: str, folder: Path, runs: int, times: Times
) -> None:
    """Measure commands and copies: on `kept` by its keeper, on `bare` without one."""
    identity = Identity.load(world.paths.session(bare) / "identity.json")
    port, target = control_socket(world, bare), folder / "copied"
    program = shlex.join(enter_words(Command(("true",), env=ENVIRONMENT)))
    async with await SessionClient.open(world.paths, kept) as client:
        await client.exec(("true",))  # whatever a first one makes ready
        direct = await ssh.connect(port, identity, CONNECT_S)

        async def ours() -> None:
            before = time.process_time()
            await client.exec(("true",))
            times.client_cpu += time.process_time() - before

        keeper = world.keeper(kept)
        before = processor_time(keeper)
        works: list[tuple[Call, list[float]]] = [
            (ours, times.keeper),
            (lambda: direct.run("true"), times.bare),
            (lambda: direct.run(f"exec {program}"), times.program),
        ]
        await in_turn(works, runs * REPEATS)
        times.keeper_cpu += processor_time(keeper) - before
        direct.abort()
        await direct.wait_closed()

        files = await ssh.connect(port, identity, CONNECT_S, "agent")
        async with files.start_sftp_client() as sftp:
            works = [
                (
                    lambda: copy_out(client, b"big", target, root=False, progress=quiet),
                    times.copies,
                ),
                (lambda: sftp.get("/workspace/big", folder / "fetched"), times.fetches),
            ]
            await in_turn(works, runs)
        files.abort()
        await files.wait_closed()
    assert target.stat().st_size == (folder / "fetched").stat().st_size == SIZE


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


def cli_times(world: World, session: str, runs: int) -> tuple[list[float], float]:
    """Seconds of whole command lines, and the processor seconds of one."""
    found: list[float] = []
    before = os.times()
    for _ in range(runs):
        began = time.perf_counter()
        world.run("exec", session, "--", "true")
        found.append(time.perf_counter() - began)
    spent = os.times()
    children = spent.children_user + spent.children_system
    return found, (children - before.children_user - before.children_system) / runs


def main() -> None:
    """Measure and print."""
    runs, times = runs_wanted(3), Times()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        world = World(folder / "w", Paths.from_environment().store)
        try:
            pair = started(world, project), started(world, project)
            for kept, bare in (pair, pair[::-1]):
                world.kill_keeper(bare)
                world.run("exec", kept, "--", "true")  # starts a keeper where there is none
                asyncio.run(measure(world, kept, bare, folder, runs, times))
            whole, cpu = cli_times(world, pair[1], runs * REPEATS)
        finally:
            world.close()
    publish(figures(times, whole, cpu))


def figures(times: Times, whole: list[float], cpu: float) -> dict[str, object]:
    """Put the times beside each other."""
    exec_ms, bare_ms, program_ms = ms(times.keeper), ms(times.bare), ms(times.program)
    cli_ms, copy, sftp = ms(whole), speed(times.copies), speed(times.fetches)
    count = len(times.keeper) / 1000
    return {
        "keeper_exec_ms": exec_ms,
        "bare_run_ms": bare_ms,
        "bare_program_ms": program_ms,
        "exec_ratio": round(exec_ms["median"] / bare_ms["median"], 2),
        "exec_ratio_of_minima": round(exec_ms["min"] / bare_ms["min"], 2),
        "exec_ratio_same_program": round(exec_ms["median"] / program_ms["median"], 2),
        "keeper_cpu_ms": round(times.keeper_cpu / count, 1),
        "client_cpu_ms": round(times.client_cpu / count, 1),
        "cli_exec_ms": cli_ms,
        "cli_start_ms": round(cli_ms["median"] - exec_ms["median"]),
        "cli_cpu_ms": round(cpu * 1000),
        "copy_mb_s": copy,
        "sftp_mb_s": sftp,
        "copy_ratio": round(copy["median"] / sftp["median"], 1),
    }


if __name__ == "__main__":
    main()
