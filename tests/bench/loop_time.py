"""CPU time of the event loop's turns: of a whole step, of its longest turn, of Cloche's own part.

What a step costs is counted turn by turn, so that the harness, which waits in a task of its own,
is no part of it. *Own* is what runs in handlers, actions and drawing of Cloche's screens and
widgets; the rest is Textual's: keys to bindings, messages, composing the screen, and the bytes for
the terminal, which are made here although there is none. The keeper in memory is left out.
"""

# What a turn of the loop is for, and where Textual calls the application, has no public name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import asyncio.events
import inspect
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from unittest.mock import patch

from textual import _callback, message_pump
from textual import app as textual_app
from textual._compositor import CompositorUpdate

from tests.doubles.keeper import FakeSession
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

OURS: Final = ("app", "widgets")
"""Packages whose handlers and actions are Cloche's own."""


KEEPER: Final = ("changes", "comments", "conflicts", "decide", "undo_decision", "redo_decision")
"""What the keeper in memory computes in this process; in life that is another one."""


class LoopTime:
    """Notes CPU seconds while `watched` is open."""

    def __init__(self) -> None:
        self.whole = 0.0
        """All turns but the harness's."""
        self.longest = 0.0
        """The longest of them."""
        self.own = 0.0
        """What of them is Cloche's own."""
        self.frames = 0
        """The most frames that one turn put on the screen."""
        self._in_turn = 0
        self._harness: asyncio.Task[Any] | None = None
        self._keeper = 0.0
        self._depth = 0

    @contextmanager
    def watched(self) -> Generator[None]:
        """Count from zero until this is closed; whoever opens it is the harness."""
        self.whole = self.longest = self.own = 0.0
        self.frames = 0
        self._harness = asyncio.current_task()
        with ExitStack() as stack:
            for place, name, replacement in self._patches():
                stack.enter_context(patch.object(place, name, replacement))
            yield

    def _patches(self) -> Generator[tuple[object, str, object]]:
        yield asyncio.events.Handle, "_run", self._timed_run(asyncio.events.Handle._run)
        invoke = self._timed_invoke(_callback.invoke)
        yield message_pump, "invoke", invoke
        yield textual_app, "invoke", invoke
        yield LineView, "render_lines", self._timed(LineView.render_lines)
        yield textual_app.App, "_display", self._written(cast("Any", textual_app.App)._display)
        for name in KEEPER:
            yield FakeSession, name, self._left_out(getattr(FakeSession, name))

    def _timed_run(self, inner: Callable[..., None]) -> Callable[..., None]:
        def run(handle: Any) -> None:
            if getattr(handle._callback, "__self__", None) is self._harness:
                inner(handle)
                return
            began, keeper, self._in_turn = time.thread_time(), self._keeper, 0
            inner(handle)
            spent = time.thread_time() - began - (self._keeper - keeper)
            self.whole += spent
            self.longest = max(self.longest, spent)
            self.frames = max(self.frames, self._in_turn)

        return run

    def _left_out(self, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """Return a method of the keeper, which waits for nothing, its time not counted."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return await inner(*args, **kwargs)
            finally:
                self._keeper += time.thread_time() - began

        return call

    def _timed(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Return `inner`, its time counted as Cloche's own."""

        def call(*args: Any) -> Any:
            began = self._enter()
            try:
                return inner(*args)
            finally:
                self._leave(began)

        return call

    def _timed_invoke(self, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """Return Textual's way to call a handler; what waits in between is not counted."""

        async def invoke(callback: Any, *params: object) -> Any:
            function = getattr(callback, "func", callback)
            ours = str(getattr(function, "__module__", "")).partition(".")[0] in OURS
            if not ours or inspect.iscoroutinefunction(function):
                return await inner(callback, *params)
            began = self._enter()
            try:
                return await inner(callback, *params)
            finally:
                self._leave(began)

        return invoke

    def _written(self, inner: Callable[..., None]) -> Callable[..., None]:
        """Return Textual's display, which makes no bytes where there is no terminal, with them."""

        def display(app: Any, screen: Any, renderable: object) -> None:
            if isinstance(renderable, CompositorUpdate):
                self._in_turn += 1
                renderable.render_segments(app.console)
            inner(app, screen, renderable)

        return display

    def _enter(self) -> float:
        self._depth += 1
        return time.thread_time()

    def _leave(self, began: float) -> None:
        self._depth -= 1
        if not self._depth:
            self.own += time.thread_time() - began
