"""Where PID 1 mounts and writes in the world, whatever an image or a session's root left there."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("etc", "deep", "hosts")
"""The place: two folders and what is wanted in them."""


def _nothing(path: Path, outside: Path) -> None:
    del path, outside


def _folder(path: Path, outside: Path) -> None:
    del outside
    path.mkdir()
    (path / "kept").write_text("kept")


def _file(path: Path, outside: Path) -> None:
    del outside
    path.write_text("kept")


def _fifo(path: Path, outside: Path) -> None:
    del outside
    os.mkfifo(path)


def _absolute(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def _relative(path: Path, outside: Path) -> None:
    path.symlink_to(os.path.relpath(outside, path.parent))


def _to_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "secret")


def _dangling(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "not-there-yet")


def _circle(path: Path, outside: Path) -> None:
    del outside
    path.symlink_to(path.name)


PLANTS: tuple[Callable[[Path, Path], None], ...] = (
    _nothing, _folder, _file, _fifo, _absolute, _relative, _to_file, _dangling, _circle,
)  # fmt: skip


def found(program: Path, world: Path, path: str, kind: str) -> Path:
    """Let PID 1's code find a place; return where that was."""
    done = subprocess.run(
        [str(program), "place", str(world), path, kind],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert b"Sanitizer" not in done.stderr
    assert done.returncode == 0, (done.returncode, done.stderr)
    return Path(os.fsdecode(done.stdout))


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@settings(max_examples=60, deadline=None)
@given(
    plants=st.tuples(*(st.sampled_from(PLANTS) for _ in NAMES)),
    kind=st.sampled_from(("folder", "file", "fresh")),
)
def test_no_place_lies_outside_and_nothing_is_lost(
    program: Path, plants: tuple[Callable[[Path, Path], None], ...], kind: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        world, outside = top / "world", top / "outside"
        for folder in (world, outside):
            folder.mkdir()
        (outside / "secret").write_text("secret")
        at = world
        for part, plant in zip(NAMES, plants, strict=True):
            plant(at / part, outside)
            at = at / part
            if at.is_symlink() or not at.is_dir():
                break
        kept = list(contents(world).values()).count("kept")
        if kind == "fresh" and plants[-1] is _file and (world / "/".join(NAMES)).is_file():
            kept -= 1  # what is written anew takes the place of a file

        assert found(program, world, "/".join(NAMES), kind) == world.joinpath(*NAMES)

        mode = world.joinpath(*NAMES).lstat().st_mode
        assert stat.S_ISDIR(mode) if kind == "folder" else stat.S_ISREG(mode)
        assert contents(outside) == {"secret": "secret"}
        assert list(contents(world).values()).count("kept") == kept
        if kind == "fresh":
            assert world.joinpath(*NAMES).read_text() == "fresh"


def test_what_is_right_stays_as_it_is(program: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir(mode=0o711)
    (tmp_path / "etc/hosts").write_text("mine")
    before = [os.lstat(tmp_path / name) for name in ("etc", "etc/hosts")]
    assert found(program, tmp_path, "etc/hosts", "file") == tmp_path / "etc/hosts"
    after = [os.lstat(tmp_path / name) for name in ("etc", "etc/hosts")]
    assert [(one.st_ino, one.st_mode) for one in after] == [
        (one.st_ino, one.st_mode) for one in before
    ]
    assert (tmp_path / "etc/hosts").read_text() == "mine"


def test_a_file_in_the_way_again_and_again_gets_a_name_of_its_own(
    program: Path, tmp_path: Path
) -> None:
    for turn in range(3):
        (tmp_path / "etc").write_text(f"turn {turn}")
        found(program, tmp_path, "etc", "folder")
        (tmp_path / "etc").rmdir()
    assert contents(tmp_path) == {f"etc.moved-{turn + 1}": f"turn {turn}" for turn in range(3)}


def test_a_name_that_no_folder_can_hold_is_refused(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(program), "place", str(tmp_path), "n" * 300, "file"], check=False, timeout=20
    )
    assert done.returncode != 0
    assert not list(tmp_path.iterdir())
