"""Syntax colours from a child process: one text at a time, never waited for by a screen."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from app.client.launch import role_command
from app.services.colours_role import COLOURS, HEADER, MAX_FRAME, Answer, Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from widgets.diff_model import Span

ANSWER_SECONDS = 10.0
"""A lexer that needs longer for its next lines is killed, and the text stays plain."""

BACKLOG = 64
"""Answers that may wait for their reader."""

Lines = dict[int, list["Span"]]


class Colours:
    """Owns the child; it is started when a text is asked for and again after it was killed."""

    def __init__(self, argv: Sequence[str] | None = None) -> None:
        self._argv = list(argv) if argv is not None else role_command("colours")
        self._child: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._answers: asyncio.Queue[Answer | None] = asyncio.Queue(BACKLOG)
        self._decoder = msgspec.msgpack.Decoder(Answer)
        self._lock = asyncio.Lock()
        self._last = 0

    async def spans(self, name: bytes, text: str) -> AsyncGenerator[Lines]:
        """Yield colours of some lines after others; ends early where the child does not answer.

        Whoever stops listening need not say so: the next request makes the child drop this one.
        """
        self._last += 1
        request = Request(self._last, name, text)
        async with self._lock:
            if not await self._send(request):
                return
            done = False
            while not done:
                answer = await self._next(request.id)
                if answer is None:
                    await self.close()
                    return
                done = answer.last
                yield lines_of(answer)

    async def _send(self, request: Request) -> bool:
        body = msgspec.msgpack.encode(request)
        if len(body) > MAX_FRAME:
            return False
        try:
            child = await self._started()
            assert child.stdin is not None
            child.stdin.write(HEADER.pack(len(body)) + body)
            async with asyncio.timeout(ANSWER_SECONDS):
                await child.stdin.drain()
        except (OSError, TimeoutError):
            await self.close()
            return False
        return True

    async def _next(self, wanted: int) -> Answer | None:
        """Return the next answer to a request; None when the child died or takes too long."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while (answer := await self._answers.get()) is not None:
                    if answer.id == wanted:
                        return answer
        except TimeoutError:
            return None
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            await self.close()
            self._child = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
            )
            assert self._child.stdout is not None
            self._answers = asyncio.Queue(BACKLOG)
            self._reader = asyncio.create_task(self._read(self._child.stdout, self._answers))
        return self._child

    async def _read(
        self, stream: asyncio.StreamReader, answers: asyncio.Queue[Answer | None]
    ) -> None:
        """Put whole answers into the queue, so that nobody who gives up leaves half of one."""
        try:
            while True:
                (length,) = HEADER.unpack(await stream.readexactly(HEADER.size))
                if length > MAX_FRAME:
                    break
                await answers.put(self._decoder.decode(await stream.readexactly(length)))
        except (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError):
            pass  # the child died or speaks nonsense: None says so below
        await answers.put(None)

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


def lines_of(answer: Answer) -> Lines:
    """Return an answer's spans by line; numbers that make no span are left out."""
    found: Lines = {}
    for number, flat in enumerate(answer.lines, answer.first):
        triples = zip(flat[::3], flat[1::3], flat[2::3], strict=False)
        found[number] = [
            (start, end, COLOURS[colour])
            for start, end, colour in triples
            if 0 <= start < end and 0 <= colour < len(COLOURS)
        ]
    return found
