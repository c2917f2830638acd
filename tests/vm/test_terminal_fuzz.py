"""Some seeds of the fuzzer (tests/conformance/fuzz.py); a failure says how to play them again.

CI plays every seed that once found something, and one of ten of the others; `CLOCHE_FULL=1` all.

The number of operations bounds it, not the clock, so that the same is played on any machine, and
none of it may end the engine. (Longer runs still meet one fault, rarely: widening with links, see
docs/terminal-conformance.md; `test_pane_kills.py` holds that a terminal survives it.)
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.conformance import fuzz
from tests.conformance.fuzz import Ending, minimise, run
from tests.sampling import FULL

if TYPE_CHECKING:
    from collections.abc import Sequence

CRASH = """
import os, signal, sys
from tests.conformance.fuzz import NOTE
with open(sys.argv[sys.argv.index("--note") + 1], "r+b") as note:
    note.write(NOTE.pack(9, b"feed"))
os.kill(os.getpid(), signal.SIGSEGV)
"""

OPERATIONS = 600
PARTS, SEEDS = 8, 10
FOUND = (58, 1248, 5292, 2222, 5071, 5190, 10257)
"""A selection left behind by a reflow; a cluster that widens; a page that hangs over the end; links
in a terminal that is widened."""


def seeds_of(part: int) -> range:
    """Return the seeds of a part; in CI the one whose last digit is the part's own."""
    first = part * SEEDS
    return range(first, first + SEEDS) if FULL else range(first + part, first + part + 1)


def again(ending: Ending, *, tiny: bool) -> str:
    options = f"--operations {OPERATIONS}{' --tiny' if tiny else ''}"
    return f"{ending}\npython -m tests.conformance.fuzz --minimise {ending.seed} {options}"


@pytest.mark.parametrize("part", range(PARTS))
def test_the_engine_takes_whatever_comes(part: int) -> None:
    endings = [run(seed, OPERATIONS) for seed in seeds_of(part)]
    for ending in endings:
        assert ending.good, again(ending, tiny=False)


@pytest.mark.parametrize("part", range(2))
def test_the_engine_takes_whatever_comes_at_the_smallest_sizes(part: int) -> None:
    for seed in seeds_of(part):
        ending = run(seed, OPERATIONS, tiny=True)
        assert ending.good, again(ending, tiny=True)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_away(seed: int) -> None:
    ending = run(seed, OPERATIONS)
    assert ending.good, again(ending, tiny=False)


def test_an_ending_says_its_signal_and_its_seed() -> None:
    ending = Ending(7, -signal.SIGSEGV, 41, "feed", "words")
    assert str(ending) == "seed 7, operation 41 (feed): SIGSEGV\nwords"
    assert not ending.good
    assert not ending.known
    assert Ending(7, -signal.SIGSEGV, 41, "resize", "").known
    assert not Ending(7, 1, 41, "resize", "").known


def test_a_child_that_fails_is_seen_with_its_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "CHILD", ["-c", CRASH])
    ending = run(3, 10)
    assert (ending.status, ending.operation, ending.doing) == (-signal.SIGSEGV, 9, "feed")


def test_minimising_finds_what_matters() -> None:
    tried: list[int] = []

    def fails(chosen: Sequence[int]) -> bool:
        tried.append(len(chosen))
        return {3, 40, 41} <= set(chosen)

    assert minimise(0, 100, fails) == [3, 40, 41]
    assert max(tried) < 100
