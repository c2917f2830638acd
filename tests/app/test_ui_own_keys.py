"""The user's own keys: what is refused, and that screens, hints and help name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.binding import Binding

from app.config import load_config
from app.errors import AppError
from app.ui.app import ClocheApp
from app.ui.keys import key_groups, movable_places
from app.ui.own_keys import moved, read_keys, with_own_keys
from app.ui.review_screen import ReviewScreen
from tests.doubles.keeper import FakeFleet
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import WORKSPACE, sessions
from tests.doubles.terminals import StillTerminals
from widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "ctrl+g"


def read(**keys: str) -> dict[str, str]:
    named = {name.replace("__", ".").replace("_", "-"): key for name, key in keys.items()}
    return read_keys(named, movable_places(), PREFIX)


@pytest.mark.parametrize(
    ("name", "key", "wanted"),
    [
        ("review.accept", "y", None),
        ("review.accept", "ctrl+y", "ctrl+y"),
        ("review.accept", "f5", "f5"),
        ("review.accept", "=", "equals_sign"),
        ("review.accept", "", None),
        ("review.accept", "ctrl+", None),
        ("review.accept", "two words", None),
        ("review.accept", "\x1b", None),
        ("review.accept", PREFIX, None),
        ("review.accept", "A", None),
        ("no.such", "y", None),
        ("merge.write", "w", None),
        ("app.prefix", "ctrl+b", None),
    ],
)
def test_what_can_be_a_key_and_what_is_refused(name: str, key: str, wanted: str | None) -> None:
    if wanted is not None:
        assert read_keys({name: key}, movable_places(), PREFIX) == {name: wanted}
        return
    with pytest.raises(AppError) as caught:
        read_keys({name: key}, movable_places(), PREFIX)
    assert caught.value.code == "bad-config"
    assert caught.value.hint


def test_two_keys_may_change_places() -> None:
    assert read(review__accept="y", review__copy="space") == {
        "review.accept": "y",
        "review.copy": "space",
    }


def test_each_screen_has_its_own_table() -> None:
    assert read(review__accept="ctrl+y", commits__copy="ctrl+y")


def test_hints_name_the_users_keys() -> None:
    own = {"u": "ctrl+z", "r": "R"}
    assert with_own_keys("u takes it back", own) == "ctrl+z takes it back"
    assert with_own_keys("R resumes it, r reviews it", own) == "R resumes it, R reviews it"
    assert with_own_keys("undo it: cloche undo u", own) == "undo it: cloche undo u"
    binding = Binding("u", "undo", "undo", key_display="U", tooltip="back", id="review.undo")
    assert moved(binding, {}) is binding
    own_one = moved(binding, {"review.undo": "ctrl+z"})
    assert (own_one.key, own_one.key_display, own_one.tooltip) == ("ctrl+z", None, "back")


async def test_a_moved_key_works_is_shown_and_helped_and_the_usual_one_does_not() -> None:
    keepers = sessions()
    keys = {"review.accept-file": "Y", "review.undo": "ctrl+z", "fleet.review": "v"}
    app = ClocheApp(WORKSPACE, FakeFleet(keepers), StillTerminals(), keys=keys)
    app.strict = True
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "v")
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        await until(pilot, lambda: screen.loaded is not None)
        await press(pilot, "A", "u")
        assert keepers[0].decided == []
        await press(pilot, "Y")
        assert len(keepers[0].decided) == 1
        hints = {hint.action: hint.key for hint in screen.query_one(KeyBar).hints}
        assert (hints["accept_file"], hints["undo"]) == ("Y", "ctrl+z")
        screen.say("It is done.", "u takes it back")
        assert screen.notice is not None
        assert screen.notice.hint == "ctrl+z takes it back"
        await press(pilot, "ctrl+z")
        assert screen.own_fact((" A ", "accent", "accept_file")) == (" Y ", "accent", "accept_file")
        assert screen.own_fact(("A", "accent")) == ("A", "accent")
        await until(pilot, lambda: screen.changes is not None)
    review = next(group for group in key_groups(keys=keys) if group.title == "Review")
    assert next(row for row in review.rows if row.name == "review.undo").keys == ("ctrl+z",)


def test_the_file_of_the_user_says_them(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("ui: {keys: {review.accept: y, review.find: 7}}\n")
    assert load_config(tmp_path).ui.keys == {"review.accept": "y", "review.find": "7"}
    (tmp_path / "config.yaml").write_text("ui: {keys: {review.accept: [y]}}\n")
    with pytest.raises(AppError, match="must be a key"):
        load_config(tmp_path)
