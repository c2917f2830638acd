"""What `resolve` makes of an upper dir is exactly what the kernel shows."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapshot.changes import compare
from snapshot.mirror import AgentTree, resolve
from tests.sampling import sampled
from tests.snapshot.capture_helpers import tree_of
from tests.snapshot.overlay_model import (
    contents_of,
    list_upper,
    manifest_of,
    overlay,
    plain,
    possible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Unmounting an overlay syncs its upper dir, which takes long on a busy disk."""

NAMES = ("a", "b", "c", "d.txt")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
Operation = tuple[str, str, str]
OPERATIONS = st.tuples(
    st.sampled_from(
        (
            *("write", "append", "remove", "remove", "mkdir", "rename", "rename", "rename"),
            *("link", "hard", "chmod", "fifo", "copy_up", "empty"),
        )
    ),
    PATHS,
    PATHS,
)


def apply(root: Path, operation: Operation) -> None:
    """Do one thing as a program would; what is not possible does nothing."""
    action, first, second = operation
    path, other = root / first, root / second
    try:
        _ACTIONS[action](path, other)
    except OSError:
        return


def _promptly(path: str, flags: int) -> int:
    """Open as asked; fail on a FIFO without a reader, in place of waiting for one for ever."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _write(path: Path, other: Path) -> None:
    with open(path, "w", opener=_promptly) as file:
        file.write(f"new {other}")


def _append(path: Path, other: Path) -> None:
    with open(path, "a", opener=_promptly) as file:
        file.write(f"more {other.name}\n")


def _remove(path: Path, other: Path) -> None:
    del other
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _empty(path: Path, other: Path) -> None:
    del other
    shutil.rmtree(path)
    path.mkdir()


_ACTIONS: dict[str, Callable[[Path, Path], object]] = {
    "write": _write,
    "append": _append,
    "remove": _remove,
    "empty": _empty,
    "mkdir": lambda path, other: path.mkdir(),
    "rename": lambda path, other: path.rename(other),
    "link": lambda path, other: path.symlink_to(other.name),
    "hard": lambda path, other: other.hardlink_to(path),
    "chmod": lambda path, other: path.chmod(0o755 if len(other.parts) % 2 else 0o600),
    "fifo": lambda path, other: os.mkfifo(path),
    "copy_up": lambda path, other: os.utime(path, (5, 5), follow_symlinks=False),
}


def lower_tree(root: Path) -> None:
    """Three levels with files on each, so that every rename has something to bring along."""
    for first in ("a", "b", "c"):
        for second in ("a", "b"):
            folder = root / first / second
            folder.mkdir(parents=True)
            (folder / "d.txt").write_text(f"{first}{second}\n" * 3)
            (folder / "c").mkdir()
            (folder / "c/d.txt").write_text(f"deep {first}{second}")
        (root / first / "d.txt").write_text(first)
        (root / first / "c").symlink_to("a")
    (root / "d.txt").write_text("top")


@pytest.fixture(scope="module")
def _mountable(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not possible(tmp_path_factory.mktemp("probe")):
        pytest.skip("overlay file systems cannot be mounted here")


def resolved(place: Path) -> tuple[AgentTree, dict[bytes, tuple[object, ...]]]:
    """Resolve what lies in `place` and give it beside what the kernel shows."""
    listing = list_upper(place / "upper")
    base = manifest_of(tree_of(place / "lower"))
    tree = resolve(base, listing, contents_of(place / "upper", listing))
    return tree, plain(tree_of(place / "merged"))


def seen_by(tree: AgentTree) -> dict[bytes, tuple[object, ...]]:
    return plain({path: item.entry for path, item in tree.items()})


@pytest.mark.usefixtures("_mountable")
@settings(
    max_examples=sampled(100, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.lists(OPERATIONS, min_size=1, max_size=25))
@example([("fifo", "new", "a"), ("write", "new", "a"), ("append", "new", "a")])
def test_any_sequence_of_operations(operations: list[Operation]) -> None:
    with tempfile.TemporaryDirectory(prefix="cloche-overlay-", dir=MEMORY) as name:
        place = Path(name)
        lower_tree(place / "lower")
        with overlay(place / "lower", place) as merged:
            for operation in operations:
                apply(merged, operation)
            tree, shown = resolved(place)
        before = plain(dict(tree.base.items()))

    assert seen_by(tree) == shown
    for path in {*before, *shown}:
        item = tree.get(path)
        assert (item is not None) == (path in shown)
    changed = {path for path in {*before, *shown} if before.get(path) != shown.get(path)}
    reported = {c.path for c in compare(tree.base, tree).changes}
    reported |= {c.old_path for c in compare(tree.base, tree).changes if c.old_path}
    assert reported <= changed


def _rename_into_deleted(root: Path) -> None:
    shutil.rmtree(root / "b")
    (root / "a").rename(root / "b")


def _swap_places(root: Path) -> None:
    (root / "a").rename(root / "tmp")
    (root / "b").rename(root / "a")
    (root / "tmp").rename(root / "b")


def _nested_renames(root: Path) -> None:
    (root / "a/a").rename(root / "b/moved")
    (root / "b").rename(root / "e")
    (root / "e/moved/c").rename(root / "c/c2")
    (root / "e/moved").rename(root / "e/again")


def _back_into_an_opaque_folder(root: Path) -> None:
    (root / "a/b").rename(root / "keep")
    shutil.rmtree(root / "a")
    (root / "a").mkdir()
    (root / "keep").rename(root / "a/b")


def _file_for_folder_and_back(root: Path) -> None:
    shutil.rmtree(root / "a")
    (root / "a").write_text("a file now")
    (root / "d.txt").unlink()
    (root / "d.txt").mkdir()
    (root / "d.txt/inner").write_text("x")


def _edit_in_a_renamed_folder(root: Path) -> None:
    (root / "a").rename(root / "z")
    (root / "z/a/d.txt").write_text("edited")
    (root / "z/b/d.txt").unlink()
    (root / "z/new").mkdir()
    (root / "z/a/c").rename(root / "z/new/c")


@pytest.mark.usefixtures("_mountable")
@pytest.mark.parametrize(
    "script",
    [
        _rename_into_deleted,
        _swap_places,
        _nested_renames,
        _back_into_an_opaque_folder,
        _file_for_folder_and_back,
        _edit_in_a_renamed_folder,
    ],
)
def test_known_knots(script: Callable[[Path], None], tmp_path: Path) -> None:
    lower_tree(tmp_path / "lower")
    with overlay(tmp_path / "lower", tmp_path) as merged:
        script(merged)
        tree, shown = resolved(tmp_path)

    assert seen_by(tree) == shown


@pytest.mark.usefixtures("_mountable")
def test_metadata_alone_is_no_change(tmp_path: Path) -> None:
    lower_tree(tmp_path / "lower")
    with overlay(tmp_path / "lower", tmp_path) as merged:
        for path in merged.rglob("*"):
            os.utime(path, (7, 7), follow_symlinks=False)
            os.chown(path, 1000, 1000, follow_symlinks=False)
        tree, _ = resolved(tmp_path)

    assert len(tree.present) > 10
    assert compare(tree.base, tree).changes == ()


@pytest.mark.usefixtures("_mountable")
def test_a_renamed_folder_is_renamed_files(tmp_path: Path) -> None:
    lower_tree(tmp_path / "lower")
    with overlay(tmp_path / "lower", tmp_path) as merged:
        _edit_in_a_renamed_folder(merged)
        tree, _ = resolved(tmp_path)

    changes = {c.path: (c.kind, c.old_path) for c in compare(tree.base, tree).changes}

    assert changes == {
        b"z/a/d.txt": ("renamed", b"a/a/d.txt"),
        b"a/b/d.txt": ("deleted", b""),
        b"z/b/c/d.txt": ("renamed", b"a/b/c/d.txt"),
        b"z/new/c/d.txt": ("renamed", b"a/a/c/d.txt"),
        b"z/d.txt": ("renamed", b"a/d.txt"),
        b"z/c": ("renamed", b"a/c"),
    }


@pytest.fixture(autouse=True)
def _no_rest(tmp_path: Path) -> Iterator[None]:
    yield
    for work in (tmp_path / "work/work",):  # made by the kernel, closed to its owner
        if work.is_dir():
            work.chmod(0o700)
