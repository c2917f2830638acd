"""Every key of the tables, pressed in an app with a terminal that has the focus."""

from __future__ import annotations

import pytest

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
LETTERS = [
    f"{held}{letter}" for letter in guest.LETTERS for held in ("", "ctrl+", "alt+", "alt+ctrl+")
]
OURS = {DEFAULT_PREFIX, *DEFAULT_PASSTHROUGH}


class EncodingFeed(FakeFeed):
    """A feed that encodes keys as the worker does for a guest in some mode."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._engine = engine()
        self._engine.feed(guest.MODES[mode])
        self.sent = bytearray()

    def send_key(self, key: str, character: str | None) -> None:
        self.sent += self._engine.encode_key(key, character)

    def taken(self) -> bytes:
        """Return what the guest got since last time."""
        data = bytes(self.sent)
        self.sent.clear()
        return data


@pytest.mark.parametrize("mode", ["plain", "kitty1"])
async def test_each_key_is_the_guests_and_nobody_elses(mode: str) -> None:
    feed = EncodingFeed(mode)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.view.focus()
        await pilot.pause()
        for key, cells in TABLES.items():
            await pilot.press(key)
            wanted = b"" if key in OURS else cells[mode]
            assert (key, feed.taken()) == (key, wanted)
        for key in LETTERS:
            await pilot.press(key)
            assert bool(feed.taken()) is (key != DEFAULT_PREFIX), key
            if key == DEFAULT_PREFIX:
                await pilot.press("escape")
    assert set(app.noted) <= OURS
