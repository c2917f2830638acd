"""A screen with a diff that is open, and its keeper in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from app.ui.reading import ReadingScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import changed_files, sessions, workstation
from widgets.info_line import InfoLine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from textual.pilot import Pilot

    from app.ui.app import ClocheApp
    from tests.doubles.keeper import FakeFile, FakeSession

SIZE = (160, 40)
TOKENIZER = "src/tokenizer.py"


class Reading:
    """An open screen with a diff: its keys, its lines of facts, its notice."""

    def __init__(self, app: ClocheApp, pilot: Pilot[None], keeper: FakeSession) -> None:
        self.app = app
        self.pilot = pilot
        self.keeper = keeper

    @property
    def screen(self) -> ReadingScreen:
        """The screen in front."""
        screen = self.app.screen
        assert isinstance(screen, ReadingScreen)
        return screen

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


class Review(Reading):
    """An open review with its keeper."""

    @property
    def screen(self) -> ReviewScreen:
        """The review, also below a dialog."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, ReviewScreen))

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


async def open_review(app: ClocheApp, pilot: Pilot[None]) -> ReviewScreen:
    """Open the review of the first session and wait for its first file."""
    await settle(pilot)
    app.open_review("s1")
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, ReviewScreen)
    await until(pilot, lambda: screen.pane.document is not None)
    return screen


def compared_once(file: FakeFile) -> FakeFile:
    """Return a file whose sides are compared here and now: in life the keeper does that."""
    review = file.review()
    file.review = lambda: review  # type: ignore[method-assign]  # the same answer each time
    return file


async def opened_review(
    files: list[FakeFile] | None = None,
    size: tuple[int, int] = SIZE,
    workspace: Path | None = None,
) -> AsyncGenerator[Review]:
    keepers = sessions()
    keepers[0].files = changed_files() if files is None else files
    if workspace is not None:
        info = keepers[0].info_value
        keepers[0].info_value = msgspec.structs.replace(info, workspace=str(workspace))
    app, _, _ = workstation(keepers)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.open_review("s1")
        await settle(pilot)
        opened = Review(app, pilot, keepers[0])
        await until(pilot, lambda: opened.screen.changes is not None)
        await settle(pilot)
        yield opened
