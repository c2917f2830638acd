"""The host's disk fills up under a real machine: it stands still, goes on, and lost nothing."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from tests.doubles.small_disk import SmallDisk, small_disk
from tests.e2e.sessions import World, store_of
from tests.sampling import sampled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

LARGE = 2 << 30
SIZE = sampled(40_000_000, 16_000_000)
SEED = 7
MAKE = f"import random, sys; sys.stdout.buffer.write(random.Random({SEED}).randbytes({SIZE}))"
WRITE = f"(python3 -c '{MAKE}' > {{0}}; sync; echo > {{0}}.done) > /dev/null 2>&1 &"
DIGEST = hashlib.sha256(random.Random(SEED).randbytes(SIZE)).hexdigest()
"""Of what the guest must have on its disk in the end, made here by the same generator."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    (tmp_path / "w").mkdir()
    with small_disk(tmp_path / "w" / "state", "2g") as made:
        yield made


@pytest.fixture
def world(disk: SmallDisk, tmp_path: Path, guest_image: ImageSet) -> Iterator[World]:
    made = World(tmp_path / "w", store_of(guest_image))
    yield made
    disk.limit(LARGE)
    made.close()


def test_a_machine_stands_still_without_room_and_goes_on(
    world: World, disk: SmallDisk, tmp_path: Path
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "state", "running")

    disk.limit(disk.used() + (2 << 20))
    assert world.run("exec", session, "--", "sh", "-c", WRITE.format("/var/tmp/one")).status == 0
    world.wait_for(session, "state", "paused")
    shown = world.shown(session)
    assert shown["message"].startswith("The host's disk is full (")
    assert "MiB free): the machine stands still" in shown["message"]
    assert "df -h" in shown["hint"]
    assert world.json("changes", session)["files"] == []
    refused = world.json("resume", session, status=1)
    assert refused["error"]["code"] == "disk-full"

    disk.limit(LARGE)
    world.wait_for(session, "state", "running")
    assert world.state(session).message == ""
    script = "until [ -e /var/tmp/one.done ]; do sleep 0.2; done; sha256sum < /var/tmp/one"
    read = world.run("exec", session, "--", "sh", "-c", script)
    assert read.stdout.split()[:1] == [DIGEST.encode()], read

    assert world.run("exec", session, "--", "sh", "-c", "echo new > new; sync").status == 0
    disk.limit(disk.used() + (2 << 20))
    world.run("exec", session, "--", "sh", "-c", WRITE.format("/var/tmp/two"))
    world.wait_for(session, "state", "paused")
    stopped = world.json("stop", session)
    assert stopped["state"] == "stopped"
    assert "on the session's disk" in stopped["message"]
    disk.limit(LARGE)
    assert world.json("resume", session, "--no-agent")["message"] == ""
    assert [file["path"] for file in world.json("changes", session)["files"]] == ["new"]
    world.json("resume", session)  # what is read now comes from the disk, not from a memory
    read = world.run("exec", session, "--", "sha256sum", "/var/tmp/one")
    assert read.stdout.split()[:1] == [DIGEST.encode()], read
