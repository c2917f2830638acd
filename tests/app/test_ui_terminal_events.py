"""What agents' terminals report beside their screens, in our own chrome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from app.ui import terminal_events
from app.ui.pane_news import MAX_NOTE, MAX_TITLE, NO_NEWS, Pace, PaneNews
from app.ui.pane_understudy import Understudy
from tests.doubles.pilots import fleet_of, press, screen_text, settle, until
from tests.doubles.scenes import workstation
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from app.config import Bell
    from app.ui.app import ClocheApp
    from tests.doubles.terminals import StillTerminals
    from widgets.terminal_feed import FeedListener

SIZE = (120, 36)
EVIL = "\x1b]0;x\x07[bold red]big[/]\u202e\u200b\nnext \x9b31m"
TAMED = "\u241b]0;x\u2407[bold red]big[/]\u21c4\u00a4 next \N{REPLACEMENT CHARACTER}31m"


def ear_of(terminals: StillTerminals, session: str) -> FeedListener:
    listener = terminals.feeds[session].listener
    assert listener is not None
    return listener


async def enter(pilot: Pilot[None], session: str) -> TerminalView:
    app: ClocheApp = pilot.app  # type: ignore[assignment]  # a Pilot does not tell which app it drives
    slot = fleet_of(app).slot_of(session)
    assert slot is not None
    view = slot.view
    assert isinstance(view, TerminalView)
    fleet_of(app).set_focus(view)
    await settle(pilot)
    return view


async def test_titles_and_progress_are_kept_printable_and_bounded() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        ear_of(terminals, "s1").feed_title(EVIL)
        ear_of(terminals, "s1").feed_progress((1, 40))
        await settle(pilot)
        assert screen.news_of("s1") == PaneNews(TAMED, (1, 40))
        ear_of(terminals, "s1").feed_title("long " * 999)
        ear_of(terminals, "s1").feed_progress(None)
        await settle(pilot)
        assert len(screen.news_of("s1").title) <= MAX_TITLE
        assert screen.news_of("s1").progress is None
        await fleet.remove("s1")
        await settle(pilot)
        assert screen.news_of("s1") == NO_NEWS
        assert screen.news_of("nobody") == NO_NEWS


@pytest.mark.parametrize(("wish", "rings"), [("mark", 0), ("sound", 1), ("off", 0)])
async def test_a_bell_marks_and_sounds_as_configured(
    wish: Bell, rings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _, terminals = workstation()
    app.bell_wish = wish
    rung: list[float] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(time.monotonic()))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        await enter(pilot, "s1")
        for session in ("s1", "s2", "s2", "s2"):
            ear_of(terminals, session).feed_bell()
        await settle(pilot)
        assert len(rung) == rings
        assert not screen.news_of("s1").belled
        assert screen.news_of("s2").belled is (wish != "off")
        assert screen.news_of("s2").marked is (wish != "off")
        await enter(pilot, "s2")
        assert not screen.news_of("s2").marked


async def test_news_reach_the_screen_soon_but_not_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        shown: list[str] = []
        monkeypatch.setattr(screen, "show_rail", lambda: shown.append(screen.news_of("s1").title))
        for number in range(500):
            ear_of(terminals, "s1").feed_title(f"spinner {number}")
        await until(pilot, lambda: shown[-1:] == ["spinner 499"])
        assert len(shown) < 10


async def test_a_notification_is_said_with_the_name_of_who_says_it() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        ear_of(terminals, "s2").feed_notified("", EVIL)
        await settle(pilot)
        assert screen.notice is not None
        assert screen.notice.level == "info"
        assert screen.notice.text == f"add-tests says \u201c{TAMED}\u201d"
        assert TAMED[:20] in screen_text(pilot)
        assert screen.news_of("s2").note == TAMED
        await enter(pilot, "s2")
        assert not screen.news_of("s2").marked


async def test_no_notification_hides_whose_the_keys_are() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await enter(pilot, "s1")
        ear_of(terminals, "s2").feed_notified("", "look here")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "look here" in shown
        assert "keys go to fix-parser" in shown


async def test_notifications_are_paced_and_the_newest_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal_events, "NOTE_SECONDS", 0.2)
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        said: list[str] = []
        say = screen.say

        def noted(text: str, *words: str, **options: bool) -> None:
            said.append(text)
            say(text, *words, **options)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(screen, "say", noted)
        for number in range(300):
            ear_of(terminals, "s2").feed_notified(f"note {number}", "body " * 999)
        ear_of(terminals, "s1").feed_notified("other", "")
        await until(pilot, lambda: len(said) == 3)
        assert said.count("fix-parser says \u201cother\u201d") == 1
        first, last = (text for text in said if "other" not in text)
        assert "note 0: body" in first
        assert "note 299: body" in last
        assert max(map(len, said)) < MAX_NOTE + 30


async def test_what_a_guest_says_covers_no_error_and_no_question() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        screen.say("It broke.", "Mend it", "error")
        ear_of(terminals, "s2").feed_notified("", "all is well")
        await settle(pilot)
        assert screen.notice is not None
        assert screen.notice.text == "It broke."
        assert screen.news_of("s2").note == "all is well"
        await press(pilot, "escape", "s")
        assert screen.asking
        ear_of(terminals, "s1").feed_notified("", "press y")
        await settle(pilot)
        assert "press y" not in screen.notice.text
        assert screen.asking


async def test_a_notification_is_said_on_the_screen_that_is_shown() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "r")
        ear_of(terminals, "s2").feed_notified("", "look here")
        await settle(pilot)
        assert app.screen is not fleet_of(app)
        assert "add-tests says \u201clook here\u201d" in screen_text(pilot)


async def test_a_terminal_that_no_view_shows_is_heard_all_the_same() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        understudy = Understudy("s3", lambda: terminals.ear)
        understudy.feed_bell()
        understudy.feed_title("out of sight")
        understudy.feed_progress((3, -1))
        understudy.feed_clipboard("mine")
        understudy.feed_notified("", "done")
        await settle(pilot)
        news = fleet_of(app).news_of("s3")
        assert news == PaneNews("out of sight", (3, -1), True, "done", 1)
        assert fleet_of(app).ask_strip.shown is None


async def test_a_copy_is_counted_and_can_be_pasted_into_an_agents_screen() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        view = await enter(pilot, "s1")
        await press(pilot, "ctrl+g", "right_square_bracket")
        assert terminals.feeds["s1"].told("paste") == []
        assert screen.notice is not None
        assert "Nothing was copied" in screen.notice.text
        for text, words in (("a\nb\nc", "3 lines copied"), ("word", "4 characters copied")):
            view.post_message(TerminalView.Copied(view, text))
            await settle(pilot)
            assert app.clipboard == text
            assert screen.notice.text == words
        view.post_message(TerminalView.Copied(view, "lone \udc80"))
        await settle(pilot)
        assert app.clipboard == "lone ?"
        await enter(pilot, "s2")
        await press(pilot, "ctrl+g", "right_square_bracket")
        assert terminals.feeds["s2"].told("paste") == ["lone ?"]
        await press(pilot, "f12", "ctrl+g", "right_square_bracket")
        assert terminals.feeds["s2"].told("paste") == ["lone ?"]
        assert "No agent's screen has the keys" in screen.notice.text


async def test_a_clicked_link_shows_its_host_first_and_wholly_and_can_be_copied() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        view = await enter(pilot, "s1")
        uri = "https://good.example@evil.example/" + "".join(f"{n:03}-" for n in range(160)) + "end"
        view.post_message(TerminalView.LinkClicked(view, uri))
        await settle(pilot)
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text.startswith("Link to evil.example: https://good.example@evil")
        shown = "".join(screen_text(pilot).split())
        assert uri in shown
        await press(pilot, "ctrl+g", "y")
        assert app.clipboard == uri


async def test_what_was_refused_of_the_users_input_is_said() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        ear_of(terminals, "s1").feed_refused("The paste is larger than 8 MiB.")
        await settle(pilot)
        notice = fleet_of(app).notice
        assert notice is not None
        assert (notice.text, notice.level) == ("The paste is larger than 8 MiB.", "warning")


def test_a_pace_is_kept_by_session_and_subject_and_forgotten_with_the_session() -> None:
    pace = Pace()
    assert pace.allows("s1", "note", 60)
    assert not pace.allows("s1", "note", 60)
    assert pace.allows("s1", "bell", 60)
    assert pace.allows("s2", "note", 60)
    pace.keep_only({"s2"})
    assert pace.allows("s1", "note", 60)
    assert not pace.allows("s2", "note", 60)
