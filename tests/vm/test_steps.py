"""The named steps: silent and without effect unless a socket of the same user asks for them."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from vm import steps

if TYPE_CHECKING:
    from pathlib import Path


def test_without_the_variable_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(steps.VARIABLE, raising=False)

    def refuse(*_: object) -> None:
        pytest.fail("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    steps.reached("boot.spawned")


@pytest.mark.parametrize("kind", ["missing", "file", "deaf"])
def test_nothing_that_is_no_listener_holds_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = tmp_path / "gate"
    if kind == "file":
        place.write_text("")
    if kind == "deaf":
        with socket.socket(socket.AF_UNIX) as closed:
            closed.bind(str(place))
    monkeypatch.setenv(steps.VARIABLE, str(place))
    steps.reached("boot.spawned")


def test_a_listener_hears_where_we_are_and_lets_us_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gate"
    monkeypatch.setenv(steps.VARIABLE, str(place))
    said: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        listener.settimeout(30)

        def answer() -> None:
            line, _ = listener.accept()
            line.settimeout(30)
            with line:
                said.append(line.recv(100))
                line.send(b".")

        thread = threading.Thread(target=answer)
        thread.start()
        steps.reached("boot.spawned")
        thread.join(30)
    assert said[0].endswith(b" boot.spawned\n")
