"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from app.wording import counted, times


@pytest.mark.parametrize(("count", "said"), [(0, "0 files"), (1, "1 file"), (2000, "2,000 files")])
def test_the_noun_goes_with_its_number(count: int, said: str) -> None:
    assert counted(count, "file") == said


def test_how_often() -> None:
    assert [times(count) for count in (1, 2, 1000)] == ["once", "2 times", "1,000 times"]
