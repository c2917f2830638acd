"""Whether one more machine fits, decided on made-up hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import host_memory
from app.memory_claims import (
    SHARE,
    Claim,
    Outlook,
    budget,
    ceiling,
    outlook,
    too_large,
    too_little,
    words,
)
from app.records import Process

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
ME = Process(1, 1)


def claim(name: str, memory: int, *, since: float = 0.0, granted: bool = False) -> Claim:
    return Claim(name, memory, ME, since, granted)


def test_what_machines_hold_already_counts_as_theirs() -> None:
    assert budget(10 * GIB, 0, 0) == 8192
    assert budget(8 * GIB, 2 * GIB, 0) == 8192
    assert budget(10 * GIB, 0, 4096) == 4096
    assert budget(2 * GIB, 0, 4096) == 1638
    assert ceiling(16 * GIB, 0) == 13107


def test_a_promise_counts_whole_whatever_was_touched() -> None:
    others = [claim("a", 2048, granted=True), claim("b", 2048, granted=True)]
    assert outlook(claim("c", 2048), others, 8192) == (4096, 0)
    assert outlook(claim("c", 2048), others, 3000) == (0, 0)


def test_who_came_first_goes_first() -> None:
    large = claim("large", 6000, since=1.0)
    small = claim("small", 512, since=2.0)
    taken = claim("taken", 4096, granted=True)
    assert outlook(small, [taken, large], 8192) == (0, 1)
    assert outlook(large, [taken, small], 8192) == (4096, 0)


def test_nobody_waits_behind_what_would_not_fit_alone() -> None:
    assert outlook(claim("b", 512, since=2.0), [claim("a", 9000, since=1.0)], 8192) == (8192, 0)


def test_two_of_the_same_moment_have_an_order() -> None:
    one, two = claim("a", 512), claim("b", 512)
    assert outlook(one, [two], 8192).ahead == 0
    assert outlook(two, [one], 8192).ahead == 1


CLAIMS = st.lists(
    st.builds(
        claim,
        st.text("abcdef", min_size=1, max_size=3),
        st.integers(128, 9000),
        since=st.integers(0, 3).map(float),
        granted=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda one: one.session,
)


@given(claims=CLAIMS, whole=st.integers(0, 20000))
def test_whoever_is_let_in_the_promises_stay_within_the_budget(
    claims: list[Claim], whole: int
) -> None:
    """Let in, one after the other in any order, all that fit."""
    taken = sum(one.memory for one in claims if one.granted)
    for mine in [one for one in claims if not one.granted]:
        others = [one for one in claims if one.session != mine.session]
        if outlook(mine, others, whole).free >= mine.memory:
            claims = [*others, claim(mine.session, mine.memory, since=mine.since, granted=True)]
    now = sum(one.memory for one in claims if one.granted)
    assert now <= max(taken, whole)


@given(claims=CLAIMS, whole=st.integers(9000, 20000))
def test_the_line_never_stands_still_when_all_machines_have_ended(
    claims: list[Claim], whole: int
) -> None:
    waiting = [one for one in claims if not one.granted]
    fits = [
        outlook(one, [other for other in waiting if other is not one], whole).free >= one.memory
        for one in waiting
    ]
    assert any(fits) or not waiting


def test_what_a_session_says() -> None:
    assert words(2048, Outlook(512, 0)) == "Waits for memory: 512 MiB free of 2048 needed."
    assert words(1, Outlook(0, 1)).endswith("needed, 1 session waits before it.")
    assert words(1, Outlook(0, 3)).endswith("needed, 3 sessions wait before it.")


def test_refusals_name_the_way_out() -> None:
    error = too_little(2048, Outlook(100, 0), 600)
    assert (error.code, error.hint) == (
        "no-memory",
        "Stop a session (cloche ps), or wait until one has ended: --queue",
    )
    assert "600 s" in error.message
    error = too_large(4096, 3276, 0)
    assert error.hint == "Give new sessions less, in config.yaml: 'defaults: {memory: 3276}'"
    assert f"{SHARE} % of this host" in error.message
    assert "'pool'" in too_large(4096, 3000, 3000).message


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(
        "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n"
    )
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/old\n0::/user.slice/mine\n")
    (tmp_path / "sys/fs/cgroup/user.slice/mine").mkdir(parents=True)
    return tmp_path


def test_the_whole_host(host: Path) -> None:
    assert host_memory.host_memory(host) == (16 * GIB, 8 * GIB)
    (host / "sys/fs/cgroup/user.slice/mine/memory.max").write_text("max\n")
    assert host_memory.host_memory(host) == (16 * GIB, 8 * GIB)


def test_a_group_with_a_limit_above_ours(host: Path) -> None:
    group = host / "sys/fs/cgroup/user.slice"
    (group / "memory.max").write_text(f"{4 * GIB}\n")
    (group / "memory.current").write_text(f"{3 * GIB}\n")
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {GIB}\nactive_file 7\n")
    assert host_memory.host_memory(host) == (4 * GIB, 2 * GIB)
    (group / "memory.current").write_text(f"{9 * GIB}\n")
    assert host_memory.host_memory(host) == (4 * GIB, 0)


def test_a_process(host: Path) -> None:
    (host / "proc/7").mkdir()
    (host / "proc/7/status").write_text("RssAnon:\t 100 kB\nRssFile:\t 9 kB\nRssShmem:\t 28 kB\n")
    assert host_memory.resident(7, host) == 128 << 10
    assert host_memory.resident(8, host) == 0


def test_a_host_that_tells_nothing(tmp_path: Path) -> None:
    assert host_memory.host_memory(tmp_path) == (0, 0)
