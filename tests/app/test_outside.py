"""Both sides of a file outside of the program: plain files of the user's own, gone at the end."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.services.outside import ENDINGS, MAX_NAME, TEXT, Outside, desktop_ending, plain_name
from tests.doubles.pilots import settle, until
from tests.doubles.reviews import Review, opened_review

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

LOGO = "logo.png"


@pytest.fixture
async def review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Review]:
    """Return an open review that saves below the test's own folder, on a host without a desktop."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async for opened in opened_review():
        yield opened


@given(st.text(max_size=200))
def test_names_of_an_agent_become_plain_names(path: str) -> None:
    name = plain_name(path)
    assert name
    assert len(name) <= MAX_NAME
    assert name.isascii()
    assert name.isprintable()
    assert not {"/", " "} & set(name)


def test_files_are_the_users_alone_and_go_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outside = Outside()
    one, two = outside.save("a/../x\x1b y.sh", (b"old", b"new"))
    assert (one.read_bytes(), two.read_bytes()) == (b"old", b"new")
    assert (one.name, two.name) == ("snapshot-x_y.sh", "agent-x_y.sh")
    assert stat.S_IMODE(one.stat().st_mode) == 0o400
    assert stat.S_IMODE(one.parent.parent.stat().st_mode) == 0o700
    (alone,) = outside.save("x", (None, b"new"))
    assert alone.parent != one.parent
    outside.close()
    outside.close()
    assert not list(tmp_path.iterdir())


async def test_a_program_of_the_users_gets_both_files(
    review: Review, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = "import pathlib as p, sys; p.Path(sys.argv[1]).write_bytes(b''.join("
    copy += "p.Path(file).read_bytes() for file in sys.argv[2:]))"
    out = tmp_path / "seen"
    monkeypatch.setattr(review.app, "outside", Outside([sys.executable, "-c", copy, str(out)]))
    await review.open(LOGO)
    await review.keys("o")
    await review.keys("o")
    await until(review.pilot, lambda: out.exists() and out.stat().st_size > 0)
    file = next(file for file in review.keeper.files if file.path == LOGO)
    assert out.read_bytes() == (file.base or b"") + (file.agent or b"")
    review.app.outside.close()


DESKTOP_ENTRY = b"[Desktop Entry]\nType=Application\nExec=sh -c id\nName=x\n"


@given(st.one_of(st.binary(max_size=64), st.sampled_from([b"MZ\0", b"PK\3\4\0", b"\x7fELF\0"])))
def test_a_desktop_is_told_only_of_kinds_that_it_shows(data: bytes) -> None:
    assert desktop_ending(data) in {TEXT, "", *ENDINGS.values()}
    assert desktop_ending(data) != TEXT or b"\0" not in data


@pytest.mark.parametrize(
    ("path", "content", "given"),
    [
        ("x.desktop", DESKTOP_ENTRY, "agent-x.desktop.txt"),
        ("x.html", b"<script>", "agent-x.html.txt"),
        ("notes.txt", b"", "agent-notes.txt"),
        ("x.exe", b"\x89PNG\r\n\x1a\n\0", "agent-x.exe.png"),
        ("x.png", b"\x89PNG\r\n\x1a\n\0", "agent-x.png"),
    ],
)
def test_the_desktop_gets_names_by_which_it_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, content: bytes, given: str
) -> None:
    os.mkfifo(tmp_path / "said")
    said = os.open(tmp_path / "said", os.O_RDONLY | os.O_NONBLOCK)
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf %s "$1" >{tmp_path}/said\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outside = Outside()
    outside.open(outside.save(path, (None, content)))
    assert select.select([said], [], [], 60.0)[0]
    assert os.read(said, 4096).decode().rpartition("/")[2] == given
    os.close(said)
    outside.close()


def test_what_a_desktop_might_run_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outside = Outside()
    for name, content in (("x.exe", b"MZ\0"), ("x.jar", b"PK\3\4\0"), ("x.png", b"MZ\0")):
        files = outside.save(name, (None, content))
        with pytest.raises(AppError, match="only shows") as caught:
            outside.open(files)
        assert str(files[0].parent) in caught.value.message
    outside.close()


async def test_without_a_desktop_they_are_saved_and_said_where(review: Review) -> None:
    await review.open(LOGO)
    await review.keys("o", "o")
    assert "saved" not in review.notice
    await review.keys("o", "s")
    await settle(review.pilot)
    assert "snapshot-logo.png and agent-logo.png are in" in review.notice
    await review.open("run.sock")
    await review.keys("o")
    assert "nothing of this file" in review.notice


async def test_a_missing_program_is_told(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review.app, "outside", Outside(["/no/such/program"]))
    await review.open(LOGO)
    await review.keys("o", "o")
    await until(review.pilot, lambda: "There is no program" in review.notice)
    review.app.outside.close()


def test_the_error_names_what_to_configure() -> None:
    with pytest.raises(AppError, match="There is no program") as caught:
        Outside(["/no/such/program"]).open([])
    assert "open_with" in caught.value.hint


async def test_a_binary_file_says_what_it_is(review: Review) -> None:
    await review.open(LOGO)
    document = review.screen.pane.document
    assert document is not None
    assert [note.split(",")[0] for note in document.notes] == [
        "snapshot: application/octet-stream",
        "agent: application/octet-stream",
    ]
    assert all("sha256" in note for note in document.notes)
