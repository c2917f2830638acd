"""What `cloche merge` says of a report, and its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app import main
from app.agents import shell
from app.cli import merge
from app.paths import Paths
from app.protocol import Changes, FileChange, MergeReport, Skipped, UndoReport
from app.records import SessionRecord, StateRecord, write_record
from snapshot.writeback_plan import ALREADY

if TYPE_CHECKING:
    from app.protocol import MergeRequest

SESSION = "aaaaaaaa01"
RISKY = FileChange("run", "added", risk="becomes executable", tier="held")
WARNED = FileChange("Makefile", "modified", risk="runs when it is built", tier="warned")


def stopped_session() -> None:
    """Put the records of a session there."""
    folder = Paths.from_environment().session(SESSION)
    folder.mkdir(parents=True)
    record = SessionRecord(SESSION, "n", shell(), "/w", 0.0, "base", "key")
    write_record(folder / "session.json", record)
    write_record(folder / "state.json", StateRecord(state="stopped"))


def merged(monkeypatch: pytest.MonkeyPatch, report: MergeReport, *more: str) -> int:
    """Run the command; the keeper answers with this report."""
    stopped_session()

    async def answer(_: Paths, session: str, request: MergeRequest) -> tuple[Changes, MergeReport]:
        assert (session, request.accept) == (SESSION, ("*",))
        files = (FileChange("a", "modified"), FileChange("gone", "deleted"), RISKY, WARNED)
        return Changes(SESSION, 1, files), report

    monkeypatch.setattr(merge, "_merge", answer)
    return main.run(("merge", SESSION, "--accept", "*", *more))


@pytest.mark.parametrize(
    ("reason", "status"), [(ALREADY, 0), ("the link leads out of the workspace", 3)]
)
def test_what_was_asked_for_and_left_out_waits_for_you(
    monkeypatch: pytest.MonkeyPatch, reason: str, status: int
) -> None:
    report = MergeReport("m", written=("a",), skipped=(Skipped("b", reason),))
    assert merged(monkeypatch, report) == status


def test_notices_are_printed_and_safe_for_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = MergeReport("m", written=("a",), notices=("a\x1b: had 2 hard links",))
    assert merged(monkeypatch, report) == 0
    assert "note a␛: had 2 hard links\n" in capsys.readouterr().out


@pytest.mark.parametrize(("dry", "verbs"), [(False, "wrote deleted"), (True, "would would")])
def test_what_is_on_disk_afterwards_is_told_not_the_changes_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, dry: bool, verbs: str
) -> None:
    report = MergeReport("m", ("new name",), dry_run=dry, wrote=("a",), deleted=("gone",))
    assert merged(monkeypatch, report) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == verbs.split()
    assert [line.split()[-2:] for line in lines[:2]] == (
        [["write", "a"], ["delete", "gone"]] if dry else [["wrote", "a"], ["deleted", "gone"]]
    )


def test_who_does_not_know_a_merge_is_told_the_newest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    merged(monkeypatch, MergeReport("m"))
    for name in ("20260101-a", "20260102-b", "20260103-c-undo"):
        (Paths.from_environment().session(SESSION) / "merges" / name).mkdir(parents=True)
    assert main.run(("undo", "nope")) == 4
    assert "cloche undo 20260102-b" in capsys.readouterr().err
    assert main.run(("undo", "2026")) == 4
    assert "Such as: 20260101-a, 20260102-b\n" in capsys.readouterr().err


@pytest.mark.parametrize("safe", [False, True])
def test_what_accept_safe_leaves_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, safe: bool
) -> None:
    report = MergeReport("m", written=("a", "Makefile"))
    merged(monkeypatch, report, *(["--accept-safe"] if safe else []))
    printed = capsys.readouterr().out
    assert ("left open run: becomes executable\n" in printed) is safe
    assert ("warning Makefile: runs when it is built\n" in printed) is safe


def test_what_a_pattern_holds_back_waits_and_says_how_to_take_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = (Skipped("run me", "becomes executable"), Skipped("odd\x1b", "is binary"))
    assert merged(monkeypatch, MergeReport("m", written=("a",), held=held)) == 3
    said = capsys.readouterr().out
    assert "held back run me: becomes executable\n" in said
    assert f"By name: cloche merge {SESSION} --accept 'run me' --accept PATH\n" in said
    assert "\x1b" not in said


def test_what_a_pattern_leaves_rejected_is_told_with_the_command_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert merged(monkeypatch, MergeReport("m", written=("a",), kept=("no no",))) == 0
    said = capsys.readouterr().out
    assert "left rejected no no: what you rejected of it stays out\n" in said
    assert f"By name: cloche merge {SESSION} --accept 'no no'\n" in said


def test_an_undo_tells_what_it_brought_back_and_what_it_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    merged(monkeypatch, MergeReport("m"))
    (Paths.from_environment().session(SESSION) / "merges" / "m").mkdir(parents=True)
    capsys.readouterr()

    async def answer(*_: object) -> UndoReport:
        return UndoReport("m", ("new name",), wrote=("old name",), deleted=("new name",))

    monkeypatch.setattr(merge, "_undo", answer)
    assert main.run(("undo", "m")) == 0
    assert capsys.readouterr().out == "restored old name\ndeleted new name\n"


def test_an_undo_that_finds_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    merged(monkeypatch, MergeReport("m"))
    (Paths.from_environment().session(SESSION) / "merges" / "m").mkdir(parents=True)

    async def answer(_: Paths, session: str, name: str) -> UndoReport:
        assert (session, name) == (SESSION, "m")
        return UndoReport("m")

    monkeypatch.setattr(merge, "_undo", answer)
    assert main.run(("undo", "m")) == 0
    assert "taken back already" in capsys.readouterr().out


def test_a_conflict_says_why_and_how_to_choose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = (Skipped("a", "you removed it"),)
    assert merged(monkeypatch, MergeReport("", conflicts=("a",), reasons=why, open=2)) == 3
    said = capsys.readouterr().out
    assert "conflict a: you removed it\n" in said
    assert f"cloche merge {SESSION} --resolve PATH=" in said
    assert "2 hunks wait: " in said


def test_a_merge_without_a_wish_waits_while_hunks_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped_session()
    for waiting, status in ((1, 3), (0, 0)):
        report = MergeReport("m", written=("a",), open=waiting)

        async def answer(*_: object, report: MergeReport = report) -> tuple[Changes, MergeReport]:
            return Changes(SESSION, 1), report

        monkeypatch.setattr(merge, "_merge", answer)
        assert main.run(("merge", SESSION)) == status
