"""Textual's workers, without the text that it makes of their arguments each time one starts.

That text is for its debugger and holds `repr` of every argument: of a file of 50,000 lines, of all
decisions about it. None of ours ends the application when it fails: it says so in a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from textual import work as textual_work

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from textual.worker import Worker

P = ParamSpec("P")
Result = TypeVar("Result")


def work(
    group: str, *, exclusive: bool = False
) -> Callable[[Callable[P, Coroutine[None, None, Result]]], Callable[P, Worker[Result]]]:
    """Make a method a worker of a group; an exclusive one ends those before it in the group."""

    def decorate(
        method: Callable[P, Coroutine[None, None, Result]],
    ) -> Callable[P, Worker[Result]]:
        name = method.__name__
        make = textual_work(group=group, exclusive=exclusive, exit_on_error=False, description=name)
        return make(method)

    return decorate
