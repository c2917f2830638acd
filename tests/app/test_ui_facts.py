from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import Changes, FileChange, HunkInfo
from app.protocol_review import StepReport
from app.states import shown_state, state_words, to_review
from app.ui.failures import command_of
from app.ui.fleet_facts import (
    age,
    needs_of,
    newly_paused,
    ordered,
    rail_items,
    row_of,
)
from app.ui.keys import key_groups
from app.ui.review_facts import (
    next_open,
    progress_in,
    safe_to_accept,
    step_words,
    total_progress,
    with_decisions,
)
from app.ui.review_lines import file_facts
from snapshot.safe_text import safe_name
from tests.doubles.keeper import session_info
from themes.glyphs import UNICODE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (90000, "1d")],
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("state", "agent_state", "files", "shown", "review"),
    [
        ("starting", "starting", 0, "starting", False),
        ("running", "working", 3, "working", False),
        ("running", "waiting", 0, "waiting", False),
        ("running", "done", 3, "done", True),
        ("running", "stalled", 0, "stalled", False),
        ("paused", "idle", 0, "paused", False),
        ("stopped", "done", 0, "stopped", False),
        ("stopped", "done", 2, "done", True),
        ("failed", "failed", 2, "failed", True),
        ("lost", "working", 0, "failed", False),
    ],
)
def test_states(state: str, agent_state: str, files: int, shown: str, review: bool) -> None:
    info = session_info("x", "x", "demo", state, agent_state, counts=(files, 1, 1))  # type: ignore[arg-type]  # words of the table above
    assert shown_state(info) == shown
    assert to_review(info) is review


def test_this_workspace_comes_first_and_numbers_end_at_nine() -> None:
    infos = [
        session_info(f"s{n}", f"s{n}", "demo", workspace="/w/other", created=n) for n in range(9)
    ]
    infos.append(session_info("mine", "mine", "demo", workspace="/w/here", created=99))
    found = ordered(infos, "/w/here")
    assert found[0].id == "mine"
    rows = [item for item in rail_items(found, UNICODE, 100) if hasattr(item, "number")]
    assert [getattr(row, "number", -1) for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]


def test_a_filter_keeps_numbers() -> None:
    infos = [session_info("a", "alpha", "demo"), session_info("b", "beta", "demo")]
    rows = [item for item in rail_items(infos, UNICODE, 0, "BETA") if hasattr(item, "number")]
    assert [getattr(row, "number", -1) for row in rows] == [2]


def test_needs_are_ordered_by_urgency() -> None:
    infos = [
        session_info("r", "r", "demo", "stopped", "done", counts=(1, 1, 0)),
        session_info("f", "f", "demo", "failed", "failed"),
        session_info("w", "w", "demo", agent_state="waiting"),
        session_info("s", "s", "demo", agent_state="stalled"),
        session_info("ok", "ok", "demo"),
        session_info("p", "p", "demo", "paused", counts=(1, 1, 0)),
    ]
    assert [need.key for need in needs_of(infos, UNICODE)] == ["w", "s", "f", "p", "r"]
    assert needs_of(infos[:1], UNICODE)[0].text == "r: 2 hunks to review"


def test_a_session_that_begins_to_stand_still_says_so_once() -> None:
    told = msgspec.structs.replace(
        session_info("p", "p", "demo", "paused"), message="The disk\x1b is full.", hint="df -h"
    )
    runs = session_info("p", "p", "demo")
    assert newly_paused([runs], [told]) == ("p: " + safe_name(told.message).text, "df -h")
    assert newly_paused([], [told]) is not None
    assert newly_paused([told], [told]) is None
    assert newly_paused([told], [runs]) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_of_a_session_is_ever_a_control_character(name: str, message: str) -> None:
    info = session_info("x", name, name, "failed", "failed", message=message)
    row = row_of(info, 1, UNICODE, 0)
    for text in (row.name, row.agent, row.message):
        assert all(char.isprintable() or char == " " for char in text) or not any(
            ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text
        )


def unit(name: str, decision: str = "open", aspect: str = "") -> HunkInfo:
    return HunkInfo(name, 1, 1, 1, 1, decision, aspect)  # type: ignore[arg-type]  # words of the tests below


def changed(path: str, *units: HunkInfo, risk: str = "", note: str = "") -> FileChange:
    return FileChange(
        path, "modified", hunks=units, risk=risk, tier="held" if risk else "", note=note
    )


FILES = [
    changed("a", unit("a1", "accepted"), unit("a2")),
    changed("b", unit("b1", "rejected")),
    changed("c", unit("c1"), risk="runs"),
    changed("d", unit("d1"), note="a socket"),
]


def test_the_next_open_unit_goes_on_at_the_top() -> None:
    assert next_open(FILES, "a", 0) == ("a", 1)
    assert next_open(FILES, "a", 1) == ("c", 0)
    assert next_open(FILES, "c", 0) == ("a", 1)
    assert next_open(FILES, "a", 0, frozenset({("a", "a2"), ("c", "c1")})) is None


UNITS = st.lists(st.sampled_from(["open", "accepted", "taken"]), max_size=3)


