"""A short fuzz run of what reads a guest's bytes; `python -m tests.fuzz_egress` is the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz_egress import one, run
from tests.vm.fuzz_targets import targets
from vm.egress.sniff_tls import HelloReader, NotTls

if TYPE_CHECKING:
    from tests.vm.fuzz_mutate import Mutator

SECONDS = 20.0
CASES = 1500
SEED = 7


def test_a_short_run_finds_nothing() -> None:
    report = run(targets(), SECONDS, CASES, SEED)
    assert not report.found, "\n".join(report.found)
    assert min(report.cases.values()) > CASES // 50, "it was not given the time for a real run"


def test_a_fault_is_found_and_comes_back_by_its_number() -> None:
    def careless(mutate: Mutator) -> None:
        """Forgets that a ClientHello may be none at all."""
        HelloReader().feed(mutate.message())

    _, seeds, words = targets()["tls"]
    report = run({"tls": (careless, seeds, words)}, SECONDS, CASES, SEED)
    assert report.found
    case = int(report.found[0].split("case ")[1].split(":")[0])
    assert one("tls", (careless, seeds, words), SEED, case) == report.found[0]
    assert NotTls.__name__ in report.found[0]
