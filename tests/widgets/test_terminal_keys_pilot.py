"""Every key of the tables, pressed in an app with a terminal that has the focus."""

from __future__ import annotations

import pytest
from textual import events

from tests.doubles.engines import engine
from tests.doubles.feed import FakeFeed
from tests.doubles.terminal_app import TerminalApp
from tests.vm.key_tables import guest
from widgets.terminal import DEFAULT_PASSTHROUGH, DEFAULT_PREFIX

TABLES = {
    key: cells
    for table in (guest.OWN, guest.TEXT, guest.FUNCTION)
    for key, cells in guest.rows(table)
}
HELD = ("", "ctrl+", "alt+", "alt+ctrl+")
LETTERS = [f"{held}{letter}" for letter in guest.LETTERS for held in HELD]
OURS = {DEFAULT_PREFIX, *DEFAULT_PASSTHROUGH}


class EncodingFeed(FakeFeed):
    """A feed that encodes keys as the worker does for a guest in some mode."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._engine = engine()
        self._engine.feed(guest.MODES[mode])
        self.sent: list[tuple[str, bytes]] = []

    def send_key(self, key: str, character: str | None) -> None:
        self.sent.append((key, self._engine.encode_key(key, character)))


@pytest.mark.parametrize("mode", ["plain", "other2", "kitty1", "kitty31"])
async def test_each_key_is_the_guests_and_nobody_elses(mode: str) -> None:
    feed = EncodingFeed(mode)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.view.focus()
        await pilot.pause()
        for key in [*TABLES, *LETTERS]:
            app.post_message(events.Key(key, None))
            if key == DEFAULT_PREFIX:
                app.post_message(events.Key("escape", None))
        await pilot.pause()
    wanted = [(key, cells[mode]) for key, cells in TABLES.items() if key not in OURS | ALONE]
    assert feed.sent[: len(wanted)] == wanted
    rest = feed.sent[len(wanted) :]
    assert [key for key, _ in rest] == [key for key in LETTERS if key not in OURS]
    assert all(data for _, data in rest)
    assert set(app.noted) <= OURS


ALONE = {"left_shift", "caps_lock"}
"""Keys that are only modifiers do not even reach the feed."""
