"""Selection, copy mode, search, links and pastes in pieces through a real worker process."""

from __future__ import annotations

import signal
import socket
import time
from typing import TYPE_CHECKING

from tests.doubles.engines import engine, ghostty
from tests.doubles.worker_link import Keeper, WorkerProcess
from vm.terminal import stream, wire, wire_view
from vm.terminal.screen import Frame, Link, Mark, MarkKind, Motion, Shape, Unit
from vm.terminal.wire import Copy, Down, Rate, Up
from vm.terminal.wire_view import Paste, Select, Selecting, pack_paste, unpack_copied
from vm.terminal.worker import PATIENCE, Worker
from vm.terminal.worker_output import RESIZE
from vm.terminal.worker_pane import WorkerPane

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = b"alpha beta\r\ngamma (delta)\r\n\x1b]8;;https://example.org/a\x1b\\link\x1b]8;;\x1b\\ end"


def shown(worker: WorkerProcess, data: bytes = PAGE) -> Keeper:
    """A live pane that shows `data`."""
    keeper = worker.open()
    keeper.output(data)
    keeper.acked(len(data))
    keeper.live()
    worker.wait(Up.STATE)
    worker.frame()
    return keeper


def until(worker: WorkerProcess, condition: Callable[[Frame], object]) -> Frame:
    """The first frame that is as wanted."""
    while True:
        frame = worker.frame()
        if condition(frame):
            return frame


def select(worker: WorkerProcess, action: Select, x: int, y: int, unit: Unit = Unit.CELL) -> None:
    worker.send(Down.SELECT, wire_view.pack_select(Selecting(action, x, y, unit, False)))


def selected(worker: WorkerProcess) -> str:
    worker.send(Down.COPY, wire.COPY.pack(5, Copy.SELECTION))
    copied = unpack_copied(worker.wait(Up.COPIED).payload)
    assert (copied.request, copied.cut) == (5, False)
    return copied.text


def test_a_selection_by_mouse_and_its_end_by_a_key() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        select(worker, Select.START, 6, 0)
        select(worker, Select.EXTEND, 4, 1)
        frame = until(worker, lambda it: it.view.selected)
        assert frame.marks == {
            0: (Mark(6, 80, MarkKind.SELECTION),),
            1: (Mark(0, 5, MarkKind.SELECTION),),
        }
        assert selected(worker) == "beta\ngamma"
        worker.send(Down.KEY, wire.pack_texts("a", "a"))
        assert keeper.typed() == b"a"
        assert until(worker, lambda it: not it.view.selected).marks == {}


def test_words_lines_and_ending_the_selection() -> None:
    with WorkerProcess() as worker:
        shown(worker)
        select(worker, Select.START, 7, 0, Unit.WORD)
        assert selected(worker) == "beta"
        select(worker, Select.START, 7, 1, Unit.LINE)
        assert selected(worker) == "gamma (delta)"
        select(worker, Select.CLEAR, 0, 0)
        assert selected(worker) == ""


def test_copy_mode_shows_a_page_that_stands_still_and_answers_queries_meanwhile() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        worker.send(Down.COPY_MODE, b"\1")
        frame = until(worker, lambda it: it.view.copying)
        assert frame.cursor is not None
        assert (frame.cursor.x, frame.cursor.y) == (7, 2)  # on the line's last character
        keeper.output(b"\r\nnew text\x1b[5n")
        assert keeper.typed() == b"\x1b[0n"
        worker.send(Down.MOVE, wire_view.pack_move(Motion.TOP))
        worker.send(Down.MARK, wire_view.BYTE.pack(Shape.LINES))
        worker.send(Down.MOVE, wire_view.pack_move(Motion.DOWN, 1))
        assert selected(worker) == "alpha beta\ngamma (delta)"
        frame = until(worker, lambda it: it.marks)
        assert 3 not in frame.rows
        worker.send(Down.COPY_MODE, b"\0")
        assert until(worker, lambda it: 3 in it.rows).rows[3].text.startswith("new text")


