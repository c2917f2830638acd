"""The pane worker as a process: its protocol both ways, its pace, its bounds, its end."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from tests.doubles.noise import noise
from tests.doubles.worker_link import Keeper, WorkerProcess
from vm.terminal import stream, wire
from vm.terminal.screen import Mode
from vm.terminal.wire import Down, PaneState, Rate, Up
from vm.terminal.wire_view import pack_paste, unpack_copied
from vm.terminal.worker import main


def key(name: str, character: str = "") -> bytes:
    return wire.pack_texts(name, character)


def started(worker: WorkerProcess, **options: object) -> Keeper:
    """A pane that is live and has shown its first page."""
    keeper = worker.open(**options)  # type: ignore[arg-type]  # options of any type
    keeper.live()
    worker.wait(Up.STATE)
    worker.frame()
    return keeper


def test_the_sandbox_is_closed_before_anything_else() -> None:
    with WorkerProcess() as worker:
        assert worker.hello.seccomp
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        assert status["Seccomp"] == "2"
        assert status["NoNewPrivs"] == "1"
        assert status["Threads"] == "1"


def test_output_is_drawn_and_acknowledged() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"hello\r\nworld")
        keeper.acked(12)
        assert worker.page(lambda shown: shown[1] == "world")[0] == "hello"


def test_keys_pastes_text_mouse_and_focus_reach_the_guest() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        worker.send(Down.KEY, key("up"))
        assert keeper.typed() == b"\x1b[A"
        keeper.output(b"\x1b[?1h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?1004h")
        keeper.acked(37)
        worker.send(Down.KEY, key("up"))
        worker.send(Down.PASTE, pack_paste("a\nb"))
        worker.send(Down.TEXT, wire.pack_texts("x\ny"))
        worker.send(Down.MOUSE, wire.MOUSE.pack(0, 1, 2, 1, 0))
        worker.send(Down.FOCUS, b"\1")
        sent = [keeper.typed() for _ in range(5)]
        assert sent == [
            b"\x1bOA", b"\x1b[200~a\nb\x1b[201~", b"x\ny", b"\x1b[<0;2;3M", b"\x1b[I",
        ]  # fmt: skip


def test_answers_of_a_replay_are_thrown_away() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open()
        keeper.output(b"\x1b[c\x1b[6n\x07\x1b]52;c;aGk=\x07\x1b]0;old\x07")
        keeper.live()
        keeper.output(b"\x1b[5n")
        assert keeper.typed() == b"\x1b[0n"
        told = worker.wait(Up.TITLE, Up.BELL, Up.CLIPBOARD)
        assert (told.kind, wire.unpack_texts(told.payload, 1, 99)) == (Up.TITLE, ("old",))
        worker.send(Down.COPY, wire.COPY.pack(1, 0))
        worker.wait(Up.COPIED)
        assert not [m for m in worker.messages if m.kind in (Up.BELL, Up.CLIPBOARD)]


def test_nothing_is_drawn_before_the_replay_ends() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open()
        keeper.output(b"half of it")
        with pytest.raises(TimeoutError):
            worker.frame(seconds=0.3)
        keeper.live()
        assert worker.page(lambda shown: shown[0] == "half of it")


def test_a_replay_without_end_is_drawn_after_a_while() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open()
        keeper.output(b"half of it")
        assert worker.page(lambda shown: shown[0] == "half of it")


def test_sizes_follow_the_keeper_and_an_active_view() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open(size=(100, 30))
        keeper.size(60, 20)
        keeper.live()
        assert stream.unpack(stream.SIZE, keeper.expect(stream.RESIZE)) == (100, 30)
        assert worker.frame().columns == 100
        worker.send(Down.RESIZE, wire.PAIR.pack(3, 0))
        assert stream.unpack(stream.SIZE, keeper.expect(stream.RESIZE)) == (20, 5)
        keeper.size(90, 25)
        while worker.frame().columns != 90:
            pass


@pytest.mark.parametrize(("careful", "column"), [(False, 39), (True, 59)])
def test_a_replay_after_a_crash_takes_no_size_but_the_last(careful: bool, column: int) -> None:
    with WorkerProcess() as worker:
        keeper = worker.open(careful=careful)
        keeper.size(40, 10)
        keeper.output(b"\x1b[1;60Hx")
        keeper.size(80, 24)
        keeper.live()
        frame = worker.frame()
        assert (frame.columns, frame.rows[0].text.index("x")) == (80, column)


def test_a_watcher_takes_the_guests_size_when_a_careful_replay_is_over() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open(careful=True)
        keeper.socket.sendall(stream.frame(stream.HOLD, stream.HOLDER.pack(0, 2)))
        keeper.size(40, 10)
        keeper.output(b"abc")
        keeper.live()
        assert worker.frame().columns == 40


@pytest.mark.parametrize("held", [False, True])
def test_a_pane_that_held_the_terminal_takes_it_at_once(held: bool) -> None:
    with WorkerProcess() as worker:
        keeper = worker.open(held=held, named=True)
        worker.send(Down.NAME, wire.NAME.pack(5, 0))
        wish = bytes([stream.TAKE if held else stream.WILLING])
        keeper.expect(stream.NAME)
        assert keeper.frames == [] or keeper.frames[0] == (stream.HOLD, wish)
        assert keeper.expect(stream.HOLD) == wish


def test_a_pane_that_will_be_named_is_not_live_before_the_keeper_counted() -> None:
    """The screen may be held up between the two messages; what it sends again must not be early."""
    with WorkerProcess() as worker:
        keeper = worker.open(named=True)
        keeper.socket.sendall(stream.frame(stream.PROGRAM_FRAME, stream.PROGRAM.pack(1)))
        keeper.live()
        assert worker.frame().columns == 80
        assert not [it for it in worker.messages if it.kind in (Up.STATE, Up.PASSED)]
        worker.send(Down.NAME, wire.NAME.pack(5, 0))
        keeper.expect(stream.NAME)
        keeper.socket.sendall(stream.frame(stream.TAKEN, stream.PASSED.pack(3, 0)))
        assert wire.exactly(wire.PASSED, worker.wait(Up.PASSED, Up.STATE).payload) == (3,)
        worker.wait(Up.STATE)


@pytest.mark.parametrize("late", [False, True], ids=("named at once", "named after the replay"))
def test_what_a_keeper_took_is_told_though_it_does_not_count(late: bool) -> None:
    """A long paste waits for that word after each piece."""
    with WorkerProcess() as worker:
        keeper = worker.open(named=True)
        if late:
            keeper.live()
            worker.wait(Up.STATE)
        worker.send(Down.NAME, wire.NAME.pack(5, 0))
        keeper.expect(stream.NAME)
        if not late:
            keeper.live()
            worker.wait(Up.STATE)
        worker.send(Down.KEY, key("x", "x"))
        assert keeper.typed() == b"x"
        while wire.exactly(wire.PASSED, worker.wait(Up.PASSED).payload) != (1,):
            continue


def test_an_inactive_view_never_resizes_the_guest() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open(size=(100, 30), active=False)
        keeper.size(60, 20)
        keeper.live()
        assert worker.frame().columns == 60
        worker.send(Down.RESIZE, wire.PAIR.pack(70, 20))
        worker.send(Down.KEY, key("x", "x"))
        keeper.typed()
        assert [kind for kind, _ in keeper.frames] == []
        worker.send(Down.ACTIVE, b"\1")
        assert stream.unpack(stream.SIZE, keeper.expect(stream.RESIZE)) == (70, 20)


def test_no_frame_is_sent_before_the_last_is_acknowledged() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"one")
        message = worker.wait(Up.FRAME)
        keeper.output(b"two")
        keeper.acked(6)
        with pytest.raises(TimeoutError):
            worker.wait(Up.FRAME, seconds=0.3)
        worker.send(Down.ACK, wire.NUMBER.pack(12345))
        with pytest.raises(TimeoutError):
            worker.wait(Up.FRAME, seconds=0.2)
        worker.send(Down.ACK, message.payload[:4])
        assert worker.page(lambda shown: shown[0] == "onetwo")


def test_a_hidden_pane_is_parsed_and_not_drawn() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        worker.send(Down.RATE, bytes([Rate.HIDDEN]))
        keeper.output(b"unseen\x1b]0;title\x07")
        keeper.acked(16)
        worker.wait(Up.TITLE)
        with pytest.raises(TimeoutError):
            worker.wait(Up.FRAME, seconds=0.3)
        worker.send(Down.RATE, bytes([Rate.VISIBLE]))
        assert worker.page(lambda shown: shown[0] == "unseen")


def test_frames_keep_the_pace_of_their_rate() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker, rate=Rate.VISIBLE)
        begin = time.monotonic()
        for step in range(6):
            keeper.output(b"%d" % step)
            worker.frame()
        assert time.monotonic() - begin >= 5 / 12 - 0.05


def test_a_synchronised_update_is_drawn_whole_or_after_its_time() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"\x1b[?2026hhalf")
        begin = time.monotonic()
        assert worker.page(lambda shown: shown[0] == "half")
        assert time.monotonic() - begin >= 0.1
        keeper.output(b" more\x1b[?2026l")
        assert worker.page(lambda shown: shown[0] == "half more")


def test_scrolling_and_coming_back_by_typing() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"".join(b"line %d\r\n" % i for i in range(100)))
        worker.page(lambda shown: shown[0] == "line 77")
        worker.send(Down.SCROLL, wire.SIGNED.pack(-10))
        assert worker.page(lambda shown: shown[0] == "line 67")
        worker.send(Down.MOUSE, wire.MOUSE.pack(3, 0, 0, 0, 0))
        assert worker.page(lambda shown: shown[0] == "line 64")
        worker.send(Down.KEY, key("x", "x"))
        assert keeper.typed() == b"x"
        assert worker.page(lambda shown: shown[0] == "line 77")


def test_modes_reach_the_view() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"\x1b[?1049h\x1b[?1003h\x1b[?2004h")
        frame = worker.frame()
        assert frame.modes & (Mode.ALTERNATE | Mode.MOUSE_ANY | Mode.BRACKETED_PASTE)


def test_floods_of_titles_and_bells_are_merged() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        worker.send(Down.RATE, bytes([Rate.HIDDEN]))
        flood = b"".join(b"\x1b]0;title %d\x07\x07" % i for i in range(20_000))
        keeper.output(flood + b"\x1b]0;last\x07")
        keeper.acked(len(flood) + 9)
        titles: list[str] = []
        while not titles or titles[-1] != "last":
            titles.append(wire.unpack_texts(worker.wait(Up.TITLE).payload, 1, 99)[0])
        assert len(titles) < 50


def test_panes_are_apart() -> None:
    with WorkerProcess() as worker:
        first, second = started(worker, pane=1), started(worker, pane=2)
        first.output(b"first")
        assert worker.page(lambda shown: shown[0] == "first")
        second.output(b"second")
        assert worker.page(lambda shown: shown[0] == "second")
        worker.send(Down.CLOSE, pane=1)
        with pytest.raises(EOFError):
            first.typed()
        worker.send(Down.KEY, key("x", "x"), pane=1)
        worker.send(Down.KEY, key("y", "y"), pane=2)
        assert second.typed() == b"y"


def state_of(message: wire.Message) -> tuple[int, int, str]:
    state, status = wire.STATE.unpack(message.payload[: wire.STATE.size])
    return state, status, wire.unpack_texts(message.payload[wire.STATE.size :], 1, 999)[0]


def test_the_end_of_the_terminal_and_a_new_one() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.socket.sendall(stream.frame(stream.EXITED, stream.STATUS.pack(-9)))
        assert state_of(worker.wait(Up.STATE)) == (PaneState.ENDED, -9, "")
        keeper.output(b"resumed")
        assert state_of(worker.wait(Up.STATE)) == (PaneState.LIVE, 0, "")
        assert worker.page(lambda shown: shown[0] == "resumed")


def test_a_keeper_that_goes_away_is_told() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"stays")
        worker.page(lambda shown: shown[0] == "stays")
        keeper.socket.close()
        state, _, why = state_of(worker.wait(Up.STATE))
        assert state == PaneState.LOST
        assert why
        worker.open().live()
        assert state_of(worker.wait(Up.STATE))[0] == PaneState.LIVE


@pytest.mark.parametrize(
    "nonsense",
    [struct.pack("<BI", stream.OUTPUT, 1 << 30), stream.frame(stream.SIZE_FRAME, b"abc"),
     stream.frame(stream.EXITED, b"")],
)  # fmt: skip
def test_a_keeper_that_speaks_nonsense_is_left(nonsense: bytes) -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.socket.sendall(nonsense)
        assert state_of(worker.wait(Up.STATE))[0] == PaneState.LOST


def test_a_guest_that_does_not_read_bounds_what_waits() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        for _ in range(8):
            worker.send(Down.PASTE, pack_paste("x" * 1_000_000))
        worker.wait(Up.BELL)
        got = b""
        while not got.endswith(b"x\x1b[A"):
            # what waited arrives whole; what was too much did not wait
            if len(got) > 1_000_000 and not got.endswith(b"\x1b[A"):
                worker.send(Down.KEY, key("up"))
            got = (got + keeper.typed())[-2_000_000:]


def test_bytes_that_are_no_text_pass_as_they_are() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"\xff\xfe\xc3(\xf0\x9f\x98" + b"\x1b]0;\xff\x07ok")
        assert "ok" in worker.page(lambda shown: "ok" in shown[0])[0]


def test_a_screen_that_stops_reading_costs_no_memory_without_end() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.socket.settimeout(30)
        row = b"\x1b[38;2;%d;2;3mcoloured\x1b[m\r\n"
        for i in range(200):
            keeper.output(b"".join(row % ((i + j) % 256) for j in range(1000)))
        keeper.acked(sum(len(row % ((i + j) % 256)) for i in range(200) for j in range(1000)))
        resident = int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]) * 4096
        assert resident < 120 << 20


def test_random_output_and_resizes_do_not_end_the_worker() -> None:
    seed = random.Random(20)
    with WorkerProcess() as worker:
        keeper = started(worker)
        for _ in range(150):
            data = noise(seed)
            keeper.output(data)
            keeper.acked(len(data))
            size = wire.PAIR.pack(seed.randrange(0, 200), seed.randrange(0, 60))
            worker.send(Down.RESIZE, size)
            worker.send(Down.SCROLL, wire.SIGNED.pack(seed.randrange(-20, 20)))
        keeper.output(b"\x18\x1bcstill here")
        assert worker.page(lambda shown: shown[0] == "still here")


def test_copying_text_of_the_screen_and_of_all_rows() -> None:
    with WorkerProcess() as worker:
        keeper = started(worker)
        keeper.output(b"".join(b"line %d\r\n" % i for i in range(50)))
        keeper.acked(sum(len(b"line %d\r\n" % i) for i in range(50)))

        def copied(what: int) -> str:
            worker.send(Down.COPY, wire.COPY.pack(7, what))
            payload = worker.wait(Up.COPIED).payload
            found = unpack_copied(payload)
            assert (found.request, found.cut) == (7, False)
            return found.text

        assert copied(0).splitlines()[0] == "line 27"
        assert copied(1).splitlines()[0] == "line 0"


@pytest.mark.parametrize(
    "message",
    [
        wire.message(99, 1),
        wire.message(Down.RESIZE, 1, b"\0"),
        wire.message(Down.KEY, 1, b"\xff\xff\xff\xff"),
        wire.message(Down.RATE, 1, b"\x09"),
        wire.message(Down.PALETTE, 1, b""),
        wire.message(Down.MOUSE, 1, wire.MOUSE.pack(9, 0, 0, 0, 0)),
        wire.message(Down.OPEN, 2, b""),
        struct.pack("<IHB", 1 << 31, 0, 0),
    ],
)
def test_a_message_that_cannot_be_read_ends_the_worker_with_a_word(message: bytes) -> None:
    with WorkerProcess() as worker:
        started(worker)
        worker.link.sendall(message)
        code, text, _ = wire.unpack_texts(worker.wait(Up.FATAL).payload, 3, 4096)
        assert code == "pane-wire"
        assert text
        assert worker.process.wait(20) == 1


def test_it_ends_with_its_screen() -> None:
    with WorkerProcess() as worker:
        started(worker)
        worker.link.shutdown(socket.SHUT_WR)
        assert worker.process.wait(20) == 0


def test_a_crash_is_seen_as_the_end_of_the_link() -> None:
    with WorkerProcess() as worker:
        started(worker)
        os.kill(worker.process.pid, signal.SIGSEGV)
        with pytest.raises((EOFError, ConnectionResetError)):
            worker.wait(Up.STATE)


def test_a_wrong_call_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["x"]) == 2
    assert "number" in capsys.readouterr().err
