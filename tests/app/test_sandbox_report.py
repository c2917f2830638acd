"""What a sandbox tells at its end: its status, the time it was given, and what was printed."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.client.programs import Ended
from app.client.sandboxes import logs_folder
from app.paths import Paths
from app.services import sandbox_logs
from app.services.sandbox import CopyFailed, SandboxReport, time_left
from app.services.sandbox_logs import HEAD, Captured

if TYPE_CHECKING:
    from pathlib import Path

FAILED = CopyFailed("/a", "b", "not-found", "There is none.", "Look.")
WAYS = (
    (Ended(0), 0, None, 0),
    (Ended(42), 42, None, 42),
    (Ended(128), 128, None, 128),
    (Ended(137), None, 9, 137),
    (Ended(143), None, 15, 143),
    (Ended(193), 193, None, 193),
    (Ended(255), 255, None, 255),
    (Ended(125, timed_out=True), None, 9, 124),
)


@pytest.mark.parametrize(("ended", "code", "signal", "status"), WAYS)
def test_how_a_command_ended(ended: Ended, code: int, signal: int, status: int) -> None:
    report = SandboxReport()
    report.take(ended)
    assert (report.exit_code, report.signal, report.status) == (code, signal, status)
    report.copies_failed.append(FAILED)
    assert report.status == (status or 125), "a failed copy hides no end of the command"


def test_the_names_that_programs_know() -> None:
    names = {field.name for field in fields(SandboxReport)}
    wanted = "exit_code signal timed_out exec_ms total_ms boot_ms path stage_id copied"
    assert names >= set(wanted.split())


def test_the_command_gets_what_the_start_left() -> None:
    assert time_left(1.0, 0.4) == pytest.approx(0.6)
    assert time_left(0.001, 0.009) == 0.001


async def take(captured: Captured, data: bytes, piece: int) -> None:
    for start in range(0, len(data), piece):
        await captured.write(data[start : start + piece])
    captured.close()


@given(
    size=st.integers(0, 3 * HEAD),
    piece=st.integers(1000, HEAD * 2),
    cap=st.integers(HEAD, 4 * HEAD),
)
async def test_the_head_is_the_beginning_and_the_log_is_all(
    tmp_path_factory: pytest.TempPathFactory, size: int, piece: int, cap: int
) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    path = tmp_path_factory.mktemp("logs") / "runs" / "one" / "stdout.log"
    captured = Captured(path, cap)
    await take(captured, data, piece)
    assert captured.head.encode() == data[:HEAD]
    assert (captured.total, captured.truncated) == (size, size > HEAD)
    assert captured.log == (str(path) if size > HEAD else None)
    assert path.exists() == (size > HEAD)
    if size > HEAD:
        note = f"\n[cloche: the log ends here; {size - cap} more bytes were printed]\n".encode()
        assert path.read_bytes() == (data if size <= cap else data[:cap] + note)
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_log_that_cannot_be_written_loses_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "stdout.log").symlink_to("/etc/passwd")
    captured = Captured(tmp_path / "runs" / "one" / "stdout.log")
    await take(captured, b"x" * (HEAD + 1), 1000)
    assert (captured.total, len(captured.head), captured.log) == (HEAD + 1, HEAD, None)
    assert captured.problem.startswith("The log could not be written")


async def test_a_log_without_a_report_goes(tmp_path: Path) -> None:
    kept = [Captured(tmp_path / "runs" / "one" / f"{name}.log") for name in ("out", "err")]
    for one in kept:
        await one.write(b"x" * (HEAD + 1))
    for one in (*kept, Captured(tmp_path / "runs" / "one" / "none.log")):
        one.discard()
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_newest_logs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_logs, "KEPT_BYTES", 10_000)
    paths = Paths.from_environment()
    runs = [f"{number:010}" for number in range(25)]
    for run in (*runs, "mine"):
        folder = logs_folder(paths, run)
        folder.mkdir(parents=True)
        (folder / "stdout.log").write_bytes(b"x" * 900)
    folder = logs_folder(paths, runs[0]).parent
    now = folder.stat().st_mtime
    sandbox_logs.prune(paths, now)
    assert len(os.listdir(folder)) == 26, "all are too young"
    sandbox_logs.prune(paths, now + 3600)
    kept = sorted(os.listdir(folder))
    assert kept == sorted([*runs[-11:], "mine"]), "11 are 9,900 bytes; what is not ours stays"
    monkeypatch.setattr(sandbox_logs, "KEPT_RUNS", 3)
    sandbox_logs.prune(paths, now + 3600)
    assert len(os.listdir(folder)) == 4
