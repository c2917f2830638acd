"""What the first bytes of a connection name, however they are cut into pieces."""

from __future__ import annotations

import contextlib
import ssl
import struct
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vm.egress.inspect import Http, Tls, inspector_for, names_host
from vm.egress.kinds import Refused, Request, Verdict
from vm.egress.sniff_tls import HelloReader, NotTls


def real_hello(name: str | None) -> bytes:
    """What this Python's TLS says first."""
    context = ssl.create_default_context()
    if name is None:
        context.check_hostname = False
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(into, out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return out.read()


def made_hello(*extensions: tuple[int, bytes]) -> bytes:
    """A ClientHello's handshake message."""
    packed = b"".join(struct.pack("!HH", kind, len(body)) + body for kind, body in extensions)
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    body += struct.pack("!H", len(packed)) + packed
    return b"\1" + len(body).to_bytes(3, "big") + body


def named(name: bytes) -> tuple[int, bytes]:
    entry = b"\0" + struct.pack("!H", len(name)) + name
    return 0, struct.pack("!H", len(entry)) + entry


def records(message: bytes, size: int = 16_384) -> bytes:
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(piece)) + piece for piece in pieces)


HIDDEN = (0xFE0D, b"\0\0\1\0\1\5\0\0\0\0")
HELLO = records(made_hello((43, b"\2\3\4"), named(b"api.example")))


def test_a_real_clients_name_is_found() -> None:
    inspector = Tls("shop.example", hidden_may_pass=False)
    data = real_hello("shop.example")
    assert inspector.feed(data) == data
    assert inspector.satisfied
    assert inspector.feed(b"more") == b"more"


@given(cuts=st.lists(st.integers(1, 40), max_size=30), size=st.integers(1, 60))
def test_records_and_segments_may_be_cut_anywhere(cuts: list[int], size: int) -> None:
    data = records(made_hello(named(b"API.Example."), (10, b"\0\2\0\x1d")), size)
    inspector, passed, at = Tls("api.example", hidden_may_pass=True), b"", 0
    for cut in [*cuts, len(data)]:
        passed += inspector.feed(data[at : at + cut])
        at += cut
        assert passed in (b"", data[:at])
    assert passed == data


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (records(made_hello(named(b"other.example"))), "sni-mismatch"),
        (records(made_hello(named(b"api.example\0.evil.example"))), "sni-mismatch"),
        (records(made_hello(named(b"\xff"))), "sni-mismatch"),
        (real_hello(None), "no-sni"),
        (records(made_hello()), "no-sni"),
        (records(made_hello(named(b"api.example"), HIDDEN)), "hidden-sni"),
        (records(made_hello(named(b"api.example"), named(b"api.example"))), "not-tls"),
        (records(made_hello((0, b"\0\0"))), "not-tls"),
        (b"GET / HTTP/1.1\r\n\r\n", "not-tls"),
        (b"SSH-2.0-x\r\n", "not-tls"),
        (b"\x16\3\1\xff\xff", "not-tls"),
        (b"\x16\3\1\0\0", "not-tls"),
        (b"\x16\3\1\0\4\2\0\0\0", "not-tls"),
        (b"\x16\3\1\0\4\1\xff\xff\xff", "not-tls"),
    ],
)
def test_what_names_no_or_another_host_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(Refused) as refused:
        Tls("api.example", hidden_may_pass=False).feed(data)
    assert refused.value.code == code


def test_a_hidden_name_may_pass_with_a_word_in_the_log() -> None:
    inspector = Tls("api.example", hidden_may_pass=True)
    assert inspector.feed(records(made_hello(named(b"api.example"), HIDDEN)))
    assert inspector.note


def test_a_hello_without_end_is_refused() -> None:
    inspector = Tls("api.example", hidden_may_pass=True)
    inspector.feed(b"\x16\3\1\0\4\1\0\xff\xff")
    with pytest.raises(Refused, match="not-tls"):
        inspector.feed(b"\x16\3\1\0\1\0" * 30_000)


@given(data=st.binary(max_size=300), start=st.sampled_from((0, 3, 5, 9, 43, len(HELLO) - 8)))
def test_any_bytes_are_a_hello_or_none(data: bytes, start: int) -> None:
    reader = HelloReader()
    with contextlib.suppress(NotTls):
        reader.feed(HELLO[:start] + data)


# Plain HTTP.


def http(name: str = "a.example") -> Http:
    return Http(name, 80)


GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


def feed_in_pieces(inspector: Http, stream: bytes, cuts: list[int]) -> None:
    """Feed a stream cut into pieces; all of it has to pass, in order and once."""
    passed, at = b"", 0
    for cut in [*cuts, len(stream)]:
        passed += inspector.feed(stream[at : at + cut])
        at += cut
        assert stream.startswith(passed)
    assert passed == stream


def code_of(data: bytes) -> str:
    with pytest.raises(Refused) as refused:
        http().feed(data)
    return refused.value.code


def test_a_request_passes_once_its_head_is_whole() -> None:
    inspector = http()
    assert inspector.feed(GET[:-1]) == b""
    assert inspector.waiting
    assert inspector.feed(GET[-1:]) == GET
    assert not inspector.waiting


@given(cuts=st.lists(st.integers(1, 60), max_size=20))
def test_requests_with_bodies_pass_unchanged_however_they_are_cut(cuts: list[int]) -> None:
    stream = (
        b"POST /a HTTP/1.1\r\nHost: A.Example:80\r\nContent-Length: 11\r\n\r\nGET / HTTP/" + GET
    ) + (
        b"PUT http://a.example/x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nGET \r\n0\r\n\r\n" + GET
    )
    feed_in_pieces(http(), stream, cuts)


