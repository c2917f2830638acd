"""Folders of our own are closed to others, and none that others could have filled is used."""

from __future__ import annotations

import asyncio
import stat
from typing import TYPE_CHECKING

import pytest

from app.client.connection import Connection, new_host_key
from app.client.terminal import PaneClient
from app.errors import AppError
from app.paths import Paths, check_sockets_private, private_folder

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    assert mode(private_folder(tmp_path / "a" / "b")) == 0o700


def test_a_folder_that_others_can_look_into_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    assert mode(private_folder(folder)) == 0o700


def test_a_folder_that_others_can_write_into_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(AppError) as refused:
        private_folder(folder)
    assert refused.value.code == "unsafe-folder"
    assert f"chmod 700 '{folder}'" in refused.value.hint
    assert mode(folder) == 0o777


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(AppError):
        private_folder(tmp_path / "link")


def test_two_state_homes_never_share_sockets(tmp_path: Path) -> None:
    first = Paths(tmp_path / "a", tmp_path, tmp_path, tmp_path, tmp_path / "run")
    second = Paths(tmp_path / "b", tmp_path, tmp_path, tmp_path, tmp_path / "run")
    assert first.sockets("one") != second.sockets("one")


@pytest.mark.parametrize("open_folder", ["run", "run/0123abcd"])
async def test_clients_send_nothing_where_somebody_else_could_listen(
    tmp_path: Path, open_folder: str
) -> None:
    sockets = tmp_path / "run" / "0123abcd"
    private_folder(sockets)
    reached: list[asyncio.StreamReader] = []

    def accept(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        reached.append(reader)

    servers = [
        await asyncio.start_unix_server(accept, sockets / name)
        for name in ("pane.sock", "control.sock")
    ]
    check_sockets_private(sockets)
    (tmp_path / open_folder).chmod(0o777)
    key, _ = new_host_key()
    with pytest.raises(AppError) as pane:
        await PaneClient.open(sockets / "pane.sock")
    with pytest.raises(AppError) as control:
        await Connection.open(tmp_path, lambda: sockets, key)
    assert {pane.value.code, control.value.code} == {"unsafe-folder"}
    assert reached == []
    for server in servers:
        server.close()
        await server.wait_closed()


def test_a_folder_of_sockets_that_is_missing_or_a_link_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_sockets_private(tmp_path / "none")
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(AppError):
        check_sockets_private(tmp_path / "link")
