"""A gate on the diff engine: beside git and difflib, on the same input in the same run, CPU."""

from __future__ import annotations

from snapshot.diff import diff
from tests.bench.diff import cpu_ms, pair
from tests.bench.review import DIFFLIB_TIMES, GIT_TIMES, engines


def test_ours_is_near_git_and_far_from_difflib() -> None:
    found = engines(runs=7)
    # The goal is twice git's CPU; a busy machine moves the shares of so few milliseconds.
    assert found["times_git"] <= GIT_TIMES * 1.5, found
    assert found["difflib_times"] >= DIFFLIB_TIMES, found


def test_ten_times_the_lines_cost_no_more_than_thirty_times() -> None:
    small, large = (
        min(cpu_ms(lambda: diff(*pair_of)) for _ in range(3))  # noqa: B023 - called before the loop goes on
        for pair_of in (pair("scatter", 10_000), pair("scatter", 100_000))
    )
    assert large <= 30 * small
