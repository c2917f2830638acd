"""The guest's name server and its table of addresses."""

from __future__ import annotations

import contextlib

import dns.message
import dns.opcode
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress.dns_answers import NoAnswer, Responder
from vm.egress.kinds import Entry, Request, Verdict
from vm.egress.table import FIRST, MAX_NAMES, BadTable, NameTable, TableFull, is_synthetic


class Judge:
    """Denies what holds `evil`; whoever asks anything else of it fails."""

    def decide(self, request: Request) -> Verdict:
        assert request.port is None
        action = "deny" if "evil" in request.host else "ask"
        return Verdict("deny" if action == "deny" else "ask", "profile", "", "", action, "")

    async def ask(self, flow: int, request: Request, verdict: Verdict) -> Verdict:
        raise AssertionError

    def check(self, request: Request, verdict: Verdict) -> Verdict:
        raise AssertionError


class Server:
    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.table = NameTable()
        self.responder = Responder(Judge(), self.table, self._note, lambda: 7.0)

    def _note(self, entry: Entry) -> None:
        self.log.append(entry)

    def ask(self, name: str, kind: str = "A", now: float = 0.0) -> dns.message.Message:
        query = dns.message.make_query(name, kind)
        reply = dns.message.from_wire(self.responder.answer(query.to_wire(), now))
        assert query.is_response(reply)
        return reply


def rows(reply: dns.message.Message) -> list[str]:
    return [line for line in reply.to_text().splitlines() if " IN A " in line]


def test_a_name_gets_an_address_and_keeps_it() -> None:
    server = Server()
    assert rows(server.ask("shop.example")) == ["shop.example. 60 IN A 198.18.0.1"]
    assert rows(server.ask("other.example")) == ["other.example. 60 IN A 198.18.0.2"]
    assert rows(server.ask("SHOP.example")) == ["SHOP.example. 60 IN A 198.18.0.1"]
    assert server.table.name_of(bytes((198, 18, 0, 2))) == "other.example"


def test_a_denied_name_does_not_exist() -> None:
    server = Server()
    reply = server.ask("data.evil.example")
    assert reply.rcode() == dns.rcode.NXDOMAIN
    assert not rows(reply)
    assert len(server.table) == 0
    assert [(line.kind, line.host, line.verdict, line.qtype) for line in server.log] == [
        ("query", "data.evil.example", "deny", "A")
    ]


@pytest.mark.parametrize("kind", ["AAAA", "HTTPS", "SVCB", "MX", "TXT", "ANY", "TYPE65500"])
def test_other_types_have_no_data(kind: str) -> None:
    reply = Server().ask("shop.example", kind)
    assert reply.rcode() == dns.rcode.NOERROR
    assert not reply.answer


@pytest.mark.parametrize(
    "name", ["1.2.3.4", r"a\.b.example", r"a\000.example", r"\255.example", "."]
)
def test_names_that_are_none_do_not_exist(name: str) -> None:
    server = Server()
    assert server.ask(name).rcode() == dns.rcode.NXDOMAIN
    assert server.log[0].host.isprintable()


def test_more_than_50_new_names_a_second_have_to_wait() -> None:
    server = Server()
    codes = [server.ask(f"n{n}.example", now=1.0).rcode() for n in range(52)]
    assert codes == [dns.rcode.NOERROR] * 50 + [dns.rcode.SERVFAIL] * 2
    assert server.ask("n0.example", now=1.0).rcode() == dns.rcode.NOERROR
    assert server.ask("n60.example", now=1.1).rcode() == dns.rcode.NOERROR
    assert server.log[-3].code == "too-fast"


def test_a_session_has_20_000_names() -> None:
    table = NameTable(
        (f"n{n}", f"198.{18 + (n >> 16)}.{n >> 8 & 255}.{n & 255}") for n in range(1, MAX_NAMES + 1)
    )
    assert len(table) == MAX_NAMES
    with pytest.raises(TableFull, match="too-many-names"):
        table.bind("one.more", 0.0)
    assert table.bind("n5", 0.0) == bytes((198, 18, 0, 5))


def test_a_table_goes_on_where_it_was_taken_over() -> None:
    added: list[tuple[str, str]] = []
    table = NameTable([("b.example", "198.18.0.9")], lambda name, at: added.append((name, at)))
    assert table.bind("b.example", 0.0) == bytes((198, 18, 0, 9))
    assert table.bind("c.example", 0.0) == bytes((198, 18, 0, 10))
    assert added == [("c.example", "198.18.0.10")]
    assert NameTable(table.rows()).rows() == table.rows()


@pytest.mark.parametrize(
    "bad",
    [
        [("a", "10.0.0.1")],
        [("a", "198.19.255.1")],
        [("a", "198.18.0.1"), ("b", "198.18.0.1")],
        [("a", "198.18.0.1"), ("a", "198.18.0.2")],
        [("a", "nonsense")],
    ],
)
def test_a_table_that_is_none_is_refused(bad: list[tuple[str, str]]) -> None:
    with pytest.raises(BadTable):
        NameTable(bad)


def test_which_addresses_are_synthetic() -> None:
    assert is_synthetic(FIRST.to_bytes(4, "big"))
    assert is_synthetic(bytes((198, 19, 255, 255)))
    assert not is_synthetic(bytes((198, 17, 255, 255)))
    assert not is_synthetic(bytes((198, 20, 0, 0)))


def test_what_is_no_question_gets_no_answer() -> None:
    server = Server()
    answer = dns.message.make_response(dns.message.make_query("a.example", "A")).to_wire()
    for message in (b"", b"\0" * 11, answer, bytes(5000)):
        with pytest.raises(NoAnswer):
            server.responder.answer(message, 0.0)


def test_questions_of_another_kind_are_refused_in_the_words_of_dns() -> None:
    server = Server()
    update = dns.message.make_query("a.example", "A")
    update.set_opcode(dns.opcode.STATUS)
    reply = dns.message.from_wire(server.responder.answer(update.to_wire(), 0.0))
    assert reply.rcode() == dns.rcode.NOTIMP
    chaos = dns.message.make_query("version.bind", "TXT", rdclass="CH")
    reply = dns.message.from_wire(server.responder.answer(chaos.to_wire(), 0.0))
    assert reply.rcode() == dns.rcode.REFUSED
    broken = server.responder.answer(b"\x12\x34\1\0\0\1" + bytes(6) + b"\xff", 0.0)
    assert dns.message.from_wire(broken).rcode() == dns.rcode.FORMERR


QUERY = dns.message.make_query("shop.example", "A", use_edns=True).to_wire()


@given(data=st.binary(max_size=60), start=st.integers(0, len(QUERY)))
def test_any_message_is_answered_or_not(data: bytes, start: int) -> None:
    server = Server()
    with contextlib.suppress(NoAnswer):
        reply = server.responder.answer(QUERY[:start] + data, 0.0)
        assert reply[2] & 0x80


@given(place=st.integers(0, len(QUERY) - 1), value=st.integers(0, 255))
def test_any_changed_query_is_answered_or_not(place: int, value: int) -> None:
    server = Server()
    message = QUERY[:place] + bytes((value,)) + QUERY[place + 1 :]
    with contextlib.suppress(NoAnswer):
        server.responder.answer(message, 0.0)
