"""The work of `snapshot.capture.take_snapshot`: one walk, one stream, one list."""

from __future__ import annotations

import errno
import os
import shlex
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from snapshot.capture_report import (
    IMAGE,
    MANIFEST,
    REPORT,
    CaptureOptions,
    SnapshotReport,
    bind_rules,
    save_report,
)
from snapshot.display import printable
from snapshot.errors import DISK_FULL, SnapshotError, WorkspaceRefused
from snapshot.file_reader import PERMISSIONS, TRIES, FileReader, Skip, Torn
from snapshot.git_capture import GitCapture
from snapshot.ignore import (
    MAX_IGNORE_BYTES,
    GitRules,
    IgnoreRules,
    PatternFile,
    UserRules,
    secret_or_excluded,
)
from snapshot.image_writer import ImageWriter, no_room
from snapshot.manifest import Entry, Manifest
from snapshot.patterns import IGNORE_FILES
from snapshot.tarstream import header
from snapshot.temp_names import is_temp_name
from snapshot.walk import FOLDER_FLAGS, Folder, read_regular, refused, walk

if TYPE_CHECKING:
    from pathlib import Path

_GITIGNORE: Final = ".gitignore"
_LINK_MODE: Final = 0o777


def run(workspace: Path, dest: Path, options: CaptureOptions) -> SnapshotReport:
    """Do what `take_snapshot` promises."""
    real, dest = _checked(workspace, options), dest.resolve()
    try:
        report = _settled(real, dest, options)
        report.manifest.save(dest / MANIFEST)
        save_report(dest, report)
    except BaseException as error:
        for name in (IMAGE, MANIFEST, REPORT):
            (dest / name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_written(dest, error) from error
        raise
    return report


def _not_written(dest: Path, error: OSError) -> SnapshotError:
    """Say why our own folder did not take the snapshot."""
    if error.errno in DISK_FULL:
        return no_room(dest)
    return SnapshotError(
        f"The snapshot cannot be written into {dest}: {error.strerror}.",
        f"Look who may write there: ls -ld {shlex.quote(str(dest))}",
    )


def _settled(workspace: Path, dest: Path, options: CaptureOptions) -> SnapshotReport:
    """Capture, and begin anew when a large file changed after its first bytes were written."""
    moving: set[bytes] = set()
    for _ in range(TRIES):
        try:
            return _capture(workspace, dest, options, moving)
        except Torn as torn:
            moving.add(torn.path)
    return _capture(workspace, dest, options, None)


def _checked(workspace: Path, options: CaptureOptions) -> Path:
    """Give the workspace's real path. Raises WorkspaceRefused for what cannot be one."""
    try:
        real = workspace.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise WorkspaceRefused(
            f"The workspace {workspace} does not exist.",
            "Name an existing folder: cloche run AGENT --workspace DIR",
        ) from error
    if not real.is_dir() or real == real.parent:
        raise WorkspaceRefused(
            f"The workspace {real} is not a folder that can be captured.",
            "Name a project's folder: cloche run AGENT --workspace DIR",
        )
    for folder in options.own_folders:
        if real.is_relative_to(folder.resolve()):
            raise WorkspaceRefused(
                f"The workspace {real} lies inside Cloche's own folder {folder}.",
                "Name a project's folder: cloche run AGENT --workspace DIR",
            )
    return real


def _capture(
    workspace: Path, dest: Path, options: CaptureOptions, moving: set[bytes] | None
) -> SnapshotReport:
    started = time.perf_counter()
    with ExitStack() as stack:
        try:
            root = os.open(workspace, FOLDER_FLAGS)
        except OSError as error:
            raise refused(b"", error) from error
        stack.callback(os.close, root)
        mode = os.fstat(root).st_mode & PERMISSIONS | 0o700
        writer = stack.enter_context(ImageWriter(dest / IMAGE, mode))
        reader = FileReader(writer, dest, options.max_file_bytes, moving)
        git = stack.enter_context(GitCapture(os.fsencode(workspace), options))
        task = _Capture(root, writer, reader, git, options, dest)
        for folder in walk(root, task.enter):
            task.folder(folder)
        task.add_git()
        writer.flush()
        git.scan_history()
        writer.finish()
        report = task.report()
    return replace(report, seconds=time.perf_counter() - started)


def _identities(folders: tuple[Path, ...]) -> set[tuple[int, int]]:
    """Give device and inode of those folders that exist."""
    found = [os.stat(folder) for folder in folders if folder.is_dir()]
    return {(item.st_dev, item.st_ino) for item in found}


class _Capture:
    """What one walk gathers."""

    def __init__(
        self,
        root: int,
        writer: ImageWriter,
        reader: FileReader,
        git: GitCapture,
        options: CaptureOptions,
        dest: Path,
    ) -> None:
        self._writer, self._reader, self._git = writer, reader, git
        self._own = _identities((*options.own_folders, dest))
        self._patterns = PatternFile()
        for name in IGNORE_FILES:
            self._patterns.add_bytes(_ignore_file(root, name), name)
        self._patterns.add(options.exclude, "exclude")
        self._user = UserRules(self._patterns.lines)
        self._git_rules = GitRules()
        self._rules = IgnoreRules(self._user, self._git_rules, (), git.tracks, git.holds_tracked)
        self._entries: list[tuple[bytes, Entry]] = []
        self._enter: list[str] = []
        self._weighty: set[bytes] = set()
        self._left_out: dict[str, list[bytes]] = {"secret": [], "heavy": [], "excluded": []}
        self._skipped: list[tuple[bytes, str]] = []
        self._escaping: list[bytes] = []

    def enter(self, folder: Folder) -> list[str]:
        """Name the sub-folders of the folder that was handled last."""
        del folder
        return self._enter

    def folder(self, folder: Folder) -> None:
        """Handle everything in one folder but the content of its sub-folders."""
        if folder.path:
            self._add_folder(folder)
        self._enter = []
        names = {item.name for item in folder.entries}
        if ".git" in names:
            self._git.open(folder.path, folder.descriptor, self._git_rules)
        if _GITIGNORE in names:
            self._read_gitignore(folder)
        for item in folder.entries:
            if item.name != ".git":
                self._item(folder, item)

    def _item(self, folder: Folder, item: os.DirEntry[str]) -> None:
        path = folder.child(item.name)
        is_dir = item.is_dir(follow_symlinks=False)
        if self._leaves_out(folder, item, path, is_dir):
            return
        if is_dir:
            self._enter.append(item.name)
        elif item.is_file(follow_symlinks=False):
            self._file(folder.descriptor, item.name, path)
        elif item.is_symlink():
            self._link(folder.descriptor, item.name, path)
        else:
            self._skipped.append((path, "special file"))

    def _leaves_out(
        self, folder: Folder, item: os.DirEntry[str], path: bytes, is_dir: bool
    ) -> bool:
        """Judge one path and note it when the agent does not get it."""
        if is_dir and self._own and self._is_own(item):
            return True
        if is_temp_name(os.fsencode(item.name)):
            self._skipped.append((path, "left by an interrupted merge"))
            return True
        verdict = secret_or_excluded(self._user, path, is_dir)
        if verdict == "heavy" and self._git.holds_tracked(path):
            self._weighty.add(path)  # in there, only what git ignores is left out
            verdict = "keep"
        elif verdict == "keep" and folder.path in self._weighty:
            known = self._git.tracks(path) or self._git.holds_tracked(path)
            if not known and self._rules.ignored(path, is_dir):
                verdict = "heavy"
            elif is_dir:
                self._weighty.add(path)
        if verdict == "keep":
            return False
        self._left_out[verdict].append(path)
        return True

    def _is_own(self, item: os.DirEntry[str]) -> bool:
        if all(item.inode() != inode for _, inode in self._own):
            return False
        found = item.stat(follow_symlinks=False)
        return (found.st_dev, found.st_ino) in self._own

    def _add_folder(self, folder: Folder) -> None:
        mode, mtime_ns = folder.stat.st_mode & PERMISSIONS, folder.stat.st_mtime_ns
        self._writer.write(header(folder.path, "dir", mode, 0, mtime_ns, b""))
        tracked = self._git.tracks(folder.path)  # a submodule
        self._entries.append((folder.path, Entry("dir", mode, 0, mtime_ns, "", b"", tracked)))

    def _file(self, directory: int, name: str, path: bytes) -> None:
        try:
            entry, found = self._reader.file(directory, name, path)
        except Skip as skip:
            if str(skip):
                self._skipped.append((path, str(skip)))
            return
        if self._git.tracks(path):
            self._git.saw(path, found)
            entry = msgspec.structs.replace(entry, tracked=True)
        self._entries.append((path, entry))

    def _link(self, directory: int, name: str, path: bytes) -> None:
        try:
            found = os.lstat(name, dir_fd=directory)
            target = os.readlink(os.fsencode(name), dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINVAL):  # gone, or no link any more
                return
            raise refused(path, error) from error
        self._writer.write(header(path, "link", _LINK_MODE, 0, found.st_mtime_ns, target))
        tracked = self._git.tracks(path)
        if tracked:
            self._git.saw(path, found)
        entry = Entry("link", _LINK_MODE, 0, found.st_mtime_ns, "", target, tracked)
        self._entries.append((path, entry))
        if _escapes(path, target):
            self._escaping.append(path)

    def _read_gitignore(self, folder: Folder) -> None:
        found = PatternFile()
        source = printable(folder.child(_GITIGNORE))
        found.add_bytes(_ignore_file(folder.descriptor, _GITIGNORE), source)
        self._git_rules.add(folder.path, found.lines)

    def add_git(self) -> None:
        """Put every rebuilt `.git` into the image."""
        left_out = {path for paths in self._left_out.values() for path in paths}
        left_out.update(path for path, _ in self._skipped)
        for item in self._git.members(left_out):
            if item.kind == "dir":
                self._writer.write(header(item.path, "dir", item.mode, 0, self._git.now_ns, b""))
                entry = Entry("dir", item.mode, 0, self._git.now_ns)
            elif item.kind == "data":
                entry = self._reader.data(item.path, item.data, item.mode, self._git.now_ns, False)
            else:
                directory = item.directory.descriptor if item.directory else -1
                try:
                    entry, _ = self._reader.file(directory, item.name, item.path, bounded=False)
                except Skip:  # repacked meanwhile
                    continue
            self._entries.append((item.path, entry))

    def report(self) -> SnapshotReport:
        """Sum up; `seconds` is the caller's to set."""
        manifest = Manifest(self._entries)
        withheld = [path for paths in self._left_out.values() for path in paths]
        rules = bind_rules(IgnoreRules(self._user, self._git_rules, withheld), manifest)
        files = [entry.size for _, entry in self._entries if entry.kind == "file"]
        unstable = [
            f"'{printable(path)}' was being written while it was captured."
            for path in self._reader.unstable
        ]
        return SnapshotReport(
            manifest=manifest,
            rules=rules,
            withheld=tuple(self._left_out["secret"]),
            heavy=tuple(self._left_out["heavy"]),
            excluded=tuple(self._left_out["excluded"]),
            tracked_withheld=self._git.tracked_withheld,
            history=self._git.history,
            history_cut=self._git.history_cut,
            skipped=tuple(self._skipped),
            escaping_links=tuple(self._escaping),
            notices=(*self._patterns.notices, *self._git.notices(), *unstable),
            files=len(files),
            bytes=sum(files),
            hash_seconds=self._reader.hash_seconds,
        )


def _ignore_file(directory: int, name: str) -> bytes:
    """Read an ignore file; what is no readable regular file counts as empty."""
    found = read_regular(directory, name, MAX_IGNORE_BYTES)
    return b"" if found is None else found[0]


def _escapes(path: bytes, target: bytes) -> bool:
    """Whether a link's text leads out of the workspace."""
    if target.startswith(b"/"):
        return True
    joined = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return joined == b".." or joined.startswith(b"../")
