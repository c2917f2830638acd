"""Comments, reasons, own lines and conflicts on the review screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.content import Content
from textual.widgets import Static

from app.protocol_review import ChangeRequest, Conflict
from app.ui.conflict_dialog import ConflictDialog
from app.ui.text_dialog import TextDialog, editable
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import screen_text, settle, until
from tests.doubles.reviews import TOKENIZER, Review, opened_review

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of every kind of change."""
    async for opened in opened_review():
        yield opened


async def written(review: Review, text: str) -> None:
    """Type a text into the dialog and end it."""
    await until(review.pilot, lambda: isinstance(review.app.screen, TextDialog))
    await review.keys(*text, "ctrl+s")
    await settle(review.pilot)


async def test_a_comment_on_a_line_is_kept_shown_and_taken_away(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("c")
    await written(review, "why")
    (comment,) = review.keeper.remarks
    assert (comment.path, comment.side, comment.start, comment.text) == (TOKENIZER, "new", 7, "why")
    assert "¶ why" in review.line("unit")
    assert "1 comment" in review.line("file")
    pane = review.screen.pane
    assert "¶" in pane.row_strip(pane.top_of(pane.cursor)).text
    await review.keys("c", *"?", "ctrl+s")
    assert [one.text for one in review.keeper.remarks] == ["why?"] or [
        one.text for one in review.keeper.remarks
    ] == ["?why"]
    await review.keys("c", "ctrl+a", "ctrl+u", "ctrl+k", "ctrl+s")
    await until(review.pilot, lambda: not review.keeper.remarks)
    assert "¶" not in review.line("unit")


async def test_comments_on_lines_on_a_file_and_on_everything(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("v", "j", "j", "c")
    await written(review, "a")
    await review.keys("escape", "tab", "c")
    await written(review, "b")
    await review.keys("g", "c")
    await written(review, "d")
    places = [(one.path, one.start, one.end) for one in review.keeper.remarks]
    assert places == [(TOKENIZER, 7, 9), (TOKENIZER, 0, 0), ("", 0, 0)]


async def test_a_reason_goes_with_the_rejection(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("X")
    await written(review, "no")
    (decision,) = review.keeper.decided[-1]
    assert (decision.decision, decision.reason, len(decision.hunks)) == ("rejected", "no", 1)
    assert review.decisions()[0] == "rejected"


async def test_the_request_is_read_and_changed_before_it_is_sent(review: Review) -> None:
    await review.keys("R")
    assert "nothing to ask for" in review.notice
    review.keeper.request = ChangeRequest("Please mend\x1b[2J this.", 2, 1, items=("h1", "c1"))
    await review.keys("R")
    assert isinstance(review.app.screen, TextDialog)
    shown = screen_text(review.pilot)
    assert "2 rejected hunks, 1 comment" in shown
    assert "Please mend␛[2J this." in shown
    await review.keys("escape")
    assert review.keeper.asked == []
    await review.keys("R", "X", "ctrl+s")
    ((text, items),) = review.keeper.asked
    assert text in ("XPlease mend␛[2J this.", "Please mend␛[2J this.X")
    assert items == ("h1", "c1")
    assert "asked for changes" in review.notice


async def test_one_slip_does_not_lose_what_was_written(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("X", *"text", "escape")
    assert "throw the text away" in screen_text(review.pilot)
    await review.keys("escape")
    assert review.app.screen is review.screen
    assert review.keeper.decided == []


async def test_own_lines_stand_in_the_place_of_a_hunk() -> None:
    file = FakeFile("a.txt", b"one\r\ntwo\r\nthree\r\n", b"one\r\nTWO\r\nthree\r\n")
    async for review in opened_review([file]):
        await review.open("a.txt")
        await review.keys("e")
        await settle(review.pilot)
        assert isinstance(review.app.screen, TextDialog)
        assert review.app.screen.text == "TWO\n"
        await review.keys("x", "ctrl+s")
        assert list(review.keeper.decisions.edits.values()) in ([b"xTWO\r\n"], [b"TWO\r\nx\r\n"])
        assert review.decisions("a.txt") == ["accepted"]
        await settle(review.pilot)
        assert "edited by you" in review.line("unit")


async def test_own_lines_and_comments_of_the_third_hunk_are_about_its_place() -> None:
    """The hunks before it add and remove lines, so old and new numbers differ."""
    base = [b"%d\n" % number for number in range(60)]
    new = [b"x\n", b"y\n", *base[:20], *base[24:40], b"third\n", *base[41:]]
    file = FakeFile("a.txt", b"".join(base), b"".join(new))
    async for review in opened_review([file]):
        await review.open("a.txt")
        third = review.screen.by_path["a.txt"].hunks[2]
        assert (third.old_start, third.new_start) == (41, 39)
        await review.keys("]", "]", "e")
        await settle(review.pilot)
        assert isinstance(review.app.screen, TextDialog)
        assert review.app.screen.text == "third\n"
        await review.keys("z", "ctrl+s")
        await settle(review.pilot)
        assert review.decisions("a.txt") == ["open", "open", "accepted"]
        ((_, unit),) = review.keeper.decisions.edits
        assert unit == third.id


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\nb\n", ("a\nb\n", "\n")),
        (b"a\r\nb\r\n", ("a\nb\n", "\r\n")),
        (b"a\r\nb\n", None),
        (b"a\rb\n", None),
        (b"\xff\n", None),
        (b"a\x1b[2J\n", None),
        ("a\u202eb\n".encode(), None),
        (b"\tx\n", ("\tx\n", "\n")),
        (b"", ("", "\n")),
    ],
)
def test_only_what_can_be_written_back_to_the_byte_is_edited(
    content: bytes, text: tuple[str, str] | None
) -> None:
    assert editable(content) == text


async def test_pasted_control_characters_never_reach_the_screen(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("c")
    dialog = review.app.screen
    assert isinstance(dialog, TextDialog)
    review.app.post_message(events.Paste("a\x1b]52;c;x\x07b\r\nc"))
    await settle(review.pilot)
    assert dialog.text == "a␛]52;c;x␇b\nc"


def conflict(name: str, choice: str = "") -> Conflict:
    """Return a conflict of lines in the tokenizer."""
    return Conflict(
        TOKENIZER,
        name,
        "lines",
        "both sides changed these lines",
        7,
        b"old\n",
        b"mine\n",
        b"theirs\n",
        ("yours", "agent", "both", "both-reversed", "base", "text"),
        choice,  # type: ignore[arg-type]  # one of those words
    )


def keys(dialog: ConflictDialog) -> list[str]:
    """Return the lines of keys below a conflict."""
    shown = dialog.query_one("#conflict-keys", Static).content
    assert isinstance(shown, Content)
    return [line.strip() for line in shown.plain.splitlines()]


async def test_conflicts_are_gone_through_and_solved(review: Review) -> None:
    await review.keys("C")
    assert "There is no conflict" in review.notice
    review.keeper.disputes = [conflict("k1"), conflict("k2")]
    await review.open(TOKENIZER)
    await review.keys("C")
    dialog = review.app.screen
    assert isinstance(dialog, ConflictDialog)
    shown = screen_text(review.pilot)
    for text in ("Conflict 1 of 2", "mine", "theirs", "old", "2 open"):
        assert text in shown
    assert [line.split("   ") for line in keys(dialog)] == [
        ["1 yours", " 2 agent's", " 3 both", " 4 reversed", " 0 base", " e write"],
        ["] [ next", " M summary of the merge", " esc back"],
    ]
    await review.keys("2")
    assert [one.choice for one in review.keeper.disputes] == ["agent", ""]
    assert dialog.conflict.id == "k2"
    await review.keys("3")
    assert [one.choice for one in review.keeper.disputes] == ["agent", "both"]
    await until(review.pilot, lambda: "all solved" in screen_text(review.pilot))
    assert keys(dialog)[1].startswith("backspace open again")
    await review.keys("backspace")
    await until(review.pilot, lambda: "1 open" in screen_text(review.pilot))
    await review.keys("e", "z", "ctrl+s")
    assert review.keeper.disputes[1].choice == "text"
    assert b"mine" in review.keeper.disputes[1].text
    await review.keys("escape")
    assert review.app.screen is review.screen
