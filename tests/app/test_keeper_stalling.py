"""When a silent agent counts as stalled, by what the guest says of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.keeper.attention import QUIET_S, Attention
from app.keeper.stalling import CALM, LOOKS, Stalling
from vm.machine.bulk import Activity

T0 = 1000.0
BOUND_S = 300.0
STEP_S = BOUND_S / LOOKS


def told(samples: list[tuple[bool, float]], bound_s: float = BOUND_S) -> Stalling:
    """Let the guest say each step whether a program waits, and its seconds of processor time."""
    known = Stalling(bound_s)
    for number, (waits, cpu_s) in enumerate(samples):
        known.take(T0 + number * STEP_S, Activity(waits, cpu_s))
    return known


def test_one_that_stands_still_long_enough_is_stalled() -> None:
    assert not told([(True, 1.0)] * LOOKS).stalled(T0)
    assert told([(True, 1.0)] * (LOOKS + 1)).stalled(T0)


def test_output_begins_the_time_anew() -> None:
    known = told([(True, 1.0)] * (LOOKS + 1))
    assert not known.stalled(T0 + 1)


def test_processor_time_is_no_standing_still() -> None:
    busy = 2 * CALM * STEP_S
    steady = [(True, 1.0 + number * busy) for number in range(3 * LOOKS)]
    assert not told(steady).stalled(T0)
    timers = [(True, 1.0 + number * busy / 4) for number in range(LOOKS + 1)]
    assert told(timers).stalled(T0)


def test_the_agents_own_prompt_is_no_standing_still() -> None:
    assert not told([(False, 1.0)] * (3 * LOOKS)).stalled(T0)
    once = [(True, 1.0)] * LOOKS + [(False, 1.0)] + [(True, 1.0)] * LOOKS
    assert not told(once).stalled(T0)


def test_never_is_never() -> None:
    assert not told([(True, 1.0)] * (3 * LOOKS), bound_s=0).stalled(T0)
    assert not Stalling(0).due(T0 + 1e6, T0)


def test_nobody_asks_while_there_is_output_or_too_often() -> None:
    known = Stalling(BOUND_S)
    assert not known.due(T0 + STEP_S / 2, T0)
    assert known.due(T0 + STEP_S, T0)
    known.take(T0 + STEP_S, Activity(True, 0.0))
    assert not known.due(T0 + 1.5 * STEP_S, T0)
    assert known.due(T0 + 2 * STEP_S, T0)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 10)), min_size=1, max_size=40),
    st.floats(0, 40 * STEP_S),
)
def test_stalled_means_that_every_look_in_the_time_said_so(
    steps: list[tuple[bool, float]], quiet: float
) -> None:
    total, samples = 0.0, list[tuple[bool, float]]()
    for waits, used in steps:
        total += used
        samples.append((waits, total))
    expected = (
        len(steps) > LOOKS
        and all(waits for waits, _ in steps[-LOOKS - 1 :])
        and all(used <= CALM * STEP_S for _, used in steps[-LOOKS:])
        and (len(steps) - 1) * STEP_S - quiet >= BOUND_S
    )
    assert told(samples).stalled(T0 + quiet) == expected


def test_who_asked_waits_and_who_prints_works_though_it_stood_still() -> None:
    known = Attention(0)
    later = T0 + QUIET_S + 1
    assert known.look(later, 0, T0, stalled=True) == "stalled"
    assert known.look(later, 0, later, stalled=True) == "working"
    known.look(later, 1, later)
    assert known.look(later + QUIET_S + 1, 1, later, stalled=True) == "waiting"