@given(
    files=st.lists(UNITS, max_size=5),
    at=st.integers(0, 5),
    here=st.integers(-1, 3),
    direction=st.sampled_from([1, -1]),
)
def test_the_next_open_unit_is_the_nearest_of_all(
    files: list[list[str]], at: int, here: int, direction: int
) -> None:
    every = [(n, i, word) for n, words in enumerate(files) for i, word in enumerate(words)]
    taken = frozenset((f"{n}", f"{n}.{i}") for n, i, word in every if word == "taken")
    made = [
        changed(
            f"{n}",
            *(
                unit(f"{n}.{i}", "accepted" if word == "accepted" else "open")
                for i, word in enumerate(words)
            ),
        )
        for n, words in enumerate(files)
    ]
    places = [(n, i) for n, i, word in every if word == "open"][::direction]
    is_there = at < len(files)
    beyond = [
        p for p in places if is_there and (p > (at, here) if direction > 0 else p < (at, here))
    ]
    wanted = next(((f"{n}", i) for n, i in beyond or places), None)
    assert next_open(made, f"{at}", here, taken, direction) == wanted


def test_progress_counts_what_can_be_decided() -> None:
    found = total_progress(map(progress_in, FILES))
    assert (found.files, found.files_done, found.units, found.units_done, found.risky) == (
        3,
        1,
        4,
        2,
        1,
    )


def test_safe_leaves_out_risky_and_decided_files() -> None:
    safe, risky = safe_to_accept(FILES)
    assert [file.path for file in safe] == ["a"]
    assert [file.path for file in risky] == ["c"]
    built = msgspec.structs.replace(FILES[2], tier="warned")
    assert safe_to_accept([built]) == ([built], [])


def test_decisions_of_a_newer_generation_fit_units_that_are_the_same() -> None:
    shown = Changes("s", 1, (changed("a", unit("a1"), unit("a2")),))
    newer = Changes("s", 2, (changed("a", unit("a1", "accepted"), unit("a9", "rejected")),))
    merged = with_decisions(shown, newer)
    assert merged.generation == 1
    assert [u.decision for u in merged.files[0].hunks] == ["accepted", "open"]


def test_the_file_line_names_risk_and_what_is_decided() -> None:
    left, right = file_facts(FILES[2], list(FILES[2].hunks), UNICODE)
    assert any("runs" in fact[0] for fact in left)
    assert right[0] == ("  ○ 1 open", "muted")


def test_what_became_of_a_file_is_said_in_short_where_there_is_little_room() -> None:
    file = msgspec.structs.replace(FILES[2], merged=True, drift=True)
    for words, text in ((True, "  ↓ merged into your workspace"), (False, "  ↓ merged")):
        left, _ = file_facts(file, (), UNICODE, words=words)
        assert text in [fact[0] for fact in left]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (StepReport(), ""),
        (StepReport(hunks=1, edits=1, reasons=1), "the decision about a hunk"),
        (StepReport(hunks=3), "the decisions about 3 hunks"),
        (StepReport(edits=1), "your lines in a hunk"),
        (StepReport(reasons=2), "2 reasons"),
        (StepReport(hunks=1, solutions=1), "the decision about a hunk, the solution of a conflict"),
        (StepReport(comments=1), "a comment"),
    ],
)
def test_a_step_back_says_what_it_was_about(step: StepReport, words: str) -> None:
    assert step_words(step) == words
    assert bool(step) == bool(words)


def test_every_key_says_what_it_does_and_none_is_bound_twice() -> None:
    for group in key_groups():
        assert all(row.what for row in group.rows), group.title
        keys = [key for row in group.rows for key in row.keys]
        assert len(keys) == len(set(keys)), group.title


def test_a_session_without_open_hunks_is_reviewed() -> None:
    info = session_info("a", "a", "demo", "running", "done", counts=(2, 1, 1))
    assert (to_review(info), state_words(info)) == (True, "to review")
    info = msgspec.structs.replace(info, open_units=0)
    assert (to_review(info), state_words(info)) == (False, "reviewed")
    assert needs_of([info], UNICODE) == []
    lost = session_info("b", "b", "demo", "lost", counts=(2, 1, 1))
    assert state_words(lost) == "lost"


def test_a_session_that_waits_for_memory_says_what_it_waits_for() -> None:
    info = session_info("a", "a", "demo", "starting")
    info = msgspec.structs.replace(info, waits="memory", message="Waits for memory: 0 MiB free.")
    assert state_words(info) == "waits for memory"
    assert row_of(info, 1, UNICODE, 0.0).message == "Waits for memory: 0 MiB free."


def test_the_age_is_that_of_the_state() -> None:
    info = session_info("a", "a", "demo", created=100, since=940)
    assert row_of(info, 1, UNICODE, 1000).age == "1m"
    assert row_of(session_info("a", "a", "demo", created=100), 1, UNICODE, 1000).age == "15m"


def test_orders_keep_numbers() -> None:
    infos = [
        session_info("a", "zeta", "demo", created=1, workspace="/w/x"),
        session_info("b", "alpha", "demo", "running", "waiting", created=2, workspace="/w/x"),
        session_info("c", "mid", "demo", "stopped", "done", created=3, workspace="/w/y"),
    ]

    def listed(order: str) -> list[tuple[object, object]]:
        items = rail_items(infos, UNICODE, 10, "", order)
        return [(getattr(i, "number", None), getattr(i, "name", "heading")) for i in items]

    assert listed("by name") == [(2, "alpha"), (3, "mid"), (1, "zeta")]
    assert listed("newest first") == [(3, "mid"), (2, "alpha"), (1, "zeta")]
    assert listed("who needs me")[0] == (2, "alpha")
    assert [n for n, _ in listed("by workspace")] == [None, 1, 2, None, 3]


@pytest.mark.parametrize(
    ("hint", "command"),
    [
        ("Run: cloche doctor", "cloche doctor"),
        ("Start it again: cloche resume s1.", "cloche resume s1"),
        ("cloche doctor", "cloche doctor"),
        ("Free some space.", ""),
        ("", ""),
    ],
)
def test_the_command_of_a_hint(hint: str, command: str) -> None:
    assert command_of(hint) == command
