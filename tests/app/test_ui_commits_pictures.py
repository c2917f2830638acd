"""How the screen of commits looks: SVG pictures, compared as text and looked at by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.ui.commit_screen import CommitScreen
from tests.doubles.commits import FIRST, TRAP, give_commits
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import sessions, workstation
from tests.doubles.still import NOW, SIZES, Compare, hold_still

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from app.protocol_commits import CommitInfo
    from app.ui.app import ClocheApp


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_still(monkeypatch)
    monkeypatch.setattr("app.ui.commit_facts.moment_of", still_moment)


def still_moment(_: CommitInfo) -> str:
    return "2027-01-15 08:00"


def committed(theme: str = "cloche-dark") -> ClocheApp:
    keepers = sessions()
    give_commits(keepers[0], NOW)
    return workstation(keepers, theme=theme)[0]


async def on_commit(pilot: Pilot[None], key: str) -> None:
    """Open the screen and show a commit, with colours."""
    await settle(pilot)
    await press(pilot, "r", "L")
    screen = pilot.app.screen
    assert isinstance(screen, CommitScreen)
    await until(pilot, lambda: screen.shown != "")
    screen.wanted = key
    screen.commits.select(key)
    screen.show_change()

    def coloured() -> bool:
        document = screen.pane.document
        ready = screen.shown == key and screen.loaded is not None
        return ready and document is not None and set(document.spans) == {"old", "new"}

    await until(pilot, coloured)
    await settle(pilot)


@pytest.mark.parametrize("size", SIZES)
def test_a_commit(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await on_commit(pilot, FIRST)
        if size != "120x40":
            await press(pilot, "enter")

    assert snap_compare(committed(), terminal_size=SIZES[size], run_before=before)


def test_the_list_on_a_small_screen(snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await on_commit(pilot, TRAP)

    assert snap_compare(committed(), terminal_size=SIZES["80x24"], run_before=before)


@pytest.mark.parametrize("theme", ["cloche-light", "cloche-ansi"])
def test_a_commit_that_touches_a_secret_in_other_themes(snap_compare: Compare, theme: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await on_commit(pilot, TRAP)
        await press(pilot, "space")

    assert snap_compare(committed(theme), terminal_size=SIZES["120x40"], run_before=before)
