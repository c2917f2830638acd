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

Lines = dict[int, list["Span"]]


class Colours:
    """Owns the child; it is started when a text is asked for and again after it was killed."""

    def __init__(self, argv: Sequence[str] | None = None) -> None:
        self._argv = list(argv) if argv is not None else role_command("colours")
        self._child: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._decoder = msgspec.msgpack.Decoder(Answer)

    async def spans(self, name: bytes, text: str) -> AsyncGenerator[Lines]:
        """Yield colours of some lines after others; ends early where the child does not answer."""
        request = msgspec.msgpack.encode(Request(name, text))
        if len(request) > MAX_FRAME:
            return
        async with self._lock:
            done = False
            try:
                async for answer in self._ask(request):
                    yield lines_of(answer)
                    done = answer.last
            finally:
                if not done:  # what still comes belongs to nobody
                    await self.close()

    async def _ask(self, request: bytes) -> AsyncGenerator[Answer]:
        child = await self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        last = False
        try:
            child.stdin.write(HEADER.pack(len(request)) + request)
            async with asyncio.timeout(ANSWER_SECONDS):
                await child.stdin.drain()
            while not last:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await self._answer(child.stdout)
                last = answer.last
                yield answer
        except (OSError, TimeoutError, asyncio.IncompleteReadError, msgspec.MsgspecError):
            return

    async def _answer(self, stream: asyncio.StreamReader) -> Answer:
        (length,) = HEADER.unpack(await stream.readexactly(HEADER.size))
        if length > MAX_FRAME:
            raise msgspec.ValidationError("frame too long")
        return self._decoder.decode(await stream.readexactly(length))

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
            )
        return self._child

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
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
