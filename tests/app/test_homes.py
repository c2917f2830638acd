"""Two state homes on one store: each counts when an image shall go, and nothing else is shared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.homes import note_home, session_folders
from app.paths import Paths
from app.records import IMAGE_DIGEST
from app.services.image_use import needs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Paths, Paths]:
    one = Paths(*(tmp_path / name for name in ("state", "data", "config", "cache", "run")))
    return one, replace(one, state=tmp_path / "other")


def test_a_session_of_another_home_keeps_its_image(homes: tuple[Paths, Paths]) -> None:
    one, other = homes
    folder = other.session("0123456789")
    folder.mkdir(parents=True)
    (folder / IMAGE_DIGEST).write_text("abc\n")
    assert needs(one).digests == {}
    note_home(other)
    note_home(other)
    assert needs(one).digests == {"abc": ["0123456789"]}
    assert needs(other).digests == {"abc": ["0123456789"]}


def test_a_home_that_is_gone_needs_nothing(homes: tuple[Paths, Paths]) -> None:
    one, other = homes
    note_home(one)
    note_home(other)
    assert session_folders(one) == [one.sessions, other.sessions]
    assert needs(one).digests == {}


def test_the_same_id_in_two_homes_has_two_folders_of_sockets(homes: tuple[Paths, Paths]) -> None:
    one, other = homes
    assert one.runtime == other.runtime
    assert one.sockets("0123456789") != other.sockets("0123456789")
