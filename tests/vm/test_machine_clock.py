"""The rate of the host's counter, measured and told."""

from __future__ import annotations

import mmap
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.errors import HostLacks
from vm.image.cmdline import emulated_clock
from vm.machine import clock

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = "flags\t\t: fpu tsc rdtscp constant_tsc nonstop_tsc\n"


def test_measured_and_told_agree_on_this_host() -> None:
    told = clock.told_khz(clock.CPUINFO.read_text())
    assert abs(clock.host_tsc_khz() - told) < told * 0.005


def test_what_the_kernel_tells_serves_where_no_code_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> mmap.mmap:
        raise PermissionError("execmem")

    monkeypatch.setattr(mmap, "mmap", refused)
    monkeypatch.setattr(clock, "CPUINFO", tmp_path / "cpuinfo")
    with pytest.raises(HostLacks):
        clock.host_tsc_khz()
    clock.CPUINFO.write_text(f"cpu MHz\t\t: 800.000\nbogomips\t: 5192.24\n{FLAGS}")
    assert clock.host_tsc_khz() == 2_596_120


@pytest.mark.parametrize(
    "cpuinfo",
    [
        "",
        FLAGS,
        "bogomips\t: 5192.24\n",  # the loop was timed, the counter may change its speed
        f"bogomips\t: 0.00\n{FLAGS}",
        f"bogomips\t: 999999.00\n{FLAGS}",
        f"bogomips\t: lots\n{FLAGS}",
        "bogomips\t: 5192.24\nflags\t\t: tsc not_constant_tsc_x\n",
    ],
)
def test_a_kernel_that_does_not_tell(cpuinfo: str) -> None:
    with pytest.raises(HostLacks):
        clock.told_khz(cpuinfo)


def test_other_processors_have_no_such_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(HostLacks, match="no time stamp counter"):
        clock.host_tsc_khz()


def test_one_pause_does_not_count() -> None:
    good = (130_000_000, 50_000_000)
    assert clock.rate_khz([good, (130_000_000, 90_000_000), good]) == 2_600_000
    assert clock.rate_khz([]) == clock.rate_khz([(-5, 10), (5, 0)]) == 0
    assert clock.rate_khz([(10**12, 10)]) == 0


@given(st.lists(st.tuples(st.integers(), st.integers()), max_size=9))
def test_no_reading_gives_an_impossible_rate(readings: list[tuple[int, int]]) -> None:
    assert 0 <= clock.rate_khz(readings) <= 10_000_000


def test_measuring_takes_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = time.sleep

    def note(seconds: float) -> None:
        slept.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", note)
    clock.host_tsc_khz()
    assert sum(slept) < 0.2


def test_the_words_for_the_kernel() -> None:
    assert emulated_clock(2_596_100) == (
        "no_timer_check tsc=reliable tsc_early_khz=2596100 lpj=10384400"
    )
