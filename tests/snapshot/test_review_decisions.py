from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapshot.decisions import DecisionLog, Mark, Overlay, Uniform, state_of
from snapshot.errors import DecisionUnknown, StoreDamaged
from snapshot.review import ChangedFile, FileReview, accept_safe

if TYPE_CHECKING:
    from pathlib import Path


def log_at(tmp_path: Path) -> DecisionLog:
    return DecisionLog(tmp_path / "decisions.jsonl")


def modified(old: bytes, new: bytes, path: bytes = b"f") -> FileReview:
    return FileReview(ChangedFile(path, "modified", None, "100644", "100644"), old, new)


def test_marks_survive_a_restart(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    assert log.marks(b"f", "u", 3) == "ooo"
    assert log.record([Mark(b"f", "u", "aro"), Mark(b"\xff\n", "v", "a")])
    log.close()
    log.close()
    again = log_at(tmp_path)
    assert again.marks(b"f", "u", 3) == "aro"
    assert again.marks(b"\xff\n", "v", 1) == "a"
    again.close()


def test_marks_of_another_size_are_open(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    log.record([Mark(b"f", "u", "ar")])
    assert log.marks(b"f", "u", 3) == "ooo"
    log.close()


steps = st.lists(
    st.one_of(
        st.sampled_from(["undo", "redo"]),
        st.lists(
            st.builds(
                Mark,
                st.sampled_from([b"f", b"g"]),
                st.sampled_from(["u", "v"]),
                st.sampled_from(["o", "a", "r"]),
            ),
            min_size=1,
            max_size=3,
        ),
    ),
    max_size=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(steps)
def test_undo_and_redo_walk_through_all_states(
    tmp_path: Path, plan: list[str | list[Mark]]
) -> None:
    path = tmp_path / "log"
    path.unlink(missing_ok=True)
    log = DecisionLog(path)
    states, at = [seen(log)], 0
    for step in plan:
        if step == "undo":
            assert bool(log.undo()) == (at > 0)
            at = max(0, at - 1)
        elif step == "redo":
            assert bool(log.redo()) == (at + 1 < len(states))
            at = min(len(states) - 1, at + 1)
        elif isinstance(step, list) and log.record(step):
            states[at + 1 :] = [seen(log)]
            at += 1
        assert seen(log) == states[at]
        assert (log.can_undo, log.can_redo) == (at > 0, at + 1 < len(states))
    log.close()
    again = DecisionLog(path)
    assert seen(again) == states[at]
    assert (again.can_undo, again.can_redo) == (at > 0, at + 1 < len(states))
    again.close()


def seen(log: DecisionLog) -> list[str]:
    return [log.marks(path, unit, 1) for path in (b"f", b"g") for unit in ("u", "v")]


def test_a_decision_that_changes_nothing_is_no_step(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    assert not log.record([Mark(b"f", "u", "oo")])
    assert log.record([Mark(b"f", "u", "aa")])
    assert not log.record([Mark(b"f", "u", "aa")])
    assert log.undo()
    assert not log.undo()
    log.close()


@pytest.mark.parametrize("torn", [b'{"v":1,"event":"se', b"\0\0\0\0", b"nonsense\n", b'{"v":1}\n'])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    log = log_at(tmp_path)
    log.record([Mark(b"f", "u", "a")])
    log.close()
    path = tmp_path / "decisions.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    again = log_at(tmp_path)
    assert again.marks(b"f", "u", 1) == "a"
    assert path.read_bytes() == whole
    again.record([Mark(b"f", "u", "r")])
    again.close()
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["set"] * 2


def test_damage_before_the_end_is_said(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b'nonsense\n{"v":1,"event":"undo"}\n')
    with pytest.raises(StoreDamaged):
        DecisionLog(path)
    assert path.read_bytes().startswith(b"nonsense")


def test_a_failed_write_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_at(tmp_path)
    log.record([Mark(b"f", "u", "a")])
    before = (tmp_path / "decisions.jsonl").read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        log.record([Mark(b"f", "u", "r")])
    assert log.marks(b"f", "u", 1) == "a"
    assert (tmp_path / "decisions.jsonl").read_bytes() == before
    log.close()


def test_states_add_up() -> None:
    assert [state_of(marks) for marks in ("", "oo", "aa", "rr", "ao", "ar")] == [
        "open", "open", "accepted", "rejected", "mixed", "mixed",
    ]  # fmt: skip


def test_an_overlay_covers_only_what_it_names(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    log.record([Mark(b"f", "u", "a")])
    over = Overlay(log, [Mark(b"f", "v", "r"), Mark(b"f", "w", "aa")])
    assert [over.marks(b"f", unit, 1) for unit in "uvw"] == ["a", "r", "o"]
    log.close()


def test_decisions_carry_over_exactly_where_the_hunk_is_identical(tmp_path: Path) -> None:
    base = b"".join(b"%d\n" % n for n in range(60))
    first = modified(base, base.replace(b"\n10\n", b"\nten\n").replace(b"\n40\n", b"\nforty\n"))
    log = log_at(tmp_path)
    log.record(first.decide("accepted"))
    again = modified(
        base, b"new\n" + base.replace(b"\n10\n", b"\nten\n").replace(b"\n40\n", b"\nFORTY\n")
    )
    assert [state_of(again.marks(log, hunk)) for hunk in again.hunks] == [
        "open",
        "accepted",
        "open",
    ]
    assert again.state(log) == "mixed"
    log.close()


def test_lines_are_decided_one_by_one(tmp_path: Path) -> None:
    made = modified(b"1\n2\n", b"A\nB\n")
    log = log_at(tmp_path)
    hunk = made.hunks[0].id
    log.record([made.decide_lines(log, "accepted", hunk, [0, 1])])
    log.record([made.decide_lines(log, "rejected", hunk, [2])])
    assert made.marks(log, made.hunks[0]) == "aaro"
    assert made.state(log) == "mixed"
    result = made.result(log)
    assert result is not None
    assert result.content == b"A\n2\n"
    with pytest.raises(DecisionUnknown):
        made.decide_lines(log, "accepted", hunk, [4])
    with pytest.raises(DecisionUnknown):
        made.decide("accepted", ["nothing"])
    log.close()


def test_accept_safe_leaves_out_risks_and_rejected_lines(tmp_path: Path) -> None:
    safe, risky = modified(b"1\n", b"2\n", b"src/a.py"), modified(b"1\n", b"2\n", b".envrc")
    built = modified(b"1\n", b"2\n", b"Makefile")
    hidden = modified(b"1\n", "a\u202eb\n".encode(), b"b.py")
    away = ChangedFile(b"notes.txt", "renamed", b".clocheignore", "100644", "100644")
    moved = FileReview(away, b"1\n", b"1\n")
    log = log_at(tmp_path)
    log.record([safe.decide_lines(log, "rejected", safe.hunks[0].id, [0])])
    marks = accept_safe([safe, risky, built, hidden, moved], log)
    wanted = [Mark(b"src/a.py", safe.hunks[0].id, "ra"), Mark(b"Makefile", built.hunks[0].id, "aa")]
    assert marks == wanted
    log.record(marks)
    assert accept_safe([safe, risky, built, hidden, moved], log) == []
    log.close()


def test_uniform() -> None:
    assert Uniform("rejected").marks(b"f", "u", 2) == "rr"
