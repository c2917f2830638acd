"""The progress of `cloche image build`: a bar on a terminal, one line a step elsewhere."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from app.cli.progress import Bar
from app.main import main
from vm.errors import VMError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from vm.image.progress import Progress
    from vm.image.recipes import Recipe


def test_a_bar_never_wraps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    bar = Bar(shown=True, every_s=3600.0, clock=lambda: 7.0)
    bar.show("half of " + "x" * 100, 0.5)
    bar.end()
    drawn = capsys.readouterr().err
    assert drawn.startswith("\r\x1b[K" + "━" * 15 + "─" * 15 + "  50% 0:00 half of xxx")
    assert len(drawn) == len("\r\x1b[K") + 59 + len("\n")


def test_a_step_that_says_nothing_shows_the_time_that_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = iter((0.0, 1.0, 75.9))
    drawn = threading.Event()

    def clock() -> float:
        found = next(seconds, None)
        if found is None:
            drawn.set()
        return 3600.0 if found is None else found

    bar = Bar(shown=True, every_s=0.001, clock=clock)
    bar.show("installing", 0.3)
    assert drawn.wait(60)
    bar.end()
    times = [line.split()[2] for line in capsys.readouterr().err.split("\r")[1:]]
    assert times[:3] == ["0:01", "1:15", "60:00"]


def test_a_bar_that_was_never_drawn_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Bar(shown=True).end()
    assert capsys.readouterr().err == ""


def test_steps_are_told_once_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bar = Bar(shown=False)
    for what in ("one", "one", "two"):
        bar.show(what, 0.1)
    bar.end()
    assert capsys.readouterr().err == "one\ntwo\n"


def test_an_error_begins_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(store: Path, *, recipe: Recipe, progress: Progress, force: bool) -> None:
        progress("fetching", 0.1)
        raise VMError("The mirror is gone.")

    def terminal() -> bool:
        return True

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("vm.image.build.build_image", fail)
    monkeypatch.setattr("sys.stderr.isatty", terminal)
    assert main(["image", "build", "base"]) != 0
    assert "fetching\ncloche: The mirror is gone." in capsys.readouterr().err


def test_an_image_without_a_recipe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["image", "build", "nope"]) == 4
    assert "no recipe for an image called 'nope'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
