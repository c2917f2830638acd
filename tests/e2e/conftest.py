"""Fixtures that hand real machines to the end-to-end tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.e2e import vmlab
from tests.e2e.sessions import World, store_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from vm.image.store import ImageSet


@pytest.fixture(scope="session")
def guest_image() -> ImageSet:
    """The built image; a test that needs it fails with the build command where there is none."""
    return vmlab.lab_image()


@pytest.fixture(scope="session")
def vm_checkpoint(guest_image: ImageSet) -> vmlab.Checkpoint:
    """A freshly booted machine as a RAM checkpoint, kept between runs."""
    return asyncio.run(vmlab.checkpoint_of(guest_image))


@pytest.fixture
async def forked_vm(vm_checkpoint: vmlab.Checkpoint) -> AsyncIterator[vmlab.LabVM]:
    """A running machine of the test's own, one to two seconds after it was asked for."""
    async with vmlab.forked_vm(vm_checkpoint) as vm:
        yield vm


@pytest.fixture
async def cold_vm(guest_image: ImageSet) -> AsyncIterator[vmlab.LabVM]:
    """A machine booted from nothing, for what a restored one cannot show."""
    async with vmlab.cold_vm(guest_image) as vm:
        yield vm


@pytest.fixture
def world(tmp_path: Path, guest_image: ImageSet) -> Iterator[World]:
    """Folders of one user, whose sessions are ended with the test."""
    made = World(tmp_path / "w", store_of(guest_image))
    yield made
    made.close()
