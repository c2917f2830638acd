"""How the screens look: SVG pictures, compared as text and looked at by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol_review import Conflict, ConflictChoice
from app.ui.review_screen import ReviewScreen
from app.ui.work_screen import WorkScreen
from tests.doubles import scenes
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import workstation
from tests.doubles.still import SIZES, Compare, hold_still

if TYPE_CHECKING:
    from textual.pilot import Pilot


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_still(monkeypatch)


async def in_review(pilot: Pilot[None]) -> None:
    """Open the review and wait for colours."""
    await settle(pilot)
    await press(pilot, "r")
    screen = pilot.app.screen
    assert isinstance(screen, ReviewScreen)
    await until(pilot, lambda: screen.loaded is not None)
    screen.open_file("src/tokenizer.py", 0)

    def coloured() -> bool:
        document = screen.pane.document
        right = screen.loaded is not None and screen.loaded.path == "src/tokenizer.py"
        return right and document is not None and set(document.spans) == {"old", "new"}

    await until(pilot, coloured)
    await press(pilot, "space", "x")


@pytest.mark.parametrize("size", SIZES)
def test_fleet(snap_compare: Compare, size: str) -> None:
    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=settle)


@pytest.mark.parametrize("size", SIZES)
def test_empty_fleet(snap_compare: Compare, size: str) -> None:
    app, _, _ = workstation([])
    assert snap_compare(app, terminal_size=SIZES[size], run_before=settle)


def test_fleet_with_the_keys_in_a_pane(snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "enter")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_review(snap_compare: Compare, size: str) -> None:
    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=in_review)


@pytest.mark.parametrize("size", SIZES)
def test_review_unified_and_split_by_key(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "s", "w")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_review_of_lines(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "v", "space", "v", "j", "j", "m")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_review_conflict(snap_compare: Compare, size: str) -> None:
    sides = (b"def scan(self):\n", b"def scan(self, text):\n", b"def scan(self, quote):\n")
    keepers = scenes.sessions()
    choices: tuple[ConflictChoice, ...] = ("yours", "agent", "both", "base", "text")
    keepers[0].disputes = [
        Conflict("src/tokenizer.py", name, "lines", "both changed these lines", 18, *sides, choices)
        for name in ("k1", "k2")
    ]

    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "C", "2")

    app, _, _ = workstation(keepers)
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_review_comment(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "c", *"Why so?", "ctrl+s", "j", "c", *"And here?")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_review_list_of_files(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "m", "tab", "k")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("theme", ["cloche-light", "cloche-ansi"])
def test_review_in_other_themes(snap_compare: Compare, theme: str) -> None:
    app, _, _ = workstation(theme=theme)
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=in_review)


@pytest.mark.parametrize("theme", ["cloche-light", "cloche-ansi"])
def test_fleet_in_other_themes(snap_compare: Compare, theme: str) -> None:
    app, _, _ = workstation(theme=theme)
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=settle)


def test_review_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=in_review)


def test_review_in_ascii(snap_compare: Compare) -> None:
    app, _, _ = workstation(ascii_only=True)
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=in_review)


@pytest.mark.parametrize("size", SIZES)
def test_merge_summary(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "plus", "M")

    app, fleet, _ = workstation()
    fleet.keepers["s1"].clashing = ("README.md",)
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_help(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "question_mark")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_new_session(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "n")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


def test_a_question(snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "s")

    app, _, _ = workstation()
    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=before)


def test_scenes_are_what_the_pictures_need() -> None:
    assert len(scenes.changed_files()) == 12


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_an_agents_question(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "enter")
        listener = terminals.feeds["s1"].listener
        assert listener is not None
        listener.feed_clipboard("ssh-ed25519 AAAA… \x1b[2J me@home")
        await settle(pilot)

    app, _, terminals = workstation()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_an_error_and_its_details(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, WorkScreen)
        if size == "80x24":
            screen.action_details()

    app, _, terminals = workstation()
    terminals.refuse = AppError(
        "host-lacks",
        "This host cannot show terminals: the kernel has no seccomp, so that a guest's bytes "
        "could reach your files.",
        "Look at what is missing: cloche doctor",
    )
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_after_a_merge(snap_compare: Compare, size: str) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await in_review(pilot)
        await press(pilot, "plus", "M", "y")
        if size == "120x40":
            await press(pilot, "enter", "tab", "o")

    app, fleet, _ = workstation()
    fleet.keepers["s1"].clashing = ("README.md",)
    assert snap_compare(app, terminal_size=SIZES[size], run_before=before)
