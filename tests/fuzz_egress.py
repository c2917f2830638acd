"""Fuzz the parsers that a guest's bytes reach first: frames, DNS, ClientHello, HTTP.

`python -m tests.fuzz_egress --seconds 600 [--seed N] [--cases N]` prints what it found and ends
with 1 where that is something; `--only TARGET --case N --seed N` does one case again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.vm.fuzz_mutate import Mutator
from tests.vm.fuzz_targets import targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.vm.fuzz_targets import Target

SLOW_S: Final = 5.0
"""CPU seconds that no case may take; a usual one takes less than a hundredth of one."""
MAX_FOUND: Final = 20
"""Findings after which a run ends: the rest is most likely the same again."""


@dataclass
class Report:
    """What a run did: cases and slowest case in CPU seconds by target, and findings in words."""

    seed: int
    cases: dict[str, int] = field(default_factory=dict[str, int])
    slowest: dict[str, float] = field(default_factory=dict[str, float])
    found: list[str] = field(default_factory=list[str])


def one(name: str, target: Target, seed: int, case: int) -> str | None:
    """Do one case; return what went wrong."""
    act, seeds, words = target
    try:
        act(Mutator(random.Random(f"{seed} {name} {case}"), seeds, words))
    except Exception:  # whatever a parser raises that it must not is what is sought
        return f"{name}, seed {seed}, case {case}:\n{traceback.format_exc()}"
    return None


def run(chosen: Mapping[str, Target], seconds: float, cases: int, seed: int) -> Report:
    """Do cases of each target in turn, until the time or the number (of each target) is over."""
    report = Report(seed, dict.fromkeys(chosen, 0), dict.fromkeys(chosen, 0.0))
    until = time.monotonic() + seconds
    for case in range(cases):
        if time.monotonic() > until or len(report.found) >= MAX_FOUND:
            break
        for name, target in chosen.items():
            began = time.process_time()
            wrong = one(name, target, seed, case)
            took = time.process_time() - began
            if wrong is None and took > SLOW_S:
                wrong = f"{name}, seed {seed}, case {case}: {took:.1f} s of CPU time"
            report.found += [wrong] if wrong else []
            report.cases[name] += 1
            report.slowest[name] = max(report.slowest[name], took)
    return report


def main() -> int:
    """Fuzz as the command line says; 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cases", type=int, default=1 << 40, help="at most, of each target")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", choices=list(targets()))
    parser.add_argument("--case", type=int, help="do this case alone")
    wanted = parser.parse_args()
    chosen = {k: v for k, v in targets().items() if wanted.only in (None, k)}
    if wanted.case is not None:
        found = [one(name, target, wanted.seed, wanted.case) for name, target in chosen.items()]
        sys.stdout.write("\n".join(filter(None, found)) or "nothing\n")
        return any(found)
    report = run(chosen, wanted.seconds, wanted.cases, wanted.seed)
    for name, count in report.cases.items():
        sys.stdout.write(f"{name}: {count} cases, the slowest {report.slowest[name]:.3f} s\n")
    sys.stdout.write("\n".join([*report.found, f"seed {report.seed}: {len(report.found)} found\n"]))
    return bool(report.found)


if __name__ == "__main__":
    sys.exit(main())
