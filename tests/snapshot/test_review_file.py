from __future__ import annotations

import pytest

from snapshot.decisions import Decisions, Overlay, Uniform
from snapshot.review import ChangedFile, FileResult, FileReview, Kind, review_file

ALL = Uniform("accepted")


def make(
    old: tuple[str, bytes] | None,
    new: tuple[str, bytes] | None,
    old_path: bytes | None = None,
    kind: Kind = "modified",
) -> FileReview:
    file = ChangedFile(b"p", kind, old_path, new[0] if new else "", old[0] if old else "")
    return FileReview(file, old[1] if old else None, new[1] if new else None)


def only(made: FileReview, *kinds: str) -> Decisions:
    """Accept some aspects (or `lines`) and nothing else."""
    ids = [aspect.id for aspect in made.aspects if aspect.kind in kinds]
    ids += [hunk.id for hunk in made.hunks if "lines" in kinds]
    return Overlay(Uniform("open"), made.decide("accepted", ids))


Case = tuple[str, tuple[str, bytes] | None, tuple[str, bytes] | None, list[str], int]

CASES: list[Case] = [
    # what, old, new, its aspects, number of hunks
    ("text", ("100644", b"1\n"), ("100644", b"2\n"), [], 1),
    ("new text", None, ("100644", b"2\n"), [], 1),
    ("new script", None, ("100755", b"2\n"), ["mode"], 1),
    ("new empty", None, ("100644", b""), ["creation"], 0),
    ("gone", ("100644", b"1\n"), None, [], 1),
    ("gone empty", ("100644", b""), None, ["deletion"], 0),
    ("emptied", ("100644", b"1\n"), ("100644", b""), [], 1),
    ("filled", ("100644", b""), ("100644", b"1\n"), [], 1),
    ("mode", ("100644", b"1\n"), ("100755", b"1\n"), ["mode"], 0),
    ("mode and text", ("100644", b"1\n"), ("100755", b"2\n"), ["mode"], 1),
    ("mode of empty", ("100644", b""), ("100755", b""), ["mode"], 0),
    ("binary", ("100644", b"\0"), ("100644", b"\1\0"), ["binary"], 0),
    ("new binary", None, ("100755", b"\0"), ["creation", "mode"], 0),
    ("gone binary", ("100644", b"\0"), None, ["deletion"], 0),
    ("text to binary", ("100644", b"1\n"), ("100644", b"\0"), ["binary"], 0),
    ("link", ("120000", b"a"), ("120000", b"b"), ["link"], 0),
    ("new link", None, ("120000", b"a"), ["link"], 0),
    ("gone link", ("120000", b"a"), None, ["link"], 0),
    ("file to link", ("100644", b"1\n"), ("120000", b"a"), ["type"], 0),
    ("link to file", ("120000", b"a"), ("100755", b"1\n"), ["type"], 0),
    ("link to a file that says the same", ("120000", b"a"), ("100644", b"a"), ["type"], 0),
    ("file to folder", ("100644", b"1\n"), ("040000", b""), ["type"], 0),
    ("empty file to folder", ("100644", b""), ("040000", b""), ["type"], 0),
    ("new folder", None, ("040000", b""), ["creation"], 0),
    ("gone folder", ("040000", b""), None, ["deletion"], 0),
]


