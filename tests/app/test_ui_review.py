from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Decide
from app.ui.dialogs import MergedDialog, MergeDialog
from app.ui.fleet_screen import FleetScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.keeper import FakeFile, FakeSession
from tests.doubles.pilots import press, screen_text, settle, until
from tests.doubles.scenes import changed_files, sessions, workstation
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.pilot import Pilot

    from app.ui.app import ClocheApp

SIZE = (160, 40)
TOKENIZER = "src/tokenizer.py"


class Review:
    """An open review with its keeper."""

    def __init__(self, app: ClocheApp, pilot: Pilot[None], keeper: FakeSession) -> None:
        self.app = app
        self.pilot = pilot
        self.keeper = keeper

    @property
    def screen(self) -> ReviewScreen:
        """The review, also below a dialog."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, ReviewScreen))

    async def keys(self, *keys: str) -> None:
        """Press keys."""
        await press(self.pilot, *keys)

    def line(self, name: str) -> str:
        """Return a line of facts as text."""
        return self.screen.query_one(f"#{name}", InfoLine).text

    @property
    def notice(self) -> str:
        """Return what the notice line says."""
        value = self.screen.notice
        return "" if value is None else f"{value.text} → {value.hint}"

    def decisions(self, path: str = TOKENIZER) -> list[str]:
        """Return what is decided about a file's units."""
        assert self.screen.changes is not None
        file = next(file for file in self.screen.changes.files if file.path == path)
        return [unit.decision for unit in file.hunks]

    async def open(self, path: str) -> None:
        """Show a file."""
        self.screen.open_file(path, 0)
        await settle(self.pilot)
        await until(
            self.pilot,
            lambda: self.screen.loaded is not None and self.screen.loaded.path == path,
        )


@pytest.fixture
async def review() -> AsyncIterator[Review]:
    async for opened in opened_review():
        yield opened


async def opened_review(
    files: list[FakeFile] | None = None, size: tuple[int, int] = SIZE
) -> AsyncIterator[Review]:
    keepers = sessions()
    keepers[0].files = changed_files() if files is None else files
    app, _, _ = workstation(keepers)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.open_review("s1")
        await settle(pilot)
        opened = Review(app, pilot, keepers[0])
        await until(pilot, lambda: opened.screen.changes is not None)
        await settle(pilot)
        yield opened


async def test_risky_files_come_first_and_everything_is_listed(review: Review) -> None:
    paths = [row.key for row in review.screen.files.items]
    assert paths[:3] == [".github/workflows/ci.yml", "bin/run.sh", "logo.png"]
    assert sorted(paths) == sorted(file.path for file in changed_files())
    assert "0/11 files" in review.line("head")
    assert "0/15 hunks" in review.line("head")
    assert "3 risky" in review.line("head")


async def test_space_accepts_goes_on_and_says_so(review: Review) -> None:
    await review.open(TOKENIZER)
    assert "hunk 1 of 4" in review.line("unit")
    await review.keys("space")
    assert review.decisions() == ["accepted", "open", "open", "open"]
    assert "hunk 2 of 4" in review.line("unit")
    await review.keys("x")
    assert review.decisions() == ["accepted", "rejected", "open", "open"]
    assert "1 accepted" in review.line("file")
    assert "1 rejected" in review.line("file")


async def test_space_on_what_is_accepted_opens_it_again(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "left_square_bracket")
    assert "open again" in review.line("unit")
    await review.keys("space")
    assert review.decisions() == ["open"] * 4
    assert "hunk 1 of 4" in review.line("unit")


