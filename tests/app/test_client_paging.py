"""Lists that come in pages: all of them arrive, each item once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from app.client.paging import all_pages


class Page(NamedTuple):
    """What one call answers."""

    items: list[int]
    total: int


@given(whole=st.lists(st.integers(), max_size=40), size=st.integers(1, 9))
def test_every_item_of_a_list_comes_once(whole: list[int], size: int) -> None:
    asked: list[int] = []

    async def page(start: int) -> Page:
        asked.append(start)
        return Page(whole[start : start + size], len(whole))

    first, found = asyncio.run(all_pages(page, lambda page: page.items))
    assert found == whole
    assert first.items == whole[:size]
    assert asked == [0, *range(size, len(whole), size)]


def test_a_list_that_shrank_meanwhile_ends_with_what_there_is() -> None:
    pages = iter([Page([1, 2], 5), Page([3], 5), Page([], 5)])

    async def page(start: int) -> Page:
        return next(pages)

    assert asyncio.run(all_pages(page, lambda page: page.items))[1] == [1, 2, 3]