@pytest.mark.parametrize(
    ("old", "new", "aspects", "hunks"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_every_change_can_be_decided(
    old: tuple[str, bytes] | None, new: tuple[str, bytes] | None, aspects: list[str], hunks: int
) -> None:
    made = make(old, new)
    assert [aspect.kind for aspect in made.aspects] == aspects
    assert len(made.hunks) == hunks
    assert all(aspect.label for aspect in made.aspects)
    assert made.result(Uniform("open")) is None
    assert made.result(Uniform("rejected")) is None
    expected = FileResult(b"p", new[1], new[0]) if new else FileResult(None, b"", "")
    assert made.result(ALL) == expected
    assert made.state(ALL) == "accepted"


def test_a_mode_is_decided_apart_from_content() -> None:
    made = make(("100644", b"1\n"), ("100755", b"2\n"))
    assert made.result(only(made, "lines")) == FileResult(b"p", b"2\n", "100644")
    assert made.result(only(made, "mode")) == FileResult(b"p", b"1\n", "100755")


def test_a_new_script_starts_without_its_bit() -> None:
    made = make(None, ("100755", b"2\n"), kind="added")
    assert made.result(only(made, "lines")) == FileResult(b"p", b"2\n", "100644")
    assert made.result(only(made, "mode")) is None


def test_a_rename_is_decided_apart_from_content() -> None:
    made = make(("100644", b"1\n"), ("100644", b"2\n"), b"old", "renamed")
    assert made.result(only(made, "rename")) == FileResult(b"p", b"1\n", "100644")
    assert made.result(only(made, "lines")) == FileResult(b"old", b"2\n", "100644")
    assert made.result(ALL) == FileResult(b"p", b"2\n", "100644")


def test_a_renamed_binary() -> None:
    made = make(("100644", b"\0"), ("100644", b"\0"), b"old", "renamed")
    assert [aspect.kind for aspect in made.aspects] == ["rename"]
    assert made.result(ALL) == FileResult(b"p", b"\0", "100644")


def test_part_of_a_deletion_keeps_the_file() -> None:
    made = make(("100644", b"1\n2\n"), None, kind="deleted")
    hunk = made.hunks[0].id
    first = Overlay(Uniform("open"), [made.decide_lines(Uniform("open"), "accepted", hunk, [0])])
    assert made.result(first) == FileResult(b"p", b"2\n", "100644")


def test_part_of_a_new_file_makes_it() -> None:
    made = make(None, ("100644", b"1\n2\n"), kind="added")
    hunk = made.hunks[0].id
    second = Overlay(Uniform("open"), [made.decide_lines(Uniform("open"), "accepted", hunk, [1])])
    assert made.result(second) == FileResult(b"p", b"2\n", "100644")


def test_an_aspects_id_is_of_its_content() -> None:
    def identity(old: bytes, new: bytes) -> str:
        return make(("100644", old), ("100644", new)).aspects[0].id

    assert identity(b"\0a", b"\0b") == identity(b"\0a", b"\0b")
    assert len({identity(b"\0a", b"\0b"), identity(b"\0a", b"\0c"), identity(b"\0c", b"\0b")}) == 3
    one = make(None, ("040000", b"")).aspects[0].id
    assert FileReview(ChangedFile(b"p", "added", None, "040000"), None, None).aspects[0].id == one


def test_counts_and_notes() -> None:
    made = make(("100644", b"1\n2\n3\n"), ("100644", b"1\ntwo\n3\n4\n"))
    assert (made.added, made.removed) == (2, 1)
    assert made.span(made.hunks[0]) == (2, 2, 2, 3)
    new = make(None, ("100644", b"1\n2\n"))
    assert new.span(new.hunks[0]) == (0, 0, 1, 2)
    gone = make(("100644", b"1\n2\n"), None)
    assert gone.span(gone.hunks[0]) == (1, 2, 0, 0)


def test_a_note_means_that_nothing_can_be_decided() -> None:
    noted = ChangedFile(b"p", "added", mode="100644", note="sparse, 10 GB")
    made = review_file(noted, lambda _: b"", lambda _: b"")
    assert (made.units, made.result(ALL), made.notes) == ((), None, ("sparse, 10 GB",))


def test_only_sides_that_are_there_are_read() -> None:
    read: list[str] = []

    def read_base(_: ChangedFile) -> bytes:
        raise AssertionError

    def read_agent(_: ChangedFile) -> bytes:
        read.append("agent")
        return b"x\n"

    made = review_file(ChangedFile(b"p", "added", mode="100644"), read_base, read_agent)
    assert read == ["agent"]
    assert made.base is None


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (b"a.py", b"x\n", False),
        (b"a\xe2\x80\xae.py", b"x\n", True),
        (b"a", b"\xe2\x80\x8b\n", True),
    ],
)
def test_suspicious(path: bytes, content: bytes, expected: bool) -> None:
    file = ChangedFile(path, "added", mode="100644")
    assert FileReview(file, None, content).suspicious == expected


def test_suspicious_lines_of_the_base_are_not_the_agents() -> None:
    made = make(("100644", b"\xe2\x80\x8b\n1\n"), ("100644", b"\xe2\x80\x8b\n2\n"))
    assert not made.suspicious
    assert made.risk == ""


def test_text_for_highlighting_has_a_line_for_each_element() -> None:
    made = make(("100644", b"\xef\xbb\xbfa\n"), ("100644", b"b\rc\nd"))
    assert made.text("old") == "\na\n"
    assert made.text("new") == "b\rc\nd"
    assert made.intraline(1, 0) == ((), ())


def test_a_nested_repository_cannot_be_merged() -> None:
    made = FileReview(ChangedFile(b"p", "modified", None, "160000", "160000"), b"a", b"b")
    assert (made.units, made.result(ALL)) == ((), None)
    assert made.notes == ("it is neither a file nor a link nor a folder",)