def test_a_search_goes_from_match_to_match() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        keeper.output(b"".join(b"\r\nrow %d of many" % i for i in range(3000)))
        keeper.acked(sum(len(b"\r\nrow %d of many" % i) for i in range(3000)))
        worker.send(Down.SEARCH, wire_view.pack_search("row 29", backwards=True))
        frame = until(worker, lambda it: it.view.match)
        assert frame.view._replace(searching=False) == (True, False, 111, 111, False)
        assert frame.cursor is not None
        assert MarkKind.CURRENT in {mark.kind for mark in frame.marks[frame.cursor.y]}
        worker.send(Down.FIND, wire_view.BYTE.pack(0))
        assert until(worker, lambda it: it.view.match == 110)
        worker.send(Down.FIND, wire_view.BYTE.pack(1))
        assert until(worker, lambda it: it.view.match == 111)
        worker.send(Down.SEARCH, wire_view.pack_search("", backwards=True))
        assert until(worker, lambda it: not it.view.matches).view.copying


def test_typing_ends_copy_mode_and_arrives() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        worker.send(Down.COPY_MODE, b"\1")
        until(worker, lambda it: it.view.copying)
        worker.send(Down.TEXT, wire.pack_texts("typed"))
        assert keeper.typed() == b"typed"
        assert until(worker, lambda it: not it.view.copying)


def test_the_wheel_moves_the_frozen_page_even_of_a_guest_that_tracks_the_mouse() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker, b"\r\n" * 100 + b"end\x1b[?1000h\x1b[?1006h")
        worker.send(Down.COPY_MODE, b"\1")
        until(worker, lambda it: it.view.copying)
        worker.send(Down.MOUSE, wire.MOUSE.pack(3, 1, 2, 0, 0))
        frame = until(worker, lambda it: not it.scrollback.at_end)
        assert frame.scrollback.offset == frame.scrollback.total - 24 - 3
        worker.send(Down.KEY, wire.pack_texts("z", "z"))
        assert keeper.typed() == b"z"  # and no report of the wheel before it


def test_links_come_with_their_rows() -> None:
    with WorkerProcess() as worker:
        keeper = worker.open()
        keeper.output(PAGE)
        keeper.live()
        frame = worker.frame()
        assert frame.rows[2].links == (Link(0, 4, "https://example.org/a"),)
        assert not frame.rows[0].links


def test_a_paste_in_pieces_has_one_pair_of_marks_and_no_end_mark_inside() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker, b"\x1b[?2004h")
        worker.send(Down.PASTE, pack_paste("one\r", Paste.BEGIN))
        worker.send(Down.PASTE, pack_paste("\ntwo\x1b[20", Paste(0)))
        keeper.output(b"\x1b[?2004l")  # the guest changes its mind in the middle
        keeper.acked(8)
        worker.send(Down.PASTE, pack_paste("1~three", Paste.END))
        worker.send(Down.KEY, wire.pack_texts("k", "k"))
        got = b""
        while not got.endswith(b"k"):
            got += keeper.typed()
        assert got == b"\x1b[200~one\ntwo [201~three\x1b[201~k"


def test_answers_to_queries_leave_room_for_the_users_keys() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        keeper.socket.settimeout(30)
        for _ in range(60):
            # 5,000 queries whose answers nobody reads: 1.2 MB
            keeper.output(b"\x1b[c" * 5000)
        keys = 0
        for _ in range(2000):
            worker.send(Down.TEXT, wire.pack_texts("k" * 1000))
            keys += 1000
        got = 0
        while got < keys:
            got += keeper.typed().count(b"k")
        assert got == keys


