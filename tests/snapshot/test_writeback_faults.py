"""Every step of a merge fails, is killed, or meets another writer: nothing is ever half done."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat, writeback_commit, writeback_run
from snapshot.errors import MergeAborted, StoreDamaged
from snapshot.writeback import recover, run_merge, undo_merge, workspace_lock
from snapshot.writeback_ops import Side, Wish
from snapshot.writeback_plan import make_plan
from snapshot.writeback_tree import Tree
from tests.snapshot.merge_help import Entry, Nodes, Scene, everything, text, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Work in memory where there is room: these tests make thousands of small trees."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def nothing(*_: object) -> None:
    """Stand in for what a test leaves out."""


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out syncing: a killed process does not lose what the kernel has."""
    monkeypatch.setattr(renameat, "sync_file_system", nothing)
    monkeypatch.setattr(os, "fsync", nothing)


def refuse(*_: object) -> None:
    raise renameat.Unsupported(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.fixture(params=["kernel", "links"])
def renames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with the kernel's renames and on a file system that has none of them."""
    if request.param == "links":
        monkeypatch.setattr(renameat, "_renameat2", refuse)
    return str(request.param)


class Injected(Exception):
    """The failure that a test puts in."""


def full(where: Path) -> Scene:
    where.mkdir()
    base, agent, moved, gone = everything()
    made = Scene(where / "ws", where / "merges", base, agent, moved, gone)
    (made.root / "mine").write_text("not part of it\n")
    return made


def ticks_of(where: Path) -> list[str]:
    names: list[str] = []
    full(where).merge(tick=names.append)
    return names


def fail_at(number: int, act: Callable[[], None]) -> Callable[[str], None]:
    """Return a tick that acts when it is called for the `number`th time."""
    count = iter(range(1 << 30))

    def tick(_name: str) -> None:
        if next(count) == number:
            act()

    return tick


def raise_injected() -> None:
    raise Injected


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_and_die(work: Callable[[], object]) -> int:
    """Run something in a forked child that is meant to be killed; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_failure_at_any_step_changes_nothing(tmp_path: Path, renames: str) -> None:
    names = ticks_of(tmp_path / "count")
    assert len(names) > 60
    committed = names.index("finish")
    for number, name in enumerate(names):
        made = full(tmp_path / f"{number}")
        before = tree_of(made.root)
        with pytest.raises(Injected):
            made.merge(tick=fail_at(number, raise_injected))
        if number < committed:
            assert tree_of(made.root) == before, name
            assert recover(made.merges) == []
        else:
            assert [found.rolled_back for found in recover(made.merges)] == [False]
            assert not list(made.root.rglob(".cloche-*"))
        shutil.rmtree(made.root.parent)


def test_a_kill_at_any_step_is_recovered(tmp_path: Path, renames: str) -> None:
    names = ticks_of(tmp_path / "count")
    committed = names.index("finish")
    for number, name in enumerate(names):
        made = full(tmp_path / f"{number}")
        before = tree_of(made.root)
        status = run_and_die(lambda: made.merge(tick=fail_at(number, die)))  # noqa: B023
        assert os.WIFSIGNALED(status)
        found = recover(made.merges)
        assert [item.leftovers for item in found] == ([()] if number else []), name
        if number < committed:
            assert tree_of(made.root) == before, name
        else:
            assert "TWO" in (made.root / "edit").read_text()
            assert undo_merge(made.merges, found[0].merge).conflicts == ()
            assert tree_of(made.root) == before, name
        assert recover(made.merges) == []
        shutil.rmtree(made.root.parent)


def test_a_kill_at_any_step_of_an_undo_is_recovered(tmp_path: Path) -> None:
    made = full(tmp_path / "count")
    names: list[str] = []
    made.undo(made.merge().merge, names.append)
    committed = names.index("finish")
    for number, name in enumerate(names):
        made = full(tmp_path / f"{number}")
        original = tree_of(made.root)
        merge = made.merge().merge
        merged = tree_of(made.root)
        run_and_die(lambda: made.undo(merge, fail_at(number, die)))  # noqa: B023
        recover(made.merges)
        assert tree_of(made.root) == (merged if number < committed else original), name
        made.undo(merge)
        assert tree_of(made.root) == original, name
        shutil.rmtree(made.root.parent)


def replace(path: Path, content: str) -> None:
    """Save as editors do: another file takes the name."""
    other = path.with_name("editor-temp")
    other.write_text(content)
    other.replace(path)


def overwrite(path: Path, content: str) -> None:
    """Save as shells do: the file itself gets other bytes."""
    path.write_text(content)


@pytest.mark.parametrize("save", [replace, overwrite])
def test_an_edit_at_any_step_survives(
    tmp_path: Path, renames: str, save: Callable[[Path, str], None]
) -> None:
    for number, name in enumerate(ticks_of(tmp_path / "count")):
        made = full(tmp_path / f"{number}")
        path = made.root / "edit"

        def edit(path: Path = path) -> None:
            save(path, path.read_text().replace("4\n", "mine\n"))

        outcome = made.merge(tick=fail_at(number, edit))
        assert "mine\n" in path.read_text(), name
        assert "TWO\n" in path.read_text(), name
        undone = made.undo(outcome.merge)
        assert undone.conflicts == (), name
        assert path.read_text() == "1\n2\n3\nmine\n5\n", name
        shutil.rmtree(made.root.parent)


@pytest.mark.parametrize("victim", ["gone/one", "new/exec", "moved", "link", "dir-to-file/x"])
def test_something_put_in_place_at_any_step_survives(tmp_path: Path, victim: str) -> None:
    for number, name in enumerate(ticks_of(tmp_path / "count")):
        made = full(tmp_path / f"{number}")
        path = made.root / victim

        def put(path: Path = path) -> None:
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_text("mine\n")

        with contextlib.suppress(MergeAborted):
            made.merge(tick=fail_at(number, put))
        kept = [*made.root.rglob("*"), *made.merges.rglob("late/*")]
        contents = [item.read_bytes() for item in kept if item.is_file()]
        assert b"mine\n" in contents or not path.parent.is_dir(), name
        assert not list(made.root.rglob(".cloche-*")), name
        shutil.rmtree(made.root.parent)


def test_a_write_through_an_open_file_is_kept_and_told(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    with (made.root / "edit").open("r+") as editor:

        def write(name: str) -> None:
            if name == "finish":
                editor.write("late")
                editor.flush()

        outcome = made.merge(tick=write)
    assert [refusal.path for refusal in outcome.conflicts] == [b"edit"]
    late = list(made.merges.rglob("late/*"))
    assert [path.read_bytes()[:4] for path in late] == [b"late"]
    assert "TWO" in (made.root / "edit").read_text()
    assert not list(made.root.rglob(".cloche-*"))


def test_a_file_that_never_rests_is_given_up(tmp_path: Path) -> None:
    made = Scene(
        tmp_path / "ws",
        tmp_path / "merges",
        {b"f": text("1\n2\n3\n")},
        {b"f": text("1\n2\nTHREE\n")},
    )
    turns = iter(range(100))

    def edit(name: str) -> None:
        if name == "rename 0":
            (made.root / "f").write_text(f"{next(turns)}\n2\n3\n")

    with pytest.raises(MergeAborted) as caught:
        made.merge(tick=edit)
    assert "kept changing" in caught.value.message
    assert (made.root / "f").read_text() == "2\n2\n3\n"


def test_a_parent_that_becomes_a_link_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    base: Nodes = {b"s/keep": text("k\n")}
    made = Scene(tmp_path / "ws", tmp_path / "merges", base, dict(base))
    stop = threading.Event()
    (made.root / "trap").symlink_to(outside)
    attacker = threading.Thread(target=swap_for_ever, args=(made.root, stop))
    attacker.start()
    written = 0
    try:
        for number in range(300):
            made.agent = {**base, b"s/f%d" % number: text("x\n")}
            with contextlib.suppress(MergeAborted):
                written += len(made.merge().written)
    finally:
        stop.set()
        attacker.join()
    assert list(outside.iterdir()) == []
    assert written > 0


def swap_for_ever(root: Path, stop: threading.Event) -> None:
    """Let folder and link change places, in one step each time, as fast as it goes."""
    fd = os.open(root, os.O_RDONLY)
    while not stop.is_set():
        renameat.exchange(fd, b"s", fd, b"trap")
    os.close(fd)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB, where the host lets us mount one."""
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield where
    finally:
        subprocess.run(["umount", str(where)], check=True)


@pytest.mark.parametrize("checked", [True, False])
def test_a_full_disk_changes_nothing(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    made = Scene(
        small_disk / "ws",
        tmp_path / "merges",
        {b"a": text("1\n"), b"b": text("b\n")},
        {b"a": text("2\n"), b"c": text(b"x" * (2 << 20))},
    )
    if not checked:
        monkeypatch.setattr(writeback_commit.Commit, "_check_space", nothing)
    before = tree_of(made.root)
    with pytest.raises(MergeAborted) as caught:
        made.merge()
    assert "No space left" in caught.value.message
    assert tree_of(made.root) == before


def test_a_full_disk_of_our_own_changes_nothing(tmp_path: Path, small_disk: Path) -> None:
    made = Scene(
        tmp_path / "ws", small_disk / "merges", {b"a": text(b"x" * (2 << 20))}, {b"a": text("2\n")}
    )
    before = tree_of(made.root)
    with pytest.raises(MergeAborted):
        made.merge()
    assert tree_of(made.root) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give up root")
def test_a_folder_that_may_not_be_written_changes_nothing(tmp_path: Path) -> None:
    made = Scene(
        tmp_path / "ws",
        tmp_path / "merges",
        {b"a": text("1\n"), b"d/b": text("b\n")},
        {b"a": text("2\n"), b"d/b": text("B\n")},
    )
    made.merges.mkdir(mode=0o777)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o5 == 0:
            path.chmod(0o755)
    for path in (made.merges, made.root, made.root / "a", made.root / "d/b"):
        os.chown(path, 65534, 65534)
    (made.root / "d").chmod(0o555)
    before = tree_of(made.root)

    def as_nobody() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        with contextlib.suppress(MergeAborted):
            made.merge()
            os._exit(1)
        os._exit(7)

    status = run_and_die(as_nobody)
    assert os.WEXITSTATUS(status) == 7
    assert tree_of(made.root) == before


def test_one_merge_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = full(tmp_path / "x")
    monkeypatch.setattr(writeback_run, "LOCK_TIMEOUT_S", 0.0)
    other = os.open(made.root, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with (
            Tree(made.root) as tree,
            pytest.raises(MergeAborted) as caught,
            workspace_lock(tree, 0.1),
        ):
            raise AssertionError
    finally:
        os.close(other)
    assert "Another merge" in caught.value.message
    assert made.merge().written


def test_a_waiting_merge_plans_again(tmp_path: Path) -> None:
    made = Scene(tmp_path / "ws", tmp_path / "merges", {b"f": text("1\n")}, {b"f": text("2\n")})
    other = os.open(made.root, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    planned = threading.Event()
    plan = made.plan

    def tell(*args: object) -> object:
        found = plan()
        planned.set()
        return found

    made.plan = tell  # type: ignore[method-assign, assignment]
    outcomes: list[object] = []
    waiting = threading.Thread(target=lambda: outcomes.append(made.merge().skipped))
    waiting.start()
    assert planned.wait(10)
    (made.root / "f").write_text("2\n")
    os.close(other)
    waiting.join(10)
    assert len(str(outcomes[0])) > len("()")


def test_recovery_leaves_later_edits_alone(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    names = ticks_of(tmp_path / "count")
    number = names.index("sync")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    (made.root / "edit").write_text("mine\n")
    (made.root / "new/exec").write_text("mine too\n")
    found = recover(made.merges)
    assert {item.path for item in found[0].leftovers} >= {b"edit", b"new/exec"}
    assert (made.root / "edit").read_text() == "mine\n"
    assert (made.root / "new/exec").read_text() == "mine too\n"
    kept = next(made.merges.iterdir()) / "pre"
    assert b"1\n2\n3\n4\n5\n" in [path.read_bytes() for path in kept.iterdir()]


def test_a_move_by_hard_link_can_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between link and unlink both names are there, of one and the same file."""
    monkeypatch.setattr(renameat, "_renameat2", refuse)
    unlinks = 0

    def die_at(number: int) -> Callable[..., None]:
        count = iter(range(1 << 30))
        unlink = os.unlink

        def dying(path: bytes, *, dir_fd: int | None = None) -> None:
            if dir_fd is not None and next(count) == number:
                die()
            unlink(path, dir_fd=dir_fd)

        return dying

    for number in range(14):
        made = full(tmp_path / f"{number}")
        before = tree_of(made.root)

        def work(made: Scene = made, number: int = number) -> None:
            os.unlink = die_at(number)
            made.merge()

        unlinks += os.WIFSIGNALED(run_and_die(work))
        found = recover(made.merges)
        if found[0].rolled_back:
            assert tree_of(made.root) == before
        assert found[0].leftovers == ()
        shutil.rmtree(made.root.parent)
    assert unlinks == 14


def test_recovery_does_not_touch_a_merge_that_still_runs(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    recovering = threading.Event()
    found: list[object] = []

    def recover_meanwhile() -> None:
        recovering.set()
        found.extend(recover(made.merges))

    other = threading.Thread(target=recover_meanwhile)

    def tick(name: str) -> None:
        if name == "rename 3":
            other.start()
            recovering.wait(10)

    outcome = made.merge(tick=tick)
    other.join(10)
    assert found == []
    assert len(outcome.written) == len(made.files)
    assert made.found().keys() >= made.expected().keys()


def test_two_changes_for_one_path_do_not_fight(tmp_path: Path) -> None:
    base: Nodes = {b"a": text("1\n2\n3\n4\n"), b"b": text("x\n")}
    made = Scene(tmp_path / "ws", tmp_path / "merges", base, base)
    wishes = [
        Wish(b"one", b"a", b"c", Side("file", base[b"a"][1]), Side("file", b"new\n")),
        Wish(b"two", None, b"c", Side("none"), Side("file", b"other\n")),
    ]
    outcome = run_merge(lambda: make_plan(wishes, made.root), made.merges)
    assert [refusal.path for refusal in outcome.conflicts] == [b"two"]
    assert (made.root / "c").read_bytes() == b"new\n"


def test_a_torn_journal_stands_for_what_was_whole(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    before = tree_of(made.root)
    number = ticks_of(tmp_path / "count").index("rename 5")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    journal = next(made.merges.rglob("journal.jsonl"))
    with journal.open("ab") as file:
        file.write(b'{"state":"COMM')
    assert recover(made.merges)[0].rolled_back
    assert tree_of(made.root) == before


def test_a_missing_workspace_is_tried_again_later(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    before = tree_of(made.root)
    number = ticks_of(tmp_path / "count").index("rename 5")
    run_and_die(lambda: made.merge(tick=fail_at(number, die)))
    made.root.rename(tmp_path / "away")
    assert "cannot be opened" in recover(made.merges)[0].leftovers[0].reason
    (tmp_path / "away").rename(made.root)
    assert recover(made.merges)[0].rolled_back
    assert tree_of(made.root) == before


def test_a_damaged_pre_image_is_said_and_nothing_restored(tmp_path: Path) -> None:
    made = full(tmp_path / "x")
    merge = made.merge().merge
    after = tree_of(made.root)
    for image in (made.merges / merge / "pre").iterdir():
        image.write_bytes(b"damaged")
    with pytest.raises(StoreDamaged):
        made.undo(merge)
    assert tree_of(made.root) == after


def test_recover_without_merges(tmp_path: Path) -> None:
    assert recover(tmp_path / "none") == []
    (tmp_path / "merges" / "empty").mkdir(parents=True)
    assert recover(tmp_path / "merges") == []


def test_two_thousand_files(tmp_path: Path) -> None:
    base: Nodes = {b"d%d/f%d" % (n % 50, n): text(f"{n}\n" * 50) for n in range(2000)}
    agent = {path: text(content + b"more\n") for path, (_, content) in base.items()}
    made = Scene(tmp_path / "ws", tmp_path / "merges", base, agent)
    outcome = made.merge()
    assert len(outcome.written) == 2000
    assert made.found() == made.expected()
    made.undo(outcome.merge)
    assert tree_of(made.root)["d0/f0"] == Entry("file", 0o644, b"0\n" * 50)
