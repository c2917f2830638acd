"""When the output of an ended program is over, whoever still holds it open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, cast

import pytest

from vm.machine import ending
from vm.machine.ending import Flow, output_over

if TYPE_CHECKING:
    from vm.machine.ending import Process

EPSILON = 0.05


class Program:
    """What is looked at of a process."""

    def __init__(self, status: int | None) -> None:
        self.exit_status = status
        self.exit_signal = None


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("POLL_S", 0.005), ("SILENCE_S", 0.05), ("LINGER_S", 0.3)):
        monkeypatch.setattr(ending, name, seconds)


def open_streams() -> asyncio.Future[list[None]]:
    return asyncio.get_running_loop().create_future()


async def over(program: Program, streams: asyncio.Future[list[None]], flow: Flow) -> bool:
    async with asyncio.timeout(20):
        return await output_over(cast("Process", program), streams, flow)


async def test_streams_that_end_are_over_at_once() -> None:
    streams = open_streams()
    streams.set_result([])
    assert await over(Program(None), streams, Flow())


async def test_a_program_that_runs_is_waited_for() -> None:
    program, streams = Program(None), open_streams()
    waiting = asyncio.create_task(over(program, streams, Flow()))
    await asyncio.sleep(4 * ending.SILENCE_S)  # that is the test: silence alone ends nothing
    assert not waiting.done()
    program.exit_status = 0
    assert not await waiting


async def test_silence_after_the_end_is_enough() -> None:
    began = time.monotonic()
    assert not await over(Program(0), open_streams(), Flow())
    assert time.monotonic() - began >= ending.SILENCE_S - EPSILON


async def test_a_child_that_goes_on_talking_is_cut_off() -> None:
    flow = Flow()

    async def talk() -> None:
        while True:
            flow.moved = time.monotonic()
            await asyncio.sleep(0.001)  # far more often than SILENCE_S

    talking = asyncio.create_task(talk())
    assert not await over(Program(0), open_streams(), flow)
    talking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await talking


async def test_a_reader_that_takes_nothing_loses_nothing() -> None:
    flow, streams = Flow(), open_streams()
    with flow.handing_on():
        waiting = asyncio.create_task(over(Program(0), streams, flow))
        # that is the test: it has longer than it gets where the reader takes what comes
        await asyncio.sleep(ending.LINGER_S + 4 * ending.SILENCE_S)
        assert not waiting.done()
    streams.set_result([])
    assert await waiting
