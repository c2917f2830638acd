"""`kill -9` at every named step, once; all steps with all victims: `python -m tests.e2e.chaos`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.chaos import CHAINS, STEPS, run_chain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.e2e.chaos import Death
    from vm.image.store import ImageSet


def test_every_step_is_in_a_chain() -> None:
    assert {step.name for step in STEPS} == {death.step.name for one in CHAINS for death in one}


@pytest.mark.vm
@pytest.mark.parametrize("deaths", CHAINS, ids=("a whole life", "a short one"))
def test_nothing_is_lost_or_left_behind(
    deaths: Sequence[Death], tmp_path: Path, guest_image: ImageSet
) -> None:
    run_chain(deaths, tmp_path, guest_image)
