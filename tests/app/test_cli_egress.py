from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.agents import shell
from app.egress.hints import way_in
from app.main import run
from app.paths import Paths
from app.records import SessionRecord, StateRecord, write_record
from vm.egress.kinds import Entry, Request, Verdict
from vm.egress.ledger import NAME, Ledger

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cloche(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        status = run(["egress", *words, "--json"])
        return status, json.loads(capsys.readouterr().out)

    return call


def test_explain_says_ask_before_and_allow_by_that_rule_after(cloche: Any) -> None:
    assert cloche("explain", "X.example.")[1]["verdict"] == "ask"
    assert cloche("allow", "x.example", "--project")[1]["added"] is True
    found = cloche("explain", "x.example:443")[1]
    assert (found["verdict"], found["level"], found["rule"]) == ("allow", "user", "x.example")
    assert found["origin"].startswith("rules.yaml:")
    assert cloche("deny", "*.example", "--always")[1]["removed"] == ["allow x.example"]
    assert cloche("explain", "x.example")[1]["level"] == "always"
    status, refused = cloche("allow", "y.example", "--project")
    assert (status, refused["error"]["code"]) == (1, "not-effective")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "x.example:99999"),
        ("explain", "a..b"),
        ("allow", "x.example"),
        ("allow", "x.example", "--always", "--project"),
        ("allow", "127.0.0.1", "--always"),
        ("allow", "*.com", "--always"),
        ("deny", "*.cloche.internal", "--always"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(cloche: Any, words: tuple[str, ...]) -> None:
    assert cloche(*words)[0] == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("allow", "x.example"), "Say one of: --session ID, --project, --always"),
        (("allow", "a..b", "--always"), "Write it as NAME[:PORT], *.NAME or CIDR[:PORT]"),
        (("allow", "10.0.0.0/8", "--always"), "cloche egress allow 10.0.0.0/8 --always --private"),
        (("deny", "a.cloche.internal", "--project"), "cloche agents inspect NAME"),
    ],
)
def test_the_hint_is_what_to_say_next(cloche: Any, words: tuple[str, ...], hint: str) -> None:
    assert cloche(*words)[1]["error"]["hint"].endswith(hint)


@pytest.mark.parametrize(
    ("asked", "rule", "more"),
    [
        ("10.1.2.3:22", "10.1.2.3:22", ["--private"]),
        ("x.example:8443", "x.example:8443", []),
        ("198.51.100.7:443", "198.51.100.7:443", ["--private"]),
        ("8.8.8.8:443", "8.8.8.8:443", []),
    ],
)
def test_what_explain_names_lets_it_through(
    cloche: Any, asked: str, rule: str, more: list[str]
) -> None:
    hint = cloche("explain", asked)[1]["hint"]
    words = ["allow", rule, "--project", *more]
    assert hint == f"Let it through: cloche egress {' '.join(words)}"
    assert cloche(*words)[0] == 0
    found = cloche("explain", asked)[1]
    assert (found["verdict"], found["hint"]) == ("allow", "")


def test_what_is_explained_for_a_session_is_let_through_in_that_session() -> None:
    asks = Verdict("ask", "default", "", "", "not-listed", "")
    private = Verdict("deny", "private", "", "", "private-address", "")
    request = Request("x.example", 8443)
    assert way_in(request, asks, "s2").endswith("allow x.example:8443 --session s2")
    assert way_in(request, private, "s2").endswith("allow x.example:8443 --project --private")


def test_what_no_rule_can_open_gets_no_command(cloche: Any) -> None:
    for asked in ("127.0.0.1:80", "[2001:db8::1]:443", "a.cloche.internal"):
        assert cloche("explain", asked)[1]["hint"] == ""


def test_a_deny_in_the_way_is_lifted_by_the_command_that_is_named(cloche: Any) -> None:
    cloche("deny", "x.example", "--always")
    status, refused = cloche("allow", "x.example:443", "--project")
    assert (status, refused["error"]["code"]) == (1, "not-effective")
    said = refused["error"]["hint"].partition("cloche egress ")[2]
    assert said == "allow x.example:443 --always"
    assert cloche(*said.split())[1]["removed"] == ["deny x.example"]
    assert cloche("explain", "x.example:443")[1]["verdict"] == "allow"
    cloche("deny", "*.wide.example", "--always")
    hint = cloche("allow", "y.wide.example", "--project")[1]["error"]["hint"]
    assert "out of rules.yaml by hand (rules.yaml:" in hint


def test_the_table_of_rules_says_which_are_private(
    cloche: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cloche("allow", "10.1.2.3:22", "--always", "--private")
    cloche("allow", "10x.example:22", "--always")
    assert run(["egress", "rules"]) == 0
    table = {line.split()[2]: line for line in capsys.readouterr().out.splitlines() if "10" in line}
    assert "private: true" in table["10.1.2.3/32:22"]
    assert "private" not in table["10x.example:22"]


def test_an_address_is_explained_and_the_rules_are_listed(cloche: Any) -> None:
    assert cloche("explain", "10.0.0.5:5432")[1]["code"] == "private-address"
    assert cloche("explain", "[::1]")[1]["code"] == "loopback-address"
    found = cloche("rules")[1]
    assert (found["profile"], found["unlisted"]) == ("standard", "ask")
    assert {row["level"] for row in found["rules"]} >= {"profile"}


def test_a_log_is_followed_to_its_sessions_end_over_files_that_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    folder = Paths.from_environment().session("0123456789")
    folder.mkdir(parents=True)
    record = SessionRecord(folder.name, "n", shell(), str(tmp_path), 0.0, "base", "key")
    write_record(folder / "session.json", record)
    write_record(folder / "state.json", StateRecord(state="stopped"))
    ledger = Ledger(folder / NAME)
    for number in range(3):
        host = f"n{number}.example"
        ledger(Entry(0.0, "open", host, 443, "deny", code="denied", reason="Denied.\x1b[2J"))
    for qtype in ("A", "AAAA"):
        ledger(Entry(0.0, "query", "both.example", None, "ask", qtype=qtype))
    ledger.close()
    assert run(["egress", "log", "n", "--follow", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    hosts = ["n0.example", "n1.example", "n2.example", "both.example", "both.example"]
    assert [line.get("host") for line in lines[:-1]] == hosts
    assert lines[-1] == {"ok": True, "end": "over"}
    assert {line["session"] for line in lines[:-1]} == {folder.name}
    assert run(["egress", "log", "--follow", "0123"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.count("both.example") == 1  # a program's one look-up
    assert run(["egress", "log", "n"]) == 0
    assert capsys.readouterr().out.count("both.example") == 1
    assert run(["egress", "log"]) == 2
    assert "cloche ps" in capsys.readouterr().err
