from __future__ import annotations

import json
import os
import resource
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress import ledger as module
from vm.egress.kinds import Action, Entry, Request
from vm.egress.ledger import (
    BURST,
    Ledger,
    older,
    parse,
    read_entries,
    read_totals,
)
from vm.egress.local_end import http_refusal
from vm.egress.lookups import MAX_NAMES, LookUps
from vm.egress.totals import MAX_REFUSED, Totals, target

if TYPE_CHECKING:
    from pathlib import Path


def opened(host: str = "x.example", at: float = 0.0, verdict: Action = "allow") -> Entry:
    return Entry(at, "open", host, 443, verdict, "session", host, "run", "allowed", "Yes.")


def test_an_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    entries = [
        Entry(1.5, "query", "x.example", None, "deny", qtype="A"),
        opened(),
        Entry(2.5, "close", "x.example", 443, "allow", flow=7, up=10, down=20, duration_ms=5),
        Entry(3.0, "drop", "", 53, "deny", protocol="udp", address="8.8.8.8", count=4),
    ]
    for entry in entries:
        log(entry)
    log.close()
    assert list(read_entries(path)) == entries
    assert path.stat().st_mode & 0o777 == 0o600
    expected = Totals(7, 1, 1, 1, 4, 10, 20, 0, {"x.example": 1})
    assert log.totals == expected
    assert read_totals(path) == expected