async def test_two_quick_presses_decide_two_hunks(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.pilot.press("space", "space")
    await settle(review.pilot)
    assert review.decisions() == ["accepted", "accepted", "open", "open"]


async def test_after_the_last_hunk_the_next_open_file_is_shown(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "space", "space", "space")
    assert review.screen.path == "src/quotes.py"
    await until(review.pilot, lambda: "hunk 1 of 1" in review.line("unit"))


async def test_undo_and_redo_go_through_the_keeper(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "x", "u")
    assert review.decisions() == ["accepted", "open", "open", "open"]
    await review.keys("u")
    assert review.decisions() == ["open"] * 4
    await review.keys("ctrl+r")
    assert review.decisions() == ["accepted", "open", "open", "open"]


async def test_whole_files_are_accepted_and_dropped(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("A")
    assert review.decisions() == ["accepted"] * 4
    assert review.screen.path == "src/quotes.py"
    await review.open(TOKENIZER)
    await review.keys("D")
    assert review.decisions() == ["rejected"] * 4


async def test_no_wide_action_is_the_shift_of_its_narrow_twin(review: Review) -> None:
    table = review.screen.table()
    narrow = {"space", "x", "u", "n"}
    assert not {key.upper() for key in narrow} & set(table)
    assert "a" not in table


async def test_all_safe_leaves_risky_files_out_and_says_it_in_numbers(review: Review) -> None:
    await review.keys("plus")
    assert "Accepted 12 hunks in 8 files. 3 risky left out" in review.notice
    assert review.decisions() == ["accepted"] * 4
    assert review.decisions(".github/workflows/ci.yml") == ["open"]
    assert len(review.keeper.decided) == 1
    await review.keys("u")
    assert review.decisions() == ["open"] * 4


async def test_all_safe_keeps_what_was_rejected(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("x", "plus")
    assert review.decisions() == ["rejected", "accepted", "accepted", "accepted"]


async def test_hunks_and_files_are_walked_through(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("right_square_bracket")
    assert "hunk 2 of 4" in review.line("unit")
    await review.keys("left_square_bracket", "left_square_bracket")
    assert review.screen.path == "logo.png"
    await review.keys("right_curly_bracket")
    assert review.screen.path == TOKENIZER
    await review.keys("right_curly_bracket")
    assert review.screen.path == "src/quotes.py"


async def test_the_ends_of_the_list_are_said(review: Review) -> None:
    await review.keys("left_curly_bracket")
    assert "first file" in review.notice
    await review.open("run.sock")
    await review.keys("right_curly_bracket")
    assert "last file" in review.notice


async def test_n_goes_to_what_is_open_and_says_when_nothing_is(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("A")
    await review.open(TOKENIZER)
    await review.keys("n")
    assert review.screen.path == "src/quotes.py"
    for file in review.keeper.files:
        if not file.note:
            review.screen.open_file(file.path)
            await review.keys("A") if review.decisions(file.path) != ["accepted"] * len(
                review.decisions(file.path)
            ) else None
    await review.keys("n")
    assert "Everything is decided" in review.notice


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("bin/run.sh", "mode"),
        ("logo.png", "binary"),
        ("current", "link"),
        ("docs/guide.md", "rename"),
    ],
)
async def test_what_has_no_lines_has_a_row_and_is_decided(
    review: Review, path: str, says: str
) -> None:
    await review.open(path)
    assert says in review.line("unit")
    await review.keys("space")
    assert review.decisions(path)[0] == "accepted"


async def test_deleted_added_and_emptied_files_are_decided(review: Review) -> None:
    for path in ("docs/old.md", "src/quotes.py", "app/[slug]/page with space.tsx"):
        await review.open(path)
        await review.keys("space")
        assert review.decisions(path) == ["accepted"]
    await review.open("docs/old.md")
    assert "deleted" in review.line("file")


async def test_what_cannot_be_merged_says_why(review: Review) -> None:
    await review.open("run.sock")
    assert review.screen.pane.document is not None
    assert "a socket" in review.screen.pane.document.notes[0]
    await review.keys("space")
    assert "cannot be merged: a socket" in review.notice
    await review.keys("A")
    assert review.keeper.decided == []


async def test_in_the_list_the_same_keys_decide_files(review: Review) -> None:
    await review.keys("tab", "j", "j", "j", "space")
    assert review.screen.files.has_focus
    assert review.decisions() == ["accepted"] * 4
    await review.keys("x")
    assert review.decisions() == ["rejected"] * 4
    await review.keys("enter")
    assert review.screen.pane.has_focus
    assert review.screen.path == TOKENIZER


async def test_split_follows_the_width_until_the_user_chooses(review: Review) -> None:
    pane = review.screen.pane
    assert pane.layout_name == "split"
    await review.pilot.resize_terminal(100, 40)
    await until(review.pilot, lambda: pane.layout_name == "unified")
    await review.keys("s")
    assert pane.layout_name == "split"
    await review.pilot.resize_terminal(90, 40)
    await settle(review.pilot)
    assert pane.layout_name == "split"


async def test_a_file_with_one_side_is_not_split(review: Review) -> None:
    await review.open("src/quotes.py")
    assert review.screen.pane.layout_name == "unified"
    await review.open(TOKENIZER)
    assert review.screen.pane.layout_name == "split"
    await review.open("docs/old.md")
    assert review.screen.pane.layout_name == "unified"


async def test_the_list_of_files_can_be_hidden(review: Review) -> None:
    await review.keys("f")
    assert not review.screen.query_one("#side").display
    await review.keys("tab")
    assert review.screen.query_one("#side").display
    assert review.screen.files.has_focus
    await review.keys("f")
    assert review.screen.pane.has_focus


async def test_wrapping_and_scrolling_to_the_side(review: Review) -> None:
    pane = review.screen.pane
    await review.keys("l", "l")
    assert pane.side_scroll == 16
    await review.keys("h")
    assert pane.side_scroll == 8
    await review.keys("w")
    assert pane.wrap_lines
    assert pane.side_scroll == 0
    await review.keys("l", "w")
    assert not pane.wrap_lines


async def test_folds_open_by_enter_and_the_whole_file_by_o(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    before = pane.total_rows
    await review.keys("g", "enter")
    assert pane.total_rows > before
    await review.keys("o")
    assert pane.document is not None
    rows = pane.document.rows.rows(0, pane.total_rows)
    assert all(row.kind != "fold" for row in rows)
    await review.keys("G", "g", "pagedown", "pageup", "j", "k")


async def test_find_marks_and_walks(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("slash", *"quote")
    pane = review.screen.pane
    assert pane.find == "quote"
    first = pane.cursor
    await review.keys("enter")
    assert pane.cursor > first
    await review.keys("up")
    assert pane.cursor == first
    await review.keys(*"xyz")
    assert review.screen.query_one(LineBar).text == "quotexyz"
    await review.keys("escape")
    assert pane.find == ""
    assert pane.has_focus


async def test_a_filter_in_the_list_of_files(review: Review) -> None:
    await review.keys("tab", "slash", *"docs")
    assert [row.key for row in review.screen.files.items] == ["docs/old.md", "docs/guide.md"]
    await review.keys("escape")
    assert len(review.screen.files.items) == 12
    assert review.screen.files.has_focus


async def test_merge_needs_something_accepted(review: Review) -> None:
    await review.keys("M")
    assert "Nothing is accepted yet" in review.notice
    assert review.keeper.merges == []


async def test_merge_shows_numbers_and_only_another_key_writes(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "x", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    facts = dialog.facts
    assert (facts.written, facts.accepted_hunks, facts.rejected_hunks, facts.open_hunks) == (
        (TOKENIZER,),
        1,
        1,
        13,
    )
    await review.keys("M", "enter", "space")
    assert review.keeper.merges == []
    await review.keys("y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    assert [report.written for report in review.keeper.merges] == [(TOKENIZER,)]


async def test_escape_in_the_summary_writes_nothing(review: Review) -> None:
    await review.keys("plus", "M", "escape")
    assert review.app.screen is review.screen
    assert review.keeper.merges == []


async def test_risky_files_that_go_in_are_named(review: Review) -> None:
    await review.keys("A", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    assert list(dialog.facts.risky) == [".github/workflows/ci.yml"]


async def test_conflicts_are_listed_and_counted(review: Review) -> None:
    review.keeper.conflicts = ("README.md",)
    await review.keys("plus", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    assert dialog.facts.conflicts == ("README.md",)
    await review.keys("y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    await review.keys("enter")
    assert "1 conflict" in review.line("head")


async def test_a_merge_is_taken_back_after_a_question_in_numbers(review: Review) -> None:
    await review.keys("plus", "M", "y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    await review.keys("t")
    assert "8 files get their old content again" in review.notice
    await review.keys("t")
    assert review.keeper.undone == []
    await review.keys("t", "y")
    assert review.keeper.undone == ["m1"]
    assert "Restored 8 files" in review.notice
    await review.keys("t")
    assert "Nothing was merged" in review.notice


async def test_a_merge_that_fails_is_said(review: Review) -> None:
    await review.keys("plus")
    review.keeper.refuse = AppError("merge-aborted", "The disk is full.", "Free some space.")
    await review.keys("M")
    assert review.notice == "The disk is full. → Free some space."


async def test_a_decision_that_is_refused_is_said_and_stays_open(review: Review) -> None:
    await review.open(TOKENIZER)
    review.keeper.refuse = AppError("not-found", "That hunk is gone.", "")
    await review.keys("space")
    assert "That hunk is gone" in review.notice
    assert review.decisions() == ["open"] * 4


async def test_decisions_of_somebody_else_arrive(review: Review) -> None:
    await review.keeper.decide([Decide(TOKENIZER, "accepted")])
    await until(review.pilot, lambda: review.decisions() == ["accepted"] * 4)


async def test_a_newer_generation_waits_until_it_is_asked_for(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space")
    keeper = review.keeper
    keeper.generation = 2
    keeper.files.append(FakeFile("late.txt", None, b"late\n"))
    keeper.publish("changes")
    await until(review.pilot, lambda: review.screen.pending is not None)
    assert "changed since" in review.line("head")
    assert "late.txt" not in [row.key for row in review.screen.files.items]
    await review.keys("space")
    assert review.decisions()[:2] == ["accepted", "accepted"]
    await review.keys("R")
    assert keeper.refreshed == 1
    assert "late.txt" in [row.key for row in review.screen.files.items]
    assert "changed since" not in review.line("head")


async def test_leaving_keeps_decisions_and_coming_back_shows_them(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "q")
    assert isinstance(review.app.screen, FleetScreen)
    review.app.open_review("s1")
    await settle(review.pilot)
    await until(review.pilot, lambda: review.screen.changes is not None)
    assert review.decisions() == ["accepted", "open", "open", "open"]


async def test_an_agent_that_changed_nothing() -> None:
    async for review in opened_review([]):
        assert review.screen.query_one("#empty").display
        await review.keys("space", "x", "n", "A", "D", "plus", "u", "M", "slash", "escape", "R")
        assert review.app.screen is review.screen
        review.keeper.generation = 2
        review.keeper.files.append(FakeFile("first.txt", None, b"x\n"))
        await review.keys("R")
        assert review.screen.path == "first.txt"
        assert review.screen.pane.display


async def test_a_keeper_that_cannot_be_reached_is_an_error_with_a_fix() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.refuse = AppError("keeper-lost", "The keeper does not answer.", "cloche doctor")
        await press(pilot, "r")
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        assert screen.notice is not None
        assert screen.notice.hint == "cloche doctor"
        await press(pilot, "space", "M", "R", "u", "q")
        assert isinstance(app.screen, FleetScreen)


async def test_80_by_24_shows_the_diff_and_tab_the_files() -> None:
    async for review in opened_review(size=(80, 24)):
        assert not review.screen.query_one("#side").display
        assert review.screen.pane.layout_name == "unified"
        await review.keys("tab")
        assert review.screen.query_one("#side").display
        assert not review.screen.query_one("#main").display
        await review.keys("j", "enter")
        assert review.screen.query_one("#main").display
        assert review.screen.path == "bin/run.sh"


async def test_every_file_is_shown_printable(review: Review) -> None:
    evil = FakeFile(
        "e\x1b]52;c;x\x07vil\u202e.py", b"ok\n", "x = 1 # \x1b[2J\u202e hidden\x9b\n".encode()
    )
    review.keeper.files.append(evil)
    await review.keys("R")
    await review.open(evil.path)
    shown = screen_text(review.pilot)
    assert "vil" in shown
    assert not any(char in shown for char in "\x1b\x07\x9b\u202e")
    assert "Hidden or reordering characters" in shown


async def test_both_sides_get_their_colours(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    await until(
        review.pilot,
        lambda: pane.document is not None and set(pane.document.spans) == {"old", "new"},
    )
    assert pane.document is not None
    kinds = {name for line in pane.document.spans["new"].values() for _, _, name in line}
    assert {"keyword", "string", "function"} <= kinds
