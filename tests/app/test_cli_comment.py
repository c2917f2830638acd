"""What the words of `cloche comment`, `review` and `merge --resolve` mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from app import main
from app.cli import asking, comment
from app.cli.merge import resolve_of
from app.errors import AppError
from app.paths import Paths
from app.protocol import Changes, FileChange, HunkInfo
from app.protocol_review import ChangeRequest, Comment, Conflict, Resolve
from tests.app.test_cli_merge import SESSION, stopped_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHANGES = Changes(
    SESSION,
    1,
    (
        FileChange("a:3", "added", hunks=(HunkInfo("abc1", 0, 0, 1, 9),)),
        FileChange("b", "modified", hunks=(HunkInfo("abd2", 1, 1, 1, 1, "rejected"),)),
    ),
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("b", ("b", 0, 0)),
        ("./b:4", ("b", 4, 4)),
        ("b:4-7", ("b", 4, 7)),
        ("a:3", ("a:3", 0, 0)),
        ("a:3:2", ("a:3", 2, 2)),
        ("b:0", ("b:0", 0, 0)),
        ("b:x", ("b:x", 0, 0)),
        (".", ("", 0, 0)),
    ],
)
def test_places(text: str, place: tuple[str, int, int]) -> None:
    assert comment.place_of(text, {"a:3", "b"}) == place


def words(**more: object) -> argparse.Namespace:
    values: dict[str, object] = {"place": "", "text": "", "hunk": "", "old": False}
    return argparse.Namespace(**{**values, **more})


def test_a_hunk_needs_no_path() -> None:
    request = comment.request_of(words(hunk="abd", place="why?"), CHANGES)
    assert (request.path, request.hunk, request.text) == ("b", "abd2", "why?")
    for hunk in ("ab", "x"):
        with pytest.raises(AppError) as caught:
            comment.request_of(words(hunk=hunk, place="why?"), CHANGES)
        assert caught.value.code == "not-found"


def test_the_old_side_is_asked_for() -> None:
    assert comment.request_of(words(place="b:1", text="t", old=True), CHANGES).side == "old"


def test_comments_are_printed_safely(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_session()
    found = [
        Comment("c1", "b\x1b", "one\ntwo\x1b", start=4, end=6, sent=True, outdated=True),
        Comment("c2", "", "thanks"),
    ]
    monkeypatch.setattr(comment, "_list", answering(found))
    assert main.run(("comment", SESSION)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "c1  b␛:4-6  (outdated, sent)",
        "    one",
        "    two␛",
        "c2  the whole review",
        "    thanks",
    ]


def answering(value: object) -> Callable[..., object]:
    async def answer(*_: object, **__: object) -> object:
        return value

    return answer


def test_a_request_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_session()
    request = ChangeRequest("Please change it", 1, 0, 2, ("k",))
    monkeypatch.setattr(asking, "_request", answering(request))
    assert main.run(("review", SESSION, "--export", "prompt")) == 0
    said = capsys.readouterr()
    assert said.out == "Please change it\n"
    assert "2 more found no room" in said.err
    assert main.run(("review", SESSION, "--send")) == 1
    assert f"cloche resume {SESSION}" in capsys.readouterr().err
    monkeypatch.setattr(asking, "_request", answering(ChangeRequest("")))
    assert main.run(("review", SESSION, "--export", "prompt")) == 1
    assert f"cloche comment {SESSION}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("decision", "conflicts", "status"),
    [
        ("open", [], 3),
        ("accepted", [], 0),
        ("accepted", [Conflict("b", "x", "lines", "you changed the same lines", 4)], 3),
        ("accepted", [Conflict("b", "x", "lines", "same", 4, choice="yours")], 0),
    ],
)
def test_the_state_of_a_review_says_whether_something_waits(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    decision: str,
    conflicts: list[Conflict],
    status: int,
) -> None:
    stopped_session()
    hunk = HunkInfo("h", 1, 1, 1, 1, decision)  # type: ignore[arg-type]  # a word of the table above
    changes = Changes(SESSION, 1, (FileChange("b", "modified", hunks=(hunk,)),))
    monkeypatch.setattr(asking, "_fetch_state", answering((changes, list[Comment](), conflicts)))
    assert main.run(("review", SESSION)) == status
    said = capsys.readouterr().out
    assert said.startswith("1 file: 1 hunk open" if decision == "open" else "1 file: 0 hunks open")
    assert said.splitlines()[0].endswith("; 0 comments")
    assert ("conflict b:4: you changed the same lines" in said) is (status == 3 and bool(conflicts))


@pytest.mark.parametrize(("marks", "status"), [("ar", 0), ("ao", 3)])
def test_a_hunk_waits_as_long_as_one_line_of_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], marks: str, status: int
) -> None:
    stopped_session()
    hunk = HunkInfo("h", 1, 1, 1, 1, "mixed", marks=marks)
    changes = Changes(SESSION, 1, (FileChange("b", "modified", hunks=(hunk,)),))
    monkeypatch.setattr(
        asking, "_fetch_state", answering((changes, list[Comment](), list[Conflict]()))
    )
    assert main.run(("review", SESSION)) == status
    assert "1 decided by lines" in capsys.readouterr().out


def test_a_patch_that_cannot_be_read_is_named_with_the_way_to_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stopped_session()
    for name, why in ((tmp_path / "nosuch.patch", "no such file"), (tmp_path, "is a directory")):
        assert main.run(("review", SESSION, "--import", str(name))) == 4
        said = capsys.readouterr().err
        assert f"The patch {name} cannot be read: {why}" in said
        assert f"cloche review {SESSION} --export patch > review.patch" in said


def test_which_side_solves_a_conflict() -> None:
    assert resolve_of("./a=b=yours") == Resolve("a=b", "yours")
    for wrong in ("a", "a=mine", "=yours"):
        with pytest.raises(AppError) as caught:
            resolve_of(wrong)
        assert caught.value.code == "usage"


def test_nothing_is_asked_of_a_session_that_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Paths.from_environment().session(SESSION).exists() is False
    assert main.run(("comment", SESSION, "b", "text")) == 4
    assert "cloche ps" in capsys.readouterr().err
