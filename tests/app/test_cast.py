"""The terminal's record as an asciicast: the same screen, true times, nothing of the user's."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app import main
from app.agents import shell
from app.client.launch import take_lock
from app.keeper.terminal_record import SLACK, TerminalRecord, read_ring
from app.keeper.terminal_times import MAX_MARKS, STEP_S, TimeMarks, read_marks
from app.paths import Paths
from app.processes import start_time
from app.records import Process, SessionRecord, StateRecord, write_record
from app.services.cast import Cast
from tests.doubles.engines import engine, lines

if TYPE_CHECKING:
    from pathlib import Path

    from app.protocol import SessionState
    from vm.terminal.ghostty_engine import GhosttyEngine

ID = "0123456789"
SESSION = SessionRecord(ID, "named", shell(), "/w", 1000.5, "base", "key", columns=80, rows=24)

Event = tuple[float, str, str]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 5000.0
        monkeypatch.setattr(time, "time", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def read(folder: Path) -> tuple[dict[str, Any], list[Event]]:
    found = [json.loads(line) for line in Cast(folder, SESSION).lines()]
    return found[0], [(when, kind, text) for when, kind, text in found[1:]]


def played(folder: Path) -> GhosttyEngine:
    header, events = read(folder)
    terminal = engine(header["width"], header["height"])
    for _, kind, text in events:
        if kind == "r":
            columns, rows = text.split("x")
            terminal.resize(int(columns), int(rows))
        else:
            terminal.feed(text.encode())
    return terminal


def replayed(record: TerminalRecord) -> GhosttyEngine:
    """What a pane shows of the record."""
    at, prelude = record.replay()
    terminal = engine(*record.size_at(at))
    terminal.feed(prelude)
    while at < record.end:
        data = record.read(at, record.next_resize(at) - at)
        terminal.feed(data)
        at += len(data)
        terminal.resize(*record.size_at(at))
    return terminal


PARTS = st.sampled_from(
    [
        b"plain text\r\n",
        "žluť 漢字 🙂 ".encode(),
        b"\xff\xc3(\xe2\x82",
        b"\x1b[31mred\x1b[0m",
        b"\x1b[2J\x1b[H",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[5;9H\x7f\x1b[K",
        "─".encode() * 400,
    ]
)


@settings(deadline=None)
@example(output=b"\x1b[?1049h" + b"x" * 30, cuts=[35, 35], sizes=[(20, 5), (21, 5)])
@given(
    output=st.lists(PARTS, max_size=20).map(b"".join),
    cuts=st.lists(st.integers(0, 3000), max_size=5),
    sizes=st.lists(st.tuples(st.integers(20, 120), st.integers(5, 40)), max_size=5),
)
def test_the_export_shows_the_same_screen_as_the_record(
    tmp_path_factory: pytest.TempPathFactory,
    output: bytes,
    cuts: list[int],
    sizes: list[tuple[int, int]],
) -> None:
    folder = tmp_path_factory.mktemp("c")
    record = TerminalRecord(folder, 80, 24)
    at = 0
    for cut, size in zip(sorted(cuts), sizes, strict=False):
        record.append(output[at:cut])
        record.resize(*size)
        at = max(at, cut)
    record.append(output[at:] + b"end")
    wanted, got = replayed(record), played(folder)
    record.close()
    assert got.size == wanted.size
    assert lines(got) == lines(wanted)
    assert got.text(scrollback=True) == wanted.text(scrollback=True)


def test_a_record_that_lost_its_beginning_is_played_from_a_safe_place(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    record.append(b"\x1b[?1049h\x1b]2;a title\x07")
    for number in range(150):
        record.append(b"\x1b[H%06d some output that replaces itself\x1b[K" % number * 1700)
    record.close()
    header, events = read(tmp_path)
    assert events[0][2].startswith("\x1b[?1049h")
    assert all(len(text) <= 1024 for _, _, text in events)
    assert played(tmp_path).text().startswith("000149 some output")
    assert header["title"] == "named"


def test_the_oldest_bytes_of_a_record_that_is_written_on_are_left_out(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24, 1 << 20)
    record.append(b"a" * (1 << 20))
    record.append(b"b" * 10)
    assert read_ring(tmp_path) == (10, b"a" * ((1 << 20) - 10) + b"b" * 10)
    lock = take_lock(tmp_path)
    assert lock is not None
    start, data = read_ring(tmp_path)
    os.close(lock)
    record.close()
    assert (start, start + len(data)) == (10 + SLACK, (1 << 20) + 10)


def test_characters_cut_across_events_stay_whole(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    raw = ("é" * 600).encode()
    record.append(b"x" + raw[:1001])
    record.resize(90, 24)
    record.append(raw[1001:] + b"\xff" + "é".encode()[:1])
    record.close()
    _, events = read(tmp_path)
    assert "".join(text for _, kind, text in events if kind == "o") == "x" + "é" * 600 + "\ufffd"
    assert [text for _, kind, text in events if kind == "r"] == ["90x24"]


def test_times_are_when_it_was_printed(tmp_path: Path, clock: Clock) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    record.append(b"one")
    clock.now += 60
    record.append(b"two")
    clock.now += 0.1
    record.append(b"and more")
    clock.now += 100
    record.resize(100, 30)
    clock.now += 7
    record.append(b"three")
    record.close()
    header, events = read(tmp_path)
    assert header == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": 5000,
        "title": "named",
        "env": {"TERM": "xterm-256color"},
    }
    assert events == [
        (0.0, "o", "one"),
        (60.0, "o", "twoand more"),
        (160.1, "r", "100x30"),
        (167.1, "o", "three"),
    ]


def test_a_clock_that_is_set_back_turns_no_time_back(tmp_path: Path, clock: Clock) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    for step in (10, -4000, 10):
        record.append(b"some")
        clock.now += step
        record.resize(80 + step % 7, 24)
    record.close()
    times = [when for when, _, _ in read(tmp_path)[1]]
    assert times == sorted(times)
    assert times[0] == 0.0


def test_marks_are_a_ring_and_go_on_after_a_restart(tmp_path: Path) -> None:
    marks = TimeMarks(tmp_path, 0)
    for number in range(MAX_MARKS + 10):
        marks.note(number, number * STEP_S)
        marks.note(number, number * STEP_S + STEP_S / 2)
    marks.close()
    again = TimeMarks(tmp_path, MAX_MARKS + 10)
    again.note(MAX_MARKS + 10, 1e9)
    again.close()
    found = read_marks(tmp_path)
    assert (len(found), found[0].offset) == (MAX_MARKS, 11)
    assert found[-1] == (MAX_MARKS + 10, 1e9)


def test_marks_of_a_record_that_was_begun_anew_are_thrown_away(tmp_path: Path) -> None:
    marks = TimeMarks(tmp_path, 0)
    marks.note(500, 1.0)
    marks.close()
    TimeMarks(tmp_path, 0).close()
    assert read_marks(tmp_path) == []


class TestCommand:
    @pytest.fixture(params=["stopped", "lost", "running"])
    def folder(self, request: pytest.FixtureRequest) -> Path:
        folder = Paths.from_environment().session(ID)
        folder.mkdir(parents=True)
        write_record(folder / "session.json", SESSION)
        machine = Process(2**22 + 1, 1) if request.param == "lost" else None
        state: SessionState = "stopped" if request.param == "stopped" else "running"
        if request.param == "running":
            machine = Process(os.getpid(), start_time(os.getpid()))
        write_record(folder / "state.json", StateRecord(state=state, machine=machine))
        return folder

    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def test_a_file_once(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = TerminalRecord(folder, 80, 24)
        record.append(b"hello\x1b[2J\x7f")
        record.close()
        assert main.run(["logs", ID, "--cast", "--json"]) == 0
        target = tmp_path / f"{ID}.cast"
        said = json.loads(capsys.readouterr().out)
        assert said == {
            "ok": True, "session": ID, "cast": target.name, "bytes": target.stat().st_size,
        }  # fmt: skip
        assert target.stat().st_mode & 0o777 == 0o600
        assert main.run(["logs", ID, "--cast", target.name, "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["error"] == {
            "code": "exists",
            "message": f"{target.name} is there already.",
            "hint": "Replace it: add --force",
        }
        target.write_text("mine")
        assert main.run(["logs", ID, "--cast", target.name, "--force"]) == 0
        assert target.read_bytes().startswith(b'{"version": 2')
        assert [path.name for path in tmp_path.iterdir()] == [target.name]

    def test_stdout_gets_nothing_that_a_terminal_obeys(
        self, folder: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        record = TerminalRecord(folder, 80, 24)
        record.append(b"hello\x1b[2J\x7f\xc2\x9b31m")
        record.close()
        assert main.run(["logs", ID, "--cast", "-"]) == 0
        out = capfdbinary.readouterr().out
        assert all(byte == 10 or 32 <= byte < 127 for byte in out)
        assert json.loads(out.splitlines()[1])[2] == "hello\x1b[2J\x7f\x9b31m"
        assert list(tmp_path.iterdir()) == []

    def test_what_cannot_be(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert folder.is_dir()
        assert main.run(["logs", ID, "--cast"]) == 4
        assert "has printed nothing yet" in capsys.readouterr().err
        assert main.run(["logs", ID, "--cast", "-", "--json"]) == 2
        assert main.run(["logs", ID, "--force"]) == 2
        record = TerminalRecord(folder, 80, 24)
        record.append(b"hello")
        record.close()
        capsys.readouterr()
        assert main.run(["logs", ID, "--cast", str(tmp_path), "--force"]) == 1
        assert "is a folder" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Paths.from_environment().session(ID)
    folder.mkdir(parents=True)
    write_record(folder / "session.json", SESSION)
    write_record(folder / "state.json", StateRecord(state="stopped"))
    record = TerminalRecord(folder, 80, 24)
    record.append(b"hello")
    record.close()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main.run(["logs", ID, "--cast", str(tmp_path / "a.cast")]) == 1
    assert "The disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
