"""What a session boots from: the image that it was made on, whatever was built since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.agents import shell
from app.errors import AppError
from app.keeper.boot import EXT4_ID, IDENTITY, SCRATCH_ID, Workshop
from app.paths import Paths
from app.records import IMAGE_DIGEST, Limits, SessionRecord
from tests.doubles.images import put_image
from vm.image import scratch_template, store
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(*(tmp_path / name for name in ("state", "data", "config", "cache", "run")))


@pytest.fixture
def workshop(paths: Paths) -> Workshop:
    folder = paths.session("0123456789")
    folder.mkdir(parents=True)
    record = SessionRecord(
        folder.name, "n", shell(), "/w", 0.0, "base", "", limits=Limits(accel="tcg", scratch=1)
    )
    digest = put_image(paths.store / "images", "old")
    (folder / IMAGE_DIGEST).write_text(digest + "\n")
    with scratch_template(paths.store, 1).open("rb") as disk:
        disk.seek(EXT4_ID)
        (folder / SCRATCH_ID).write_text(disk.read(16).hex() + "\n")
    Identity.new().save(folder / IDENTITY)
    return Workshop(paths, record, folder)


async def test_a_session_keeps_its_image_when_that_is_built_anew(
    paths: Paths, workshop: Workshop
) -> None:
    put_image(paths.store / "images", "new")
    spec = (await workshop.machinery()).spec
    assert spec.kernel.read_text() == "vmlinux old"
    assert spec.disks[0].path.read_text() == "base.squashfs old"
    assert spec.initrd.read_bytes().startswith(b"toolkit.cpio.gz old")


async def test_an_image_that_is_gone_is_named_with_the_way_out(
    paths: Paths, workshop: Workshop
) -> None:
    (base,) = (paths.store / "images" / store.BUILT).glob("*/base.squashfs")
    base.unlink()
    put_image(paths.store / "images", "new")
    with pytest.raises(AppError) as caught:
        await workshop.machinery()
    assert caught.value.code == "image-gone"
    assert "cloche merge 0123456789" in caught.value.hint
    assert (await workshop.adopted("tcg")).spec.name == "0123456789"


async def test_a_disk_is_never_put_on_another_one_than_it_grew_from(
    paths: Paths, workshop: Workshop
) -> None:
    scratch_template(paths.store, 1).unlink()
    with pytest.raises(AppError) as caught:
        await workshop.machinery()
    assert caught.value.code == "disk-gone"
    assert "cloche merge 0123456789" in caught.value.hint
