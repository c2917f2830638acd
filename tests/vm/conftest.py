"""The guest's programs as tests of this folder use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.guest_host import Guest, compile_harness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the harness once; nothing writes to it."""
    target = tmp_path_factory.mktemp("harness") / "guest"
    compile_harness(target)
    return target


@pytest.fixture
def guest(program: Path, tmp_path: Path) -> Iterator[Guest]:
    """Run the guest's side, with its bulk port connected."""
    running = Guest(program, tmp_path)
    running.bulk.connect()
    yield running
    running.close()
