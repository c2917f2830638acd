"""Lists that are longer than one answer of a keeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


class _Page(Protocol):
    """A part of a list that is longer than one answer."""

    @property
    def total(self) -> int:
        """How many items the whole list has."""
        ...


P = TypeVar("P", bound=_Page)
T = TypeVar("T")


async def all_pages(
    ask: Callable[[int], Awaitable[P]], items: Callable[[P], Sequence[T]]
) -> tuple[P, list[T]]:
    """Ask for a list page by page, each from an item on; return the first page and every item.

    A list that shrank meanwhile ends with what there is.
    """
    first = page = await ask(0)
    found = list(items(first))
    while len(found) < page.total and items(page):
        page = await ask(len(found))
        found += items(page)
    return first, found
