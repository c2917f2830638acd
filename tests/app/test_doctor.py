"""What `cloche doctor` finds is what Cloche itself would find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import doctor
from app.paths import Paths
from vm.image import tools

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_program_in_sbin_is_found_by_users_whose_path_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian gives sbin to root's search path only, and mkfs.ext4 lies there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor._program("mkfs.ext4", "e2fsprogs", "fail", "why")  # pyright: ignore[reportPrivateUsage]
    assert check(Paths.from_environment()).status == "ok"


def test_what_a_checkout_lacks_to_compile_the_guest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(tools, "find", nothing)
    found = doctor._first_process(Paths.from_environment())  # pyright: ignore[reportPrivateUsage]
    assert found.status == "warn"
    assert found.fix == "sudo apt-get install binutils musl-tools"
