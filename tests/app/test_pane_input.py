"""The queue of a pane's input: order, bounds, sending again, giving up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.ui.pane_input import MAX_KEYS, MAX_PASTE, PIECE, WINDOW, Dropped, InputQueue, Message
from vm.terminal import stream, wire, wire_view
from vm.terminal.screen import MouseAction
from vm.terminal.wire import Down
from vm.terminal.wire_view import Paste


class Guest:
    """Takes what a queue sends, as worker and keeper do, and tells it."""

    def __init__(self, queue: InputQueue) -> None:
        self.queue = queue
        self.on_way: list[Message] = []
        self.got = ""
        self.taken = 0
        self.begun = self.ended = 0

    def pump(self) -> None:
        self.on_way += self.queue.ready()

    def take(self, count: int, *, tells: bool = True) -> None:
        """Read messages and say so."""
        for message in self.on_way[:count]:
            self._read(message)
        self.taken += len(self.on_way[:count])
        del self.on_way[:count]
        if tells:
            assert self.queue.taken(self.taken)

    def take_all(self) -> None:
        self.pump()
        while self.on_way:
            self.take(len(self.on_way))
            self.pump()

    def replace_worker(self) -> None:
        """What was not passed on is gone with the worker; what was is told to the next one."""
        self.on_way.clear()
        self.queue.again()
        assert self.queue.taken(self.taken)

    def _read(self, message: Message) -> None:
        if message.kind is Down.PASTE:
            text, flags = wire_view.unpack_paste(message.payload)
            self.begun += bool(flags & Paste.BEGIN)
            self.ended += bool(flags & Paste.END)
            self.got += text
        else:
            self.got += wire.unpack_texts(message.payload, 1, 1 << 20)[0]


def key(text: str) -> bytes:
    return wire.pack_texts(text)


def repeated(text: str, count: int) -> str:
    return text * count


counts = st.integers(0, 9)
steps = st.one_of(
    st.tuples(st.just("key"), st.text(max_size=3)),
    st.tuples(st.just("paste"), st.builds(repeated, st.text(max_size=40), st.integers(1, 4000))),
    st.tuples(st.sampled_from(["take", "take unnoticed"]), counts),
    st.tuples(st.sampled_from(["pump", "replace"]), counts),
)


@given(st.lists(steps, max_size=30))
def test_everything_arrives_once_and_in_order_whatever_dies_meanwhile(
    plan: list[tuple[str, str | int]],
) -> None:
    queue = InputQueue()
    guest = Guest(queue)
    typed = ""
    for what, value in plan:
        if what == "key":
            assert queue.put(Down.TEXT, key(str(value)))
            typed += str(value)
        elif what == "paste":
            assert queue.paste(str(value))
            typed += str(value)
        elif what == "take":
            guest.take(int(value))
        elif what == "take unnoticed":
            guest.take(int(value), tells=False)
        elif what == "pump":
            guest.pump()
        else:
            guest.replace_worker()
    guest.pump()
    guest.take_all()
    guest.take(0)
    assert guest.got == typed.encode("utf-8", "replace").decode()
    assert (queue.held, queue.flying, queue.pasting) == (0, 0, 0)
    assert guest.begun == guest.ended


@given(st.text(max_size=200), st.integers(1, 400))
def test_a_piece_fits_one_frame_and_keeps_line_ends_together(text: str, count: int) -> None:
    queue = InputQueue()
    queue.paste(text * count)
    got = ""
    for message in queue.ready():
        piece, _ = wire_view.unpack_paste(message.payload)
        assert len(piece.encode("utf-8", "replace")) <= stream.MAX_PAYLOAD
        assert not (got.endswith("\r") and piece.startswith("\n"))
        got += piece
        queue.taken(1)
        break


def test_line_ends_of_two_characters_are_not_cut_in_two() -> None:
    queue = InputQueue()
    guest = Guest(queue)
    queue.paste("x" * (PIECE - 1) + "\r\n" + "y")
    guest.pump()
    first, _ = wire_view.unpack_paste(guest.on_way[0].payload)
    assert len(first) == PIECE - 1
    guest.take_all()
    assert guest.got.endswith("x\r\ny")


def test_a_text_of_carriage_returns_alone_is_cut_all_the_same() -> None:
    queue = InputQueue()
    guest = Guest(queue)
    queue.paste("\r" * (3 * PIECE))
    guest.take_all()
    assert guest.got == "\r" * (3 * PIECE)


def test_a_paste_waits_for_the_guest_and_keys_wait_behind_it() -> None:
    queue = InputQueue()
    guest = Guest(queue)
    queue.paste("p" * 5_000_000)
    queue.put(Down.TEXT, key("after"))
    for _ in range(10):
        guest.pump()
    sent = sum(len(message.payload) for message in guest.on_way)
    assert WINDOW <= sent < WINDOW + 2 * PIECE
    assert queue.pasting > 4_000_000
    guest.take_all()
    assert guest.got == "p" * 5_000_000 + "after"
    assert (guest.begun, guest.ended) == (1, 1)


def test_too_much_is_refused_whole() -> None:
    queue = InputQueue()
    assert not queue.paste("x" * (MAX_PASTE + 1))
    assert not queue.paste("é" * (MAX_PASTE // 2 + 1))
    assert queue.paste("x" * (MAX_PASTE - 1))
    assert not queue.paste("xx")
    assert queue.paste("x")
    count = 0
    while queue.put(Down.KEY, key("a")):
        count += 1
    assert 1000 < count < MAX_KEYS
    assert queue.held <= MAX_KEYS + MAX_PASTE
    assert queue.drop() == Dropped(count, MAX_PASTE)
    assert queue.held == 0
    assert queue.put(Down.KEY, key("a"))


def test_keys_on_their_way_count_until_they_were_taken() -> None:
    queue = InputQueue()
    guest = Guest(queue)
    while queue.put(Down.TEXT, key("a")):
        guest.pump()
    sent = len(guest.on_way)
    queue.again()
    assert not queue.put(Down.TEXT, key("a"))
    guest.on_way.clear()
    guest.take_all()
    assert guest.got == "a" * sent
    assert queue.put(Down.TEXT, key("a"))


def test_what_was_forgotten_may_still_be_taken() -> None:
    queue = InputQueue()
    for text in "abc":
        queue.put(Down.TEXT, key(text))
    assert len(list(queue.ready())) == 3
    assert queue.taken(1)
    assert queue.drop() == Dropped(2, 0)
    queue.put(Down.TEXT, key("d"))
    assert len(list(queue.ready())) == 1
    assert queue.taken(3)
    assert queue.flying == 1
    assert queue.taken(4)
    assert queue.flying == 0
    assert not queue.taken(5)


def test_a_paste_that_has_begun_is_ended_properly_when_it_is_cancelled() -> None:
    queue = InputQueue()
    guest = Guest(queue)
    queue.paste("p" * 1_000_000)
    queue.put(Down.TEXT, key("q"))
    queue.paste("never begun")
    guest.pump()
    assert queue.cancel_paste() > 600_000
    queue.put(Down.TEXT, key("c"))
    guest.take_all()
    assert guest.got.strip("p") == "qc"
    assert len(guest.got) < WINDOW + 2 * PIECE
    assert (guest.begun, guest.ended) == (1, 1)
    assert queue.cancel_paste() == 0
    assert queue.held == 0


def test_of_moves_of_the_mouse_that_wait_the_last_one_counts() -> None:
    queue = InputQueue()

    def mouse(action: MouseAction, x: int) -> bytes:
        return wire.MOUSE.pack(action, x, 0, 0, 0)

    queue.put(Down.MOUSE, mouse(MouseAction.PRESS, 1))
    for x in range(10_000):
        assert queue.put(Down.MOUSE, mouse(MouseAction.MOVE, x))
    queue.put(Down.MOUSE, mouse(MouseAction.RELEASE, 2))
    sent = [wire.MOUSE.unpack(message.payload)[:2] for message in queue.ready()]
    assert sent == [(MouseAction.PRESS, 1), (MouseAction.MOVE, 9_999), (MouseAction.RELEASE, 2)]


def test_what_was_dropped_is_said_in_words() -> None:
    assert str(Dropped(0, 0)) == ""
    assert str(Dropped(1, 0)) == "1 key"
    assert str(Dropped(12, 300)) == "12 keys and 300 pasted characters"


def test_what_was_dropped_with_a_dead_worker_makes_the_keeper_count_anew() -> None:
    queue = InputQueue()
    for text in "abc":
        queue.put(Down.TEXT, key(text))
    assert len(list(queue.ready())) == 3
    assert queue.taken(1)
    before = queue.epoch
    queue.again()
    assert queue.epoch == before
    queue.drop()
    assert (queue.epoch, queue.passed_on) == (before + 1, 1)
    queue.put(Down.TEXT, key("d"))
    assert len(list(queue.ready())) == 1
    assert queue.taken(2)
    assert not queue.taken(3)
    queue.put(Down.TEXT, key("e"))
    assert len(list(queue.ready())) == 1
    queue.drop()
    assert queue.epoch == before + 1
    queue.again()
    assert queue.epoch == before + 2
