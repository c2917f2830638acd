from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services import layouts
from app.services.layouts import (
    KEPT,
    MAX_BYTES,
    Layout,
    Layouts,
    layout_file,
    read_layout,
    write_layout,
)

if TYPE_CHECKING:
    from pathlib import Path

MINE = Layout(6, 2, True, ("a", "", "b"), "by name", "b")


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "layouts"
    assert write_layout(folder, "/w/here", MINE)
    assert read_layout(folder, "/w/here") == MINE
    assert read_layout(folder, "/w/there") == Layout()
    file = layout_file(folder, "/w/here")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"nonsense",
        b"\xff\xfe",
        b'{"panes": 5000}',
        b'{"panes": "2"}',
        b'{"panes": 0}',
        b'{"places": ["%s"]}' % (b"x" * 65),
        b'{"places": [%s]}' % b",".join([b'"a"'] * 10),
        b'{"format": 2}',
        b'{"surprise": 1}',
        b'{"order": "' + b"y" * MAX_BYTES + b'"}',
        b"[" * 10000,
    ],
)
def test_a_bad_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    layout_file(tmp_path, "/w").write_bytes(content)
    assert read_layout(tmp_path, "/w") == Layout()
    assert write_layout(tmp_path, "/w", MINE)
    assert read_layout(tmp_path, "/w") == MINE


@given(st.binary(max_size=200))
def test_no_content_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    layout_file(folder, "/w").write_bytes(content)
    read_layout(folder, "/w")


@given(st.text(max_size=200))
def test_every_workspace_has_a_file_of_its_own_in_the_folder(
    tmp_path_factory: pytest.TempPathFactory, workspace: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        file = layout_file(folder, workspace)
    except UnicodeEncodeError:
        assert read_layout(folder, workspace) == Layout()
        assert not write_layout(folder, workspace, MINE)
        return
    assert file.parent == folder
    assert file == layout_file(folder, workspace) != layout_file(folder, workspace + "x")


def test_links_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(json.dumps({"panes": 9}).encode())
    layout_file(tmp_path, "/link").symlink_to(secret)
    os.mkfifo(layout_file(tmp_path, "/pipe"))
    layout_file(tmp_path, "/folder").mkdir()
    for workspace in ("/link", "/pipe", "/folder"):
        assert read_layout(tmp_path, workspace) == Layout()
    assert write_layout(tmp_path, "/link", MINE)
    assert secret.read_bytes() == b'{"panes": 9}'


def test_a_folder_that_others_can_write_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "layouts"
    folder.mkdir()
    folder.chmod(0o777)
    assert not write_layout(folder, "/w", MINE)
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not write_layout(tmp_path / "file" / "layouts", "/w", MINE)
    assert read_layout(tmp_path / "file" / "layouts", "/w") == Layout()


def test_the_newest_are_kept_and_nothing_else(tmp_path: Path) -> None:
    for number in range(KEPT + 20):
        file = layout_file(tmp_path, f"/w{number}")
        file.write_text("{}")
        os.utime(file, (number, number))
    left_behind = tmp_path / ".half.json.1234"
    left_behind.write_text("")
    os.utime(left_behind, (0, 0))
    tmp_path.chmod(0o700)
    assert write_layout(tmp_path, "/new", MINE)
    kept = set(tmp_path.iterdir())
    assert len(kept) == KEPT
    assert {layout_file(tmp_path, "/new"), layout_file(tmp_path, f"/w{KEPT + 19}")} <= kept
    assert layout_file(tmp_path, "/w0") not in kept
    assert left_behind not in kept


async def test_of_changes_in_short_order_the_last_is_written_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Layout] = []

    def note(folder: Path, workspace: str, layout: Layout) -> bool:
        written.append(layout)
        return write_layout(folder, workspace, layout)

    monkeypatch.setattr(layouts, "write_layout", note)
    kept = Layouts(tmp_path / "layouts")
    for panes in (1, 2, 4, 6):
        kept.remember("/w", Layout(panes))
    kept.remember("/v", MINE)
    await kept.close()
    assert written == [Layout(6), MINE]
    assert await kept.load("/w") == Layout(6)
    assert await kept.load("/v") == MINE


async def test_a_change_is_written_without_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "WRITE_SECONDS", 0.001)
    kept = Layouts(tmp_path / "layouts")
    kept.remember("/w", MINE)
    writer = kept._writer  # pyright: ignore[reportPrivateUsage] - nothing else tells when
    assert writer is not None
    await writer
    assert read_layout(tmp_path / "layouts", "/w") == MINE
    await kept.close()
