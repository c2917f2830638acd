"""Sockets that are found under another XDG_RUNTIME_DIR, and made again when they were removed."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from app.client.session import SessionClient
from app.keeper import places
from app.keeper.places import place_sockets
from app.paths import RUNTIME_NOTE, Paths, noted_runtime
from tests.doubles.stopped_home import Home, stopped_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSION = "0000000001"


@pytest.fixture
def home() -> Iterator[Home]:
    with stopped_home() as made:
        made.stopped(SESSION)
        yield made


def elsewhere(home: Home) -> Paths:
    """Give the commands of this home another runtime folder; the paths that they have then."""
    (home.root / "Q").mkdir(mode=0o700)
    home.environment["XDG_RUNTIME_DIR"] = str(home.root / "Q")
    old = home.paths
    return Paths(old.state, old.data, old.config, old.cache, home.root / "Q" / "cloche")


async def test_a_command_with_another_runtime_folder_reaches_the_same_keeper(home: Home) -> None:
    await asyncio.to_thread(home.at_once, ("changes", SESSION))
    async with await SessionClient.open(home.paths, SESSION) as client:
        keepers = home.keepers()
        other = elsewhere(home)
        told = await asyncio.to_thread(home.at_once, ("rename", SESSION, "new"))
        assert told == [(0, "")]
        assert (await client.info()).name == "new"
        assert home.keepers() == keepers
        assert len(keepers) == 1
        async with await SessionClient.open(other, SESSION) as again:
            assert (await again.info()).name == "new"
            assert again.pane_socket_path == client.pane_socket_path
        assert not other.runtime.exists()


async def test_sockets_that_were_removed_are_made_again(home: Home) -> None:
    await asyncio.to_thread(home.at_once, ("changes", SESSION))
    async with await SessionClient.open(home.paths, SESSION) as client:
        keepers = home.keepers()
        shutil.rmtree(home.paths.runtime)
        assert await asyncio.to_thread(home.at_once, ("rename", SESSION, "new")) == [(0, "")]
        assert (await client.info()).name == "new"
        assert home.keepers() == keepers
        assert client.pane_socket_path.is_socket()
    await asyncio.to_thread(home.until_keepers_left)  # by itself: nobody needs it any more


def test_where_sockets_are_put(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = home.paths.session(SESSION), elsewhere(home)
    assert place_sockets(home.paths, folder).parent == home.paths.runtime
    assert noted_runtime(folder) == home.paths.runtime
    assert other.sockets(SESSION) == home.paths.sockets(SESSION)
    # nothing of it runs, so it goes where the next keeper's environment says
    assert place_sockets(other, folder).parent == other.runtime
    assert home.paths.sockets(SESSION).parent == other.runtime

    def runs(_: Path) -> bool:
        return True

    monkeypatch.setattr(places, "_machine_runs", runs)
    assert place_sockets(home.paths, folder).parent == other.runtime
    # a runtime folder that cannot be made any more
    (home.root / "file").touch()
    lost = Paths(*(other.state, other.data, other.config, other.cache), home.root / "file" / "c")
    os.unlink(folder / RUNTIME_NOTE)
    monkeypatch.setattr(places, "fallback_runtime", lambda: home.root / "fallback")
    assert place_sockets(lost, folder).parent == home.root / "fallback"
    assert lost.sockets(SESSION).parent == home.root / "fallback"


@pytest.mark.parametrize("text", [b"", b"relative", b"/" * 5000])
def test_a_note_that_makes_no_sense_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / RUNTIME_NOTE).write_bytes(text)
    assert noted_runtime(tmp_path) is None
