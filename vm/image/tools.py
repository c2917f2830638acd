"""Programs of the host: found, run with a bound, and their failures told in one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from typing import TYPE_CHECKING

from vm.errors import BuildFailed, HostLacks, VMError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path

PACKAGES = {
    "apt-config": "apt",
    "as": "binutils",
    "lz4": "lz4",
    "mmdebstrap": "mmdebstrap",
    "mksquashfs": "squashfs-tools",
    "mkfs.ext4": "e2fsprogs",
    "musl-gcc": "musl-tools",
    "skopeo": "skopeo",
    "newuidmap": "uidmap",
    "zstd": "zstd",
}
"""The package (Debian and Ubuntu name) that brings each program."""

_TAIL_LINES = 24
_CLEAN_UP_SECONDS = 15.0
_UNPACK_SECONDS = 120.0


def require(*programs: str) -> None:
    """Raise HostLacks, naming every missing program and the one command that brings them all."""
    missing = [program for program in programs if find(program) is None]
    if not missing:
        return
    packages = sorted({PACKAGES.get(program, program) for program in missing})
    verb = "is" if len(missing) == 1 else "are"
    raise HostLacks(
        f"{', '.join(missing)} {verb} not installed, and making an image needs it.",
        f"sudo apt-get install {' '.join(packages)}",
    )


def find(program: str) -> str | None:
    """Return the path of a program; sbin is looked through even where PATH leaves it out."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(program, path=f"{path}:/usr/local/sbin:/usr/sbin:/sbin")


@contextlib.contextmanager
def one_sentence(what: str) -> Generator[None]:
    """Turn a failing file operation into a VMError that says `what` and why."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise VMError(
                f"The disk is full: {what} needs more room.",
                f"Free about 2 GiB under {error.filename or 'the store'}, then run it again.",
            ) from error
        raise VMError(f"{what} failed: {error}.") from error


def spawn(
    argv: Sequence[str],
    *,
    stdin: int | None = None,
    env: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, its outputs on pipes.

    `env` adds to our own environment, `environment` takes its place.
    """
    program = find(argv[0])
    if program is None:
        require(argv[0])
    return subprocess.Popen(
        [program or argv[0], *argv[1:]],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment or {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
        cwd=cwd,
        start_new_session=True,
    )


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child with all that it started, and reap it; it gets a moment to clean up after it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_CLEAN_UP_SECONDS)
            return
    child.wait()


def _telling(lines: Iterable[str]) -> list[str]:
    """Return the three lines that say most: apt's and mmdebstrap's errors, else the last ones."""
    errors = [line for line in lines if line.startswith("E: ")]
    return errors[:3] or list(lines)[-3:]


def _way_out(lines: Iterable[str]) -> str:
    """Return what mends the troubles that are known by what was said; empty: the usual advice."""
    said = "".join(lines)
    if "No space left on device" in said:
        return "Free about 2 GiB on the disk, then run it again."
    if "unable to pick chroot mode" in said:  # mmdebstrap, without root and user namespaces
        return "You may make no user namespaces here; what mends that says: cloche doctor"
    return ""


class Watch:
    """Reads a child's messages in a thread, keeps the last ones, and bounds its time."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        seconds: float,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self._child = child
        self._on_line = on_line
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._late = threading.Event()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._timer.start()
        self._reader.start()

    def finish(self, what: str) -> None:
        """Wait for the child's end; raise BuildFailed with its last line when it failed."""
        status = self._child.wait()
        self.close()
        if status == 0:
            return
        said = "; ".join(_telling(self._tail))
        if self._late.is_set():
            raise BuildFailed(f"{what} took too long and was ended. It said: {said}")
        raise BuildFailed(f"{what} failed (status {status}). It said: {said}", _way_out(self._tail))

    @property
    def tail(self) -> list[str]:
        """The last lines that the child said; complete after `close`."""
        return list(self._tail)

    def close(self) -> None:
        """End the child if it still runs, and let go of its pipes and of the timer."""
        self._timer.cancel()
        if self._child.poll() is None:
            end(self._child)
        self._reader.join()
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()

    def _expire(self) -> None:
        self._late.set()
        end(self._child)

    def _read(self) -> None:
        assert self._child.stderr is not None
        for raw in self._child.stderr:
            line = raw.decode(errors="replace").rstrip()
            if self._on_line is not None:
                self._on_line(line)
            if line:
                self._tail.append(line)


def run(argv: Sequence[str], *, what: str, seconds: float) -> bytes:
    """Run a program to its end and return what it printed; BuildFailed when it fails."""
    child = spawn(argv)
    assert child.stdout is not None
    watch = Watch(child, seconds)
    try:
        printed = child.stdout.read()
        watch.finish(what)
    finally:
        watch.close()
    return printed


def unpacked(argv: Sequence[str], data: bytes, status: Sequence[int] = (0,)) -> bytes:
    """Return what a decompressor makes of `data`.

    It must end with one of `status`. Raises HostLacks without it, BuildFailed when it fails.
    """
    program = find(argv[0])
    if program is None:
        require(argv[0])
    try:
        done = subprocess.run(
            [program or argv[0], *argv[1:]],
            input=data,
            capture_output=True,
            timeout=_UNPACK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildFailed(f"{argv[0]} took too long and was ended.") from error
    if done.returncode not in status:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise BuildFailed(f"{argv[0]} failed (status {done.returncode}). It said: {said}")
    return done.stdout


def sync_file(path: Path) -> None:
    """Bring a file's content to the disk before it is renamed into place."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
