"""What headless runs and sandboxes say of refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from app.cli.network_flags import MAX_REFUSED, egress_report, note_refused
from app.cli.output import Output
from app.services.egress_refused import refused, refused_in
from vm.egress.kinds import Entry
from vm.egress.ledger import NAME, Ledger

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def entry(host: str, verdict: str, code: str, count: int = 1, port: int | None = 443) -> Entry:
    return Entry(0.0, "open", host, port, verdict, code=code, reason=code, count=count)  # type: ignore[arg-type]  # words of the tests below


def test_refusals_are_counted_by_target_and_reason(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / NAME)
    for one in (
        entry("a.example", "allow", "allowed"),
        entry("b.example", "deny", "not-listed"),
        entry("c.example", "deny", "denied", 4, None),
        entry("b.example", "deny", "not-listed", 2),
        entry("b.example", "deny", "sni-mismatch"),
        Entry(0.0, "drop", "", 53, "deny", code="foreign-dns", address="8.8.8.8", protocol="udp"),
    ):
        ledger(one)
    ledger.close()
    found = [(one.host, one.port, one.code, one.count) for one in refused_in(tmp_path)]
    assert found == [
        ("c.example", None, "denied", 4),
        ("b.example", 443, "not-listed", 3),
        ("b.example", 443, "sni-mismatch", 1),
        ("8.8.8.8", 53, "foreign-dns", 1),
    ]
    assert refused_in(tmp_path / "none") == ()


def test_both_questions_of_one_look_up_are_one_refusal_and_a_failure_is_none() -> None:
    def query(qtype: str, at: float, host: str = "a.example") -> Entry:
        return Entry(at, "query", host, None, "deny", code="not-listed", qtype=qtype)

    log = [query("A", 1.0), query("A", 1.0, "b.example"), query("AAAA", 1.1), query("A", 2.0)]
    failed = Entry(2.0, "open", "c.example", 80, "allow", code="no-address")
    found = {one.host: one.count for one in refused([*log, failed])}
    assert found == {"a.example": 2, "b.example": 1}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), max_size=30))
def test_no_refusal_gets_lost(log: list[tuple[str, int]]) -> None:
    entries = [entry(f"{name}.example", "deny", "denied", count) for name, count in log]
    assert sum(one.count for one in refused(entries)) == sum(count for _, count in log)


def test_the_end_of_a_run_names_the_option_that_lets_a_host_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_refused(Output(as_json=False), tuple(refused([entry("a.example", "deny", "not-listed")])))
    said = capsys.readouterr().err
    assert "egress: 1 target was refused:" in said
    assert "Let one through: --allow-host HOST[:PORT]" in said
    assert "--allow-cidr" not in said
    note_refused(Output(as_json=False), tuple(refused([entry("a.example", "deny", "denied")] * 2)))
    assert "--allow-host" not in capsys.readouterr().err


def test_a_report_is_bounded_and_says_how_many_there_were() -> None:
    many = refused(entry(f"n{number}.example", "deny", "denied") for number in range(500))
    report = egress_report(tuple(many))
    assert (len(report["denied"]), report["denied_targets"]) == (MAX_REFUSED, 500)
    assert report["denied"][0] == {
        "host": "n0.example",
        "port": 443,
        "code": "denied",
        "reason": "denied",
        "count": 1,
    }