def test_a_later_request_for_another_host_does_not_pass() -> None:
    inspector = http()
    assert inspector.feed(GET) == GET
    with pytest.raises(Refused, match="host-mismatch"):
        inspector.feed(GET.replace(b"a.example", b"b.example"))
    with pytest.raises(Refused, match="host-mismatch"):
        http().feed(GET + GET.replace(b"a.example", b"b.example"))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not-http"),
        (b"GET / HTTP/1.0\r\n\r\n", "http-no-host"),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "not-http"),
        (b"GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "host-mismatch"),
        (b"GET / HTTP/1.1\r\nHost: a.example@b.example\r\n\r\n", "host-mismatch"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "host-mismatch"),
        (b"GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "host-mismatch"),
        (b"GET b.example HTTP/1.1\r\nHost: a.example\r\n\r\n", "http-target"),
        (b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "http-connect"),
        (
            b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            "http-two-lengths",
        ),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http-no-host"),
        (HELLO, "not-http"),
        (b"GET /" + b"a" * 70_000, "not-http"),
    ],
)
def test_requests_that_do_not_pass(data: bytes, code: str) -> None:
    assert code_of(data) == code


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
)


def test_a_websocket_passes_once_the_server_agrees() -> None:
    inspector = http()
    assert inspector.feed(UPGRADE) == UPGRADE
    assert inspector.feed(b"\x81\x05early") == b""
    assert inspector.answered(b"HTTP/1.1 1") == b""
    assert inspector.answered(b"01 Switching Protocols\r\n") == b"\x81\x05early"
    assert inspector.satisfied
    assert inspector.feed(b"\x81\x03any") == b"\x81\x03any"


def test_a_websocket_that_the_server_declines_stays_http() -> None:
    inspector = http()
    inspector.feed(UPGRADE)
    assert inspector.answered(b"HTTP/1.1 404 Not Found\r\n") == b""
    assert inspector.feed(GET) == GET
    with pytest.raises(Refused, match="host-mismatch"):
        inspector.feed(GET.replace(b"a.example", b"b.example"))


def test_what_is_sent_before_the_server_agreed_is_checked_if_it_declines() -> None:
    inspector = http()
    inspector.feed(UPGRADE + GET.replace(b"a.example", b"b.example"))
    with pytest.raises(Refused, match="host-mismatch"):
        inspector.answered(b"HTTP/1.1 200 OK\r\n")


LENGTHS = (
    b"",
    b"Content-Length: 0\r\n",
    b"Content-Length: 60\r\n",
    b"Transfer-Encoding: chunked\r\n",
)


@given(
    length=st.sampled_from(LENGTHS),
    method=st.sampled_from((b"GET", b"POST")),
    cuts=st.lists(st.integers(1, 200), max_size=4),
)
@example(length=LENGTHS[2], method=b"GET", cuts=[40, 180])
def test_an_upgrade_passes_unchanged_however_it_is_cut_and_whatever_its_body(
    length: bytes, method: bytes, cuts: list[int]
) -> None:
    """With a body, bytes of the head were once sent twice, and later ones not as they were read."""
    head = UPGRADE.replace(b"GET", method)[:-2] + length + b"\r\n"
    bodies = (b"", b"", b"b" * 60, b"3c\r\n" + b"b" * 60 + b"\r\n0\r\n\r\n")
    stream = head + bodies[LENGTHS.index(length)]
    inspector = http()
    feed_in_pieces(inspector, stream, cuts)
    assert inspector.answered(b"HTTP/1.1 404 Not Found\r\n") + inspector.feed(GET) == GET
    with pytest.raises(Refused, match="host-mismatch"):
        inspector.feed(GET.replace(b"a.example", b"b.example"))


def test_no_answer_makes_a_request_with_a_body_a_websocket() -> None:
    inspector = http()
    inspector.feed(UPGRADE[:-2] + b"Content-Length: 5\r\n\r\nhello")
    assert inspector.answered(b"HTTP/1.1 101 Switching Protocols\r\n\r\n") == b""
    assert not inspector.satisfied
    with pytest.raises(Refused, match="host-mismatch"):
        inspector.feed(GET.replace(b"a.example", b"b.example"))


def test_http_2_by_upgrade_is_no_way_around() -> None:
    inspector = http()
    inspector.feed(UPGRADE.replace(b"websocket", b"h2c"))
    with pytest.raises(Refused, match="http-no-host"):
        inspector.feed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


@given(data=st.binary(max_size=400), before=st.sampled_from((b"", GET, GET[:-2], UPGRADE)))
def test_any_bytes_are_http_or_none(data: bytes, before: bytes) -> None:
    inspector = http()
    with contextlib.suppress(Refused):
        assert (before + data).startswith(inspector.feed(before + data))


def test_which_inspector_a_verdict_asks_for() -> None:
    request = Request("a.example", 443)
    allowed = Verdict("allow", "user", "", "", "allowed", "")
    assert inspector_for(request, allowed) is None
    names = [type(inspector_for(request, _wanting(allowed, what))).__name__ for what in (0, 1)]
    assert names == ["Tls", "Http"]


def _wanting(verdict: Verdict, what: int) -> Verdict:
    return replace(verdict, inspect="http" if what else "tls")


def test_names_are_compared_in_their_one_spelling() -> None:
    assert names_host(b"WWW.Example.", "www.example")
    assert not names_host(b"www.example\0", "www.example")
    assert not names_host("wwẃ.example".encode(), "www.example")
