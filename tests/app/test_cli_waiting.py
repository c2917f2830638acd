"""What the command line says of held connections and caps."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as changed

from app.cli.waiting import MOST, News, held, held_lines
from app.protocol import Meter
from app.ui.fleet_facts import top_bar_value
from tests.doubles.keeper import session_info
from vm.egress.questions import Question

ASKED = Question("pkgs.example", (443, 22), 100.0, 160.0, 1)
INFO = changed(session_info("s2", "add-tests", "codex"), asks=(ASKED,))


def test_each_held_connection_has_a_line_with_the_command_that_answers() -> None:
    assert held_lines(INFO) == [
        "s2: a connection to pkgs.example:443,22 is held. "
        "Answer: cloche egress allow pkgs.example:22,443 --session s2 (or deny)"
    ]
    many = changed(INFO, asks=tuple(replace(ASKED, host=f"h{n}.example") for n in range(50)))
    assert len(held_lines(many)) == MOST + 1
    assert held_lines(many)[-1] == f"s2: {50 - MOST} more are held: cloche ps --json"
    assert held_lines(changed(INFO, asks=())) == []


def test_the_command_is_about_the_ports_that_were_asked_and_no_other() -> None:
    assert held(INFO, replace(ASKED, ports=(443,))).command.split()[3] == "pkgs.example:443"
    assert held(INFO, replace(ASKED, ports=(80, 443))).command.split()[3] == "pkgs.example"


def test_a_host_that_is_none_reaches_no_terminal_as_it_is() -> None:
    wait = held(INFO, replace(ASKED, host="\x1b]0;EVIL\x07.example"))
    assert wait.what.isprintable()
    assert wait.command.isprintable()


def test_whoever_is_attached_hears_of_each_question_once_and_of_a_later_one_again() -> None:
    news = News()
    assert [one.what for one in news.take(INFO)] == ["a connection to pkgs.example:443,22 is held"]
    assert news.take(changed(INFO, asks=(replace(ASKED, waiting=2, ends=170.0),))) == []
    assert news.take(changed(INFO, asks=())) == []
    assert len(news.take(changed(INFO, asks=(replace(ASKED, first_seen=300.0),)))) == 1
    capped = changed(INFO, asks=(), meter=Meter(asks=True, asked=400.0))
    assert [one.command for one in news.take(capped)] == ["cloche egress cap s2 --more"]
    assert news.take(capped) == []


def test_the_fleet_counts_a_session_that_waits_for_an_answer_about_its_network_or_cap() -> None:
    quiet = changed(INFO, asks=(), agent_state="working")
    capped = changed(quiet, meter=Meter(asks=True))
    assert top_bar_value([quiet], "/w").waiting == 0
    assert top_bar_value([changed(quiet, asks=(ASKED, ASKED)), capped, quiet], "/w").waiting == 2
    rings = changed(quiet, state="running", agent_state="waiting", asks=(ASKED,))
    assert top_bar_value([rings], "/w").waiting == 1
