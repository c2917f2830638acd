"""The egress log as a person uses it: keys, mouse, filters, rules, and hostile names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from textual.widgets import Input

from app.errors import AppError
from app.ui.egress_dialog import RuleDialog
from app.ui.egress_screen import EgressScreen
from tests.doubles.egress import AT, EVIL, typical
from tests.doubles.keeper import FakeFleet
from tests.doubles.pilots import press, press_later, screen_text, settle, until
from tests.doubles.scenes import workstation
from vm.egress.kinds import Entry
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from textual.pilot import Pilot

    from app.ui.app import ClocheApp
    from tests.doubles.egress import FakeEgress

SIZE = (120, 36)


def log_app() -> tuple[ClocheApp, FakeEgress]:
    """Return an application with a log."""
    app, _, _ = workstation()
    egress = typical()
    app.egress = egress
    return app, egress


async def opened(pilot: Pilot[None], rows: int = 7) -> EgressScreen:
    """Open the log and wait for its rows."""
    await settle(pilot)
    await press(pilot, "E")
    screen = pilot.app.screen
    assert isinstance(screen, EgressScreen)
    await until(pilot, lambda: screen.rows.view.total >= rows)
    screen.show_rows()
    await settle(pilot)
    return screen


def current(screen: EgressScreen) -> str:
    """Return the host under the cursor."""
    row = screen.rows.current
    return "" if row is None else row.host


async def test_rows_come_in_and_show_who_what_and_why() -> None:
    app, _ = log_app()
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        lines = screen_text(pilot).splitlines()
        ask = next(line for line in lines if "pkgs.example:443" in line)
        assert "◆ ask" in ask
        assert "add-tests" in ask
        api = next(line for line in lines if "api.models.example:443" in line)
        assert "✓ allow" in api
        assert "18k" in api
        assert "240k" in api
        assert any("✗ deny" in line and "10.0.0.5:5432" in line for line in lines)
        assert any("(12 times)" in line for line in lines)


async def test_what_a_guest_calls_a_host_is_never_obeyed() -> None:
    app, _ = log_app()
    async with app.run_test(size=(200, 60)) as pilot:
        screen = await opened(pilot)
        await press(pilot, "j", "enter")
        assert "EVIL" in current(screen)
        text = screen_text(pilot)
        assert "[bold]" in text
        assert not set(text) & {"\x1b", "\x07", "\u202e"}
        await press(pilot, "a")
        assert not set(screen_text(pilot)) & {"\x1b", "\x07", "\u202e"}


async def test_filters_by_verdict_agent_and_text_join() -> None:
    app, _ = log_app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "v")
        await until(pilot, lambda: not screen.rows.view.filtering)
        assert screen.rows.count() == 3
        await press(pilot, "s")
        assert screen.rows.count() == 0
        assert "nothing here" in screen_text(pilot)
        await press(pilot, "s", "slash", *"TELE", "enter")
        assert screen.rows.count() == 1
        assert current(screen) == "telemetry.example"
        await press(pilot, "slash", "escape")
        assert screen.rows.count() == 3


async def test_one_line_a_host_with_totals() -> None:
    app, _ = log_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await press(pilot, "b")
        assert screen.rows.count() == 6
        line = next(x for x in screen_text(pilot).splitlines() if "api.models.example" in x)
        assert line.split()[-5:] == ["1", "1", "0", "18k", "240k"]
        await press(pilot, "b")
        assert screen.rows.count() == 7


async def test_the_place_is_kept_and_what_came_is_counted() -> None:
    app, egress = log_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await press(pilot, "j", "j", "j")
        host = current(screen)
        rows = [Entry(AT, "open", f"n{n}.example", 443, "deny") for n in range(50)]
        egress.put("s1", *rows)
        await until(pilot, lambda: screen.rows.view.total == 57)
        await until(pilot, lambda: "50 new" in screen_text(pilot))
        assert current(screen) == host
        await press(pilot, "g")
        assert current(screen) == "n49.example"
        assert "new (g)" not in screen_text(pilot)
        egress.put("s1", Entry(AT, "open", "last.example", 443, "deny"))
        await until(pilot, lambda: current(screen) == "last.example")


async def test_a_rule_is_shown_exactly_and_written_as_shown() -> None:
    app, egress = log_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await press(pilot, "a")
        assert isinstance(app.screen, RuleDialog)
        assert "allow pkgs.example:443 in this session" in screen_text(pilot)
        app.screen._counts_from = float("inf")  # pyright: ignore[reportPrivateUsage]
        await press(pilot, "enter")
        assert isinstance(app.screen, RuleDialog)
        app.screen._counts_from = 0.0  # pyright: ignore[reportPrivateUsage]
        await press_later(pilot, "enter")
        await until(pilot, lambda: bool(egress.written))
        assert egress.written == [("s2", "allow pkgs.example:443 in this session")]
        await until(pilot, lambda: screen.notice is not None)
        assert screen.notice is not None
        assert "written" in screen.notice.text


async def test_deny_for_always_and_a_rule_that_is_refused() -> None:
    app, egress = log_app()
    egress.refuse = AppError("not-effective", "It would never take effect.", "Narrow it")
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "d", "G")
        assert "deny pkgs.example in every session" in screen_text(pilot)
        await press_later(pilot, "enter")
        await until(pilot, lambda: screen.notice is not None)
        assert screen.notice is not None
        assert screen.notice.text == "It would never take effect."
        assert egress.written == []


async def test_what_cannot_be_widened_says_so_and_escape_writes_nothing() -> None:
    app, egress = log_app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "j", "j", "j", "j", "w")
        assert screen.notice is not None
        assert "cannot be widened" in screen.notice.text
        await press(pilot, "escape", "d", "escape")
        assert app.screen is screen
        assert egress.written == []


async def test_the_mouse_selects_opens_and_scrolls() -> None:
    app, egress = log_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        rows = [Entry(AT, "open", f"n{n}.example", 443, "deny") for n in range(50)]
        egress.put("s1", *rows)
        await until(pilot, lambda: screen.rows.view.total == 57)
        await pilot.click("#log", offset=(10, 3))
        assert current(screen) == "n47.example"
        await pilot.click("#log", offset=(10, 3), times=2)
        await settle(pilot)
        assert screen.has_class("-details")


async def test_an_empty_log_says_what_will_stand_there_and_q_leaves() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "E")
        assert "no agent used the network yet" in screen_text(pilot)
        await press(pilot, "q")
        assert not isinstance(app.screen, EgressScreen)


async def test_q_leaves_with_an_error_open_and_escape_closes_only_that() -> None:
    app, _ = log_app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        screen.say("It would never take effect.", "Narrow it", "error")
        await press(pilot, "escape")
        assert app.screen is screen
        assert screen.notice is None
        await press(pilot, "enter")
        screen.say("It would never take effect.", "Narrow it", "error")
        await press(pilot, "q")
        assert not screen.has_class("-details")
        await press(pilot, "q")
        assert app.screen is not screen


async def test_a_pinned_host_stays_above_the_others() -> None:
    app, egress = log_app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "b", "G")
        host = current(screen)
        await press(pilot, "space")
        await press(pilot, "g")
        assert current(screen) == host
        egress.put("s1", Entry(AT, "open", "newest.example", 443, "deny"))
        await until(pilot, lambda: screen.rows.view.total == 8)
        screen.show_rows()
        assert screen.rows.cells(0)[3].text == host
        assert screen.rows.cells(1)[3].text == "newest.example"
        await press(pilot, "g", "space", "g")
        assert current(screen) == "newest.example"


async def test_what_is_shown_is_written_to_a_new_private_file_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    app, _ = log_app()
    app.workspace = tmp_path
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "v", "x")
        line = screen.query_one(LineBar)
        assert line.text.startswith(f"{home}/egress-")
        assert "enter writes   esc leaves" in screen_text(pilot)
        line.query_one(Input).value = "out.jsonl"
        await press(pilot, "enter")
        await until(pilot, lambda: screen.notice is not None)
        assert "3 rows in" in screen_text(pilot)
        path = home / "out.jsonl"
        rows = [msgspec.json.decode(one) for one in path.read_bytes().splitlines()]
        assert [row["verdict"] for row in rows] == ["deny"] * 3
        assert rows[0]["host"] == EVIL
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.read_bytes()
        await press(pilot, "escape", "v", "x")
        line.query_one(Input).value = "out.jsonl"
        await press(pilot, "enter")
        await until(pilot, lambda: screen.notice is not None and screen.notice.level == "error")
        assert screen.notice is not None
        assert "nothing was written" in screen.notice.text
        assert path.read_bytes() == before
        await press(pilot, "x", "escape")
        assert os.listdir(home) == ["out.jsonl"]
        assert os.listdir(tmp_path) == ["home"]


async def test_running_sessions_decide_by_a_rule_once_it_is_written() -> None:
    app, egress = log_app()
    fleet = app.fleet
    assert isinstance(fleet, FakeFleet)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "d", "j")
        await press_later(pilot, "enter")
        await until(pilot, lambda: screen.notice is not None)
        assert egress.written == [
            ("s2", "deny pkgs.example in every session on this workspace"),
        ]
        reloads = {key: keeper.reloads for key, keeper in fleet.keepers.items()}
        assert reloads == {"s1": 1, "s2": 1, "s3": 0, "s4": 0}
        await press(pilot, "a")
        await press_later(pilot, "enter")
        await until(pilot, lambda: fleet.keepers["s2"].reloads == 2)
        assert fleet.keepers["s1"].reloads == 1
        fleet.refuse = AppError("keeper-lost", "Gone.")
        await press(pilot, "escape", "d")
        await press_later(pilot, "enter")
        await until(pilot, lambda: "not yet in force in add-tests" in screen_text(pilot))