def test_a_flood_does_not_delay_the_users_keys() -> None:
    """Eight panes have much to print: a key is with its guest long before all of it is parsed."""
    with WorkerProcess() as worker:
        quiet = shown(worker)
        floods = [worker.open(pane) for pane in range(2, 10)]
        data = b"\x1b[38;2;9;8;7mword \x1b[m and more\r\n" * 4000
        shares: list[float] = []
        for _ in range(15):
            for keeper in floods:
                keeper.output(data)
            begin = time.monotonic()
            worker.send(Down.KEY, wire.pack_texts("k", "k"))
            assert quiet.typed() == b"k"
            half = time.monotonic()
            for keeper in floods:
                keeper.acked(len(data))
            shares.append((half - begin) / (time.monotonic() - begin))
        assert sorted(shares)[len(shares) // 2] < 0.5


def test_output_that_takes_long_lets_the_user_in_between() -> None:
    """Repeating a character 65,535 times takes eight bytes: 60 KB of it take more than a second."""
    with WorkerProcess() as worker:
        keeper = shown(worker)
        keeper.output(b"x" + b"\x1b[65535b" * 7000)
        first = keeper.expect(stream.ACK)
        assert stream.unpack(stream.COUNT, first)[0] < 30_000
        for _ in range(3):
            worker.send(Down.KEY, wire.pack_texts("k", "k"))
            assert keeper.typed() == b"k"
        worker.process.kill()


def test_a_terminal_lost_while_typing_leaves_its_descriptor_to_another() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        # stopped, so that it finds the key and the lost connection at once
        worker.process.send_signal(signal.SIGSTOP)
        keeper.socket.close()
        worker.send(Down.KEY, wire.pack_texts("k", "k"))
        worker.process.send_signal(signal.SIGCONT)
        worker.wait(Up.STATE)
        another = worker.open(2)
        another.output(b"hello")
        another.acked(5)


def test_sizes_that_come_too_fast_are_taken_now_and_then_and_the_last_one_is() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    keeper = Keeper(ours)
    pane = WorkerPane(1, theirs.detach(), engine(), Rate.FOCUSED, wire.ACTIVE)
    keeper.live()
    pane.readable()
    for width in range(30, 130):
        pane.resize(width, 24)
    now = time.monotonic()
    assert pane.due(now) <= now + RESIZE
    pane.collect(now + RESIZE)
    told = sizes(keeper)
    assert told[-1] == (129, 24)
    assert len(told) <= 4  # the one of the beginning, the first, the last; one more on a slow day
    pane.close()
    ours.close()


def sizes(keeper: Keeper) -> list[tuple[int, ...]]:
    """All sizes that the pane has told so far."""
    frames = keeper.reader.feed(keeper.socket.recv(1 << 16))
    return [
        stream.unpack(stream.SIZE, payload) for kind, payload in frames if kind == stream.RESIZE
    ]


def test_of_many_sizes_in_one_read_only_the_last_one_is_taken() -> None:
    with WorkerProcess() as worker:
        keeper = shown(worker)
        keeper.expect(stream.RESIZE)
        pairs = [wire.PAIR.pack(width, 24) for width in range(30, 130)]
        worker.link.sendall(b"".join(wire.message(Down.RESIZE, 1, pair) for pair in pairs))
        assert stream.unpack(stream.SIZE, keeper.expect(stream.RESIZE)) == (129, 24)


class SlowPane:
    """A pane whose output takes long, and that notes when the page was scrolled."""

    def __init__(self, rate: Rate, work: Callable[[], None]) -> None:
        self.rate, self._work = rate, work
        self.descriptor, self.open, self.behind, self.out = -1, False, True, b""
        self.scrolled: list[int | None] = []

    def readable(self) -> None:
        self._work()

    def scroll(self, lines: int | None) -> None:
        self.scrolled.append(lines)

    def due(self, _now: float) -> float:
        return float("inf")


def test_the_screen_is_heard_between_two_panes_and_the_focused_one_comes_first() -> None:
    ours, theirs = socket.socketpair()
    worker = Worker(theirs, ghostty())
    order: list[str] = []

    def parse_for_long() -> None:
        order.append("focused")
        ours.sendall(wire.message(Down.SCROLL, 1, wire.SIGNED.pack(-3)))
        end = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < end:
            pass

    def notice() -> None:
        order.append(f"other, scrolled by {panes[1].scrolled}")

    panes = {1: SlowPane(Rate.VISIBLE, notice), 2: SlowPane(Rate.FOCUSED, parse_for_long)}
    worker._panes = panes  # type: ignore[assignment]  # pyright: ignore  # panes that only tell their order
    assert worker._turn(set())  # pyright: ignore[reportPrivateUsage]
    assert order == ["focused", "other, scrolled by [-3]"]
    ours.close()
    theirs.close()
