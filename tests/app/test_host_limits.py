"""What a host is asked before a machine is made; the host is made up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.client import host_limits
from app.client.host_limits import check_limits
from app.config import Defaults
from app.errors import AppError
from app.host_memory import HostMemory
from app.paths import Paths

if TYPE_CHECKING:
    from collections.abc import Iterable

GIB = 1 << 30
PATHS = Paths(*(Path("/nowhere") for _ in range(5)))
BLOCK = 4096


class Host:
    """Four processors, 16 GiB of memory, 100 GiB of disk."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.processors: Iterable[int] = range(4)
        self.memory = 16 * GIB
        self.disk = 100 * GIB
        self.nodes = 10**6
        patch.setattr(os, "sched_getaffinity", self.affinity)
        patch.setattr(os, "statvfs", self.statvfs)
        patch.setattr(host_limits, "host_memory", lambda: HostMemory(self.memory, GIB))

    def affinity(self, _: int) -> set[int]:
        return set(self.processors)

    def statvfs(self, _: object) -> os.statvfs_result:
        blocks = self.disk // BLOCK
        return os.statvfs_result(
            (BLOCK, BLOCK, blocks, blocks, blocks, 10**6, self.nodes, self.nodes, 0, 255)
        )


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def refused(limits: Defaults) -> AppError:
    with pytest.raises(AppError) as caught:
        check_limits(PATHS, limits)
    return caught.value


def test_the_defaults_fit_everywhere_but_for_memory(host: Host) -> None:
    check_limits(PATHS, Defaults())
    host.processors, host.disk = range(1), 8 * GIB
    check_limits(PATHS, Defaults())
    host.memory = 2 * GIB
    error = refused(Defaults())
    assert (error.code, error.hint) == (
        "no-memory",
        "Give new sessions less, in config.yaml: 'defaults: {memory: 1638}'",
    )


def test_all_that_the_host_has_may_be_given(host: Host) -> None:
    del host
    check_limits(PATHS, Defaults(memory=13107, vcpus=4, scratch=100))


def test_more_processors_than_there_are(host: Host) -> None:
    error = refused(Defaults(vcpus=5))
    assert (error.code, error.message) == (
        "host-lacks",
        "The machine shall have 5 vCPUs, this host has 4.",
    )
    assert error.hint == "Give it at most 4, in config.yaml: 'defaults: {vcpus: 4}'"
    host.processors = range(1)
    assert refused(Defaults(vcpus=3)).hint.startswith("Give it at most 2")


def test_more_memory_than_there_ever_is(host: Host) -> None:
    del host
    error = refused(Defaults(memory=16384))
    assert (error.code, "13107" in error.hint) == ("no-memory", True)
    assert "'pool'" in refused(Defaults(memory=2048, pool=1024)).message


def test_a_disk_larger_than_the_hosts(host: Host) -> None:
    del host
    error = refused(Defaults(scratch=101))
    assert error.code == "host-lacks"
    assert "the whole disk of / has 100" in error.message
    assert "'defaults: {scratch: 100}'" in error.hint


def test_no_room_for_names(host: Host) -> None:
    host.nodes = 999
    assert refused(Defaults()).hint == "Remove some: df -i '/'"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("memory", Defaults(memory=1)),
        ("vcpus", Defaults(vcpus=0)),
        ("vcpus", Defaults(vcpus=65)),
        ("scratch", Defaults(scratch=0)),
        ("scratch", Defaults(scratch=4096)),
    ],
)
def test_numbers_that_no_machine_can_have(host: Host, name: str, wrong: Defaults) -> None:
    del host
    error = refused(wrong)
    assert error.code == "usage"
    assert name in error.message