def test_each_line_is_ascii_whatever_the_guest_said(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    log(Entry(0, "query", "a\x1b[2J\n‮.example" + "x" * 9999, None, "deny", note="\x07 ü" * 999))
    log.close()
    raw = path.read_bytes()
    assert raw.isascii()
    assert raw.count(b"\n") == 2
    (entry,) = read_entries(path)
    assert entry.host.startswith("a\\u{1b}[2J\\u{a}\\u{202e}.example")
    assert len(entry.host) <= 253
    assert entry.note.isprintable()


@given(st.text(max_size=300), st.text(max_size=600))
def test_any_text_stays_one_printable_line(host: str, note: str) -> None:
    entry = module._clean(Entry(0, "drop", host, None, "deny", note=note))  # pyright: ignore[reportPrivateUsage]
    assert entry.host.isascii()
    assert entry.host.isprintable()
    assert entry.note.isprintable()


def test_the_files_stay_below_the_cap_and_the_counts_do_not(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    cap = 64 << 10
    log = Ledger(path, cap)
    for number in range(3000):
        log(opened(f"h{number}.example", at=float(number)))
        if number % 500 == 0:
            assert path.stat().st_size <= cap // 2
    log.close()
    assert path.stat().st_size + older(path).stat().st_size <= cap
    assert log.totals.entries == log.totals.allowed == 3000
    assert read_totals(path) == log.totals
    kept = [entry.host for entry in read_entries(path)]
    assert kept[-1] == "h2999.example"
    assert kept == [f"h{number}.example" for number in range(3000 - len(kept), 3000)]


def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    for number in range(3):
        log = Ledger(path)
        log(opened(at=float(number)))
        log.close()
    assert read_totals(path).allowed == 3
    assert len(list(read_entries(path))) == 3


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    log(opened("a.example"))
    log.close()
    with path.open("ab") as file:
        file.write(b'{"at":1,"kind":"op')
    log = Ledger(path)
    log(opened("b.example"))
    log.close()
    assert [entry.host for entry in read_entries(path)] == ["a.example", "b.example"]
    assert read_totals(path).allowed == 2


def test_a_flood_is_counted_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    total = int(BURST) + 500
    for _ in range(total):
        log(opened(at=5.0))
    log(opened("late.example", at=6.0))
    log.close()
    assert log.totals.entries == total + 1
    assert log.totals.unwritten == 500
    assert len(list(read_entries(path))) == int(BURST) + 1
    notes = [json.loads(line) for line in path.read_bytes().splitlines() if b"unwritten" in line]
    assert notes[-1]["count"] == 500
    assert read_totals(path).entries == total + 1


def test_refused_targets_are_counted_by_name_up_to_a_bound(tmp_path: Path) -> None:
    log = Ledger(tmp_path / "egress.jsonl")
    for number in range(MAX_REFUSED + 50):
        log(opened(f"h{number}.example", at=float(number), verdict="deny"))
    log(opened("h0.example", at=1e6, verdict="deny"))
    log.close()
    assert log.totals.denied == MAX_REFUSED + 51
    assert len(log.totals.refused) == MAX_REFUSED
    assert log.totals.refused["h0.example:443"] == 2


def asked(qtype: str, at: float, host: str = "x.example") -> Entry:
    return Entry(at, "query", host, None, "deny", code="no-rule", qtype=qtype)


@pytest.mark.parametrize(
    ("entries", "denied"),
    [
        ([asked("A", 0.0), asked("AAAA", 0.1)], 1),
        ([asked("AAAA", 0.0), asked("A", 0.1), asked("HTTPS", 0.2)], 1),
        ([asked("A", 0.0), asked("A", 0.1)], 2),
        ([asked("A", 0.0), asked("AAAA", 6.0)], 2),
        ([asked("A", 0.0), asked("AAAA", 0.1, "y.example")], 2),
        ([asked("A", 0.0), asked("A", 0.0, "y.example"), asked("AAAA", 0.1)], 2),
        ([asked("A", 0.0), replace(asked("AAAA", 0.1), code="dns-rebinding")], 2),
        ([asked("A", 0.0), asked("AAAA", 0.1), asked("A", 0.2), asked("AAAA", 0.3)], 2),
    ],
)
def test_both_questions_of_one_look_up_are_one_refusal(
    tmp_path: Path, entries: list[Entry], denied: int
) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    for entry in entries:
        log(entry)
    assert (log.totals.queries, log.totals.denied) == (len(entries), denied)
    assert sum(log.totals.refused.values()) == denied
    log.close()
    assert read_totals(path) == log.totals


def test_names_that_were_asked_for_are_remembered_up_to_a_bound() -> None:
    names = LookUps()
    first = asked("A", 0.0)
    assert not names.again(first)
    for number in range(MAX_NAMES):
        assert not names.again(asked("A", 0.0, f"{number}.example"))
    assert not names.again(asked("AAAA", 0.1)), "it was forgotten"
    assert names.again(asked("AAAA", 0.1, f"{MAX_NAMES - 1}.example"))


def test_an_allowed_host_that_cannot_be_reached_is_neither_let_through_nor_denied(
    tmp_path: Path,
) -> None:
    log = Ledger(tmp_path / "egress.jsonl")
    log(replace(opened("a.example"), code="no-address"))
    log(replace(opened("a.example", verdict="deny"), code="not-listed"))
    log(opened("a.example"))
    log.close()
    totals = read_totals(tmp_path / "egress.jsonl")
    assert (totals.entries, totals.allowed, totals.denied) == (3, 1, 1)


@pytest.mark.parametrize(
    ("code", "status", "error", "retry"),
    [
        ("no-address", b"502 Bad Gateway", "egress-failed", True),
        ("not-listed", b"403 Forbidden", "egress-refused", False),
    ],
)
def test_plain_http_is_told_whether_it_was_refused_or_failed(
    code: str, status: bytes, error: str, retry: bool
) -> None:
    answer = http_refusal(Request("a.example", 80), code, "Why.")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    told = json.loads(body)
    assert (told["error"], told["code"], told["retry"]) == (error, code, retry)


def test_a_full_disk_ends_neither_the_log_nor_its_counts(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    log = Ledger(path)
    log(opened("a.example"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
        log(opened("b.example"))
        log(opened("c.example"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    log(opened("d.example"))
    log.close()
    assert log.totals.allowed == 4
    assert log.totals.unwritten == 2
    assert [entry.host for entry in read_entries(path)] == ["a.example", "d.example"]


def test_damage_and_long_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    path.write_bytes(b"\xff\xfe\nnull\n[]\n" + b'{"a":"' + b"x" * 100_000 + b'"}\n{"kind":1}\n')
    assert list(read_entries(path)) == []
    assert read_totals(path) == Totals()
    assert parse(b"x" * 100_000) is None


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("")
    os.symlink(tmp_path / "victim", tmp_path / "egress.jsonl")
    with pytest.raises(OSError, match="symbolic"):
        Ledger(tmp_path / "egress.jsonl")


def test_where_there_is_no_log_nothing_happened(tmp_path: Path) -> None:
    assert list(read_entries(tmp_path / "none")) == []
    assert read_totals(tmp_path / "none") == Totals()


def test_a_target_is_one_text() -> None:
    assert target("x.example", 443) == "x.example:443"
    assert target("::1", 443) == "[::1]:443"
    assert target("x.example", None) == "x.example"
