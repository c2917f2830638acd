"""Many changed files, and a file of ten thousand hunks, through a real keeper's socket.

`CLOCHE_FULL=1` takes ten thousand files. Otherwise they are fewer, with paths as much longer: what
is said about them must not fit a message, and a list of them takes several pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.client.session import SessionClient
from app.protocol import MAX_LINE, Decide, MergeRequest
from tests.app.keeper_bench import Bench
from tests.doubles.stopped_home import Home, stopped_home
from tests.sampling import FULL, sampled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from app.protocol import Changes

SESSION = "0000000001"
FILES, DEPTH = (10_000, 1) if FULL else (1_500, 4)
FOLDERS = 40
LONG = "a-long-name-as-generated-code-gives-it-to-files-and-folders" * 3
HUNKS = 10_000


@pytest.fixture
def home() -> Iterator[Home]:
    with stopped_home() as made:
        yield made


@contextlib.asynccontextmanager
async def keeper_of(home: Home) -> AsyncGenerator[SessionClient]:
    """Connect to the session's keeper, which a command in that home has started."""
    assert await asyncio.to_thread(home.at_once, ("changes", SESSION)) == [(0, "")]
    async with await SessionClient.open(home.paths, SESSION, start=False) as client:
        yield client


def chain_of(number: int) -> list[str]:
    """Return the paths of a folder and of the folders in it, the deepest last."""
    parts = [f"folder-{number:02d}", *[LONG] * (DEPTH - 1)]
    return list(itertools.accumulate(parts, "{}/{}".format))


def decisions(changes: Changes) -> set[str]:
    return {file.decision for file in changes.files}


@pytest.mark.timeout(sampled(1800, 600))
async def test_more_files_than_fit_a_message_are_decided_merged_and_taken_back(home: Home) -> None:
    workspace = home.root / "ws"
    chains = [chain_of(number) for number in range(FOLDERS)]
    names = [f"{chains[n % FOLDERS][-1]}/{LONG}-{n:05d}.ts" for n in range(FILES)]
    for chain in chains:
        (workspace / chain[-1]).mkdir(parents=True)
    for name in names:
        (workspace / name).write_bytes(b"before\n")
    bench = Bench(workspace, home.stopped(SESSION, workspace))
    for folder in itertools.chain.from_iterable(chains):
        bench.guest.folder(folder.encode())
    for name in names:
        bench.guest.put(name.encode(), b"after\n")
    assert await bench.mirror.take(bench.guest.links)
    bench.desk.close()

    async with keeper_of(home) as client:
        found = await client.changes()
        assert [file.path for file in found.files] == sorted(names)
        wanted = [Decide(file.path, "accepted", (file.hunks[0].id,)) for file in found.files]
        assert len(msgspec.json.encode(wanted)) > MAX_LINE
        await client.decide(wanted)
        assert decisions(await client.changes()) == {"accepted"}
        await client.undo_decision()  # one step, however many lines it took
        assert decisions(await client.changes()) == {"open"}
        await client.redo_decision()
        report = await client.merge(MergeRequest())
        assert report.written == tuple(sorted(names))
        assert {(workspace / name).read_bytes() for name in names} == {b"after\n"}
        undone = await client.undo(report.merge)
        assert undone.restored == report.written
        assert {(workspace / name).read_bytes() for name in names} == {b"before\n"}


async def test_a_file_of_ten_thousand_hunks_is_listed_and_decided(home: Home) -> None:
    workspace = home.root / "ws"
    workspace.mkdir()
    apart = 9  # lines between two hunks, so that they are two
    before = [f"{number}\n" for number in range(HUNKS * apart)]
    after = [f"{line[:-1]} new\n" if n % apart == 0 else line for n, line in enumerate(before)]
    (workspace / "a").write_text("".join(before))
    bench = Bench(workspace, home.stopped(SESSION, workspace))
    bench.guest.put(b"a", "".join(after).encode())
    assert await bench.mirror.take(bench.guest.links)
    bench.desk.close()
    async with keeper_of(home) as client:
        (file,) = (await client.changes()).files
        assert len(file.hunks) == HUNKS
        await client.decide([Decide("a", "accepted", tuple(hunk.id for hunk in file.hunks[1:]))])
        await client.merge(MergeRequest())
    assert (workspace / "a").read_text() == "".join([before[0], *after[1:]])
