"""A session's questions in its records: they survive the wire and do not outlive the machine."""

from __future__ import annotations

import msgspec
import pytest

from app.agents import Agent
from app.protocol import EgressInfo, SessionInfo, SessionState
from app.records import SessionRecord, StateRecord, session_info
from vm.egress.questions import Question

QUESTION = Question("pkgs.example", (443, 80), 1000.5, 1060.5, 2, "No rule allows pkgs.example.")
RECORD = SessionRecord("0000000000", "n", Agent("shell", ("sh",)), "/w", 0.0, "base", "key")


@pytest.mark.parametrize(
    ("state", "asked"),
    [("running", (QUESTION,)), ("paused", (QUESTION,)), ("lost", ()), ("stopped", ())],
)
def test_questions_are_shown_while_there_is_a_machine(
    state: SessionState, asked: tuple[Question, ...]
) -> None:
    written = msgspec.json.encode(
        StateRecord(state=state, asks=(QUESTION,), egress=EgressInfo("on", 3, 2))
    )
    info = session_info(RECORD, msgspec.json.decode(written, type=StateRecord))
    told = msgspec.json.decode(msgspec.json.encode(info), type=SessionInfo)
    assert (told.asks, told.egress) == (asked, EgressInfo("on", 3, 2))
