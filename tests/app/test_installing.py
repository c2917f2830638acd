"""What an installation hands over is bounded, whoever made the tar; the machine is the test's own.

That a real machine installs is `tests/e2e/test_image_import.py`'s.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from app.client import checks
from app.client.copying.out import Place, receive
from app.copy_stream import pack_length, pack_record
from app.errors import AppError
from app.paths import Paths
from app.services import installing
from app.services.sandbox import CopyFailed, SandboxReport
from tests.doubles.images import put_image
from vm.image import added, build
from vm.image.recipes import Recipe

if TYPE_CHECKING:
    from pathlib import Path

    from app.client.copying import CopyLimits, CopyReport
    from app.services.sandbox import SandboxRequest

RECIPE = Recipe("mine", "mine", below="base", install="make install PREFIX={prefix}")
END = pack_record("z", 0, 0, b"")


def a_file(name: bytes, size: int) -> bytes:
    return pack_record("f", 0o644, size, name) + pack_length(size) + bytes(size) + pack_length(0)


def silent(*_: object) -> None:
    """Show nothing."""


def built(*_: object, **__: object) -> None:
    """Have the programs of a machine, and the image below, already."""


FOLDER = pack_record("d", 0o755, 0, b"")


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        (a_file(b"", 1001), "bytes than 1,000"),
        (FOLDER + a_file(b"a", 1), "entries than 1"),
    ],
)
def test_what_is_too_large_is_said_and_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes, most: str
) -> None:
    async def run(_: Paths, request: SandboxRequest, __: object) -> SandboxReport:
        (pair,) = request.copy_out
        try:
            await hand_over(pair.host, pair.limits)
        except AppError as error:
            failed = CopyFailed("", "", error.code, error.message, error.hint)
            return SandboxReport(exit_code=0, copies_failed=[failed])
        raise AssertionError("it was taken")

    async def hand_over(target: Path, limits: CopyLimits) -> CopyReport:
        reader = asyncio.StreamReader()
        reader.feed_data(sent + END)
        reader.feed_eof()
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            place = Place(folder, os.fsencode(target.name), target, limits=limits)
            return await receive(reader, place, lambda _: None)
        finally:
            os.close(folder)

    monkeypatch.setattr(installing, "run_sandbox", run)
    monkeypatch.setattr(added, "MAX_ARCHIVE", 1000)
    paths = Paths(*(tmp_path / name for name in ("state", "data", "config", "cache", "run")))
    put_image(paths.store / "images", "base", "base")
    monkeypatch.setattr(checks, "check_programs", built)
    monkeypatch.setattr(build, "build_image", built)
    with pytest.raises(AppError) as caught:
        installing.make(paths, RECIPE, silent, force=True)
    assert caught.value.code == "too-large"
    assert caught.value.message.startswith("What installing mine made is too large: ")
    assert f"more {most}" in caught.value.message
    assert "`install`" in caught.value.hint
    assert not [name for name in os.listdir(paths.store) if name.startswith(installing.SCRATCH)]
