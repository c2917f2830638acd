"""What an agent prints while its keeper is dead is in the record afterwards, each line once."""

from __future__ import annotations

import asyncio
import re
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from app.keeper.terminal_record import read_ring
from vm.machine.bulk import BulkClient
from vm.machine.held_terminal import RING
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.sessions import World

pytestmark = pytest.mark.vm

SCRIPT = """
seq -f 'a%06.0f' 1 40000
until [ -e /workspace/go ]; do sleep 0.1; done
seq -f 'b%06.0f' 1 400000
touch /workspace/printed
until [ -e /workspace/end ]; do sleep 0.1; done
echo the end
"""
"""The first part is less than the guest keeps, the second more."""

LAST = 400_000
LINE = 9
"""Bytes of a line as the terminal prints it."""

LOOK_S = 0.1
"""Between two looks at what the guest does; looking without a pause takes its processor."""

CONFIG = """
agents:
  counter: {command: [sh, -c, 'exec sh /workspace/script']}
"""


def lines(world: World, session: str, letter: str) -> list[int]:
    """Return the numbers of all whole lines of one part that the record holds."""
    _, raw = read_ring(world.paths.session(session))
    words = raw.replace(b"\r\n", b"\n").split(b"\n")[:-1]
    found = [word for word in words if len(word) == 7 and word.startswith(letter.encode())]
    return [int(word[1:]) for word in found]


async def listed(world: World, session: str, name: bytes) -> None:
    """Wait, in the place of the dead keeper, until the agent has made a file."""
    token = Identity.load(world.paths.session(session) / "identity.json").token
    socket = world.paths.machine_sockets(session) / "port-bulk.sock"
    bulk = await BulkClient.connect(socket, token, 60.0)
    async with asyncio.timeout(120):
        while True:
            found = await bulk.list_upper("workspace", 99, 9999)
            if name in [entry.path for entry in found.entries]:
                break
            await asyncio.sleep(LOOK_S)
    await bulk.close()


def test_a_keeper_that_is_killed_loses_nothing_and_records_nothing_twice(
    world: World, tmp_path: Path
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "script").write_text(SCRIPT)
    world.configure(CONFIG)
    words = ("run", "counter", "--detach", "--workspace", str(workspace))
    session = world.json(*words)["session"]
    world.wait_for(session, "state", "running")
    before = time.time()
    then = float(world.run("exec", session, "--", "date", "+%s.%N").stdout)
    assert before - 1 < then < time.time() + 1, "the guest's clock is wrong after its boot"
    folder = world.paths.session(session)
    while not lines(world, session, "a"):  # it prints at speed, and dies in the middle of it
        time.sleep(LOOK_S)
    world.kill_keeper(session)
    at_death = lines(world, session, "a")

    def guest(script: str) -> None:
        """Run a script in the guest, for which a new keeper comes."""
        assert world.run("exec", session, "--", "sh", "-c", script).status == 0

    guest("true")
    while (found := lines(world, session, "a"))[-1] < 40_000:
        assert world.keeper(session)
        time.sleep(LOOK_S)
    assert found == list(range(1, 40_001)), (len(at_death), len(found))
    assert b"bytes of the output are missing" not in read_ring(folder)[1]

    guest("touch go")
    while not lines(world, session, "b"):
        time.sleep(LOOK_S)
    world.kill_keeper(session)
    asyncio.run(listed(world, session, b"printed"))
    guest("true")
    while (found := lines(world, session, "b"))[-1] < LAST:
        assert world.keeper(session)
        time.sleep(LOOK_S)
    (said,) = re.findall(
        rb"\[cloche: ([\d,]+) bytes of the output are missing", read_ring(folder)[1]
    )
    gaps = [(a, b) for a, b in pairwise(found) if b != a + 1]
    assert len(gaps) == 1
    lost = gaps[0][1] - gaps[0][0] - 1
    # of the two lines at its ends only a part is missing
    assert LINE * (lost - 2) <= int(said.replace(b",", b"")) <= LINE * lost
    assert found[-1] - gaps[0][1] + 1 == RING // LINE
    guest("touch end")
    world.wait_for(session, "exit_code", 0)
    assert read_ring(folder)[1].endswith(b"the end\r\n")
    assert world.json("rm", "--force", session)["ok"]
