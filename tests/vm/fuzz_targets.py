"""What is fuzzed of the egress gateway, and what must hold for every input.

A target takes a mutator and raises where something does not hold. OpenSSL says which name a server
would read in a ClientHello; of a request's head every line is read by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import TYPE_CHECKING, Any, Final

import dns.message

from tests.vm.test_egress_dns import Server
from tests.vm.test_egress_gateway import SEEDS, Bench, mended, question, tcp_frame
from tests.vm.test_egress_ipv6 import packet as six_packet
from tests.vm.test_egress_ipv6 import solicitation
from tests.vm.test_egress_sniff import GET, HELLO, HIDDEN, UPGRADE, made_hello, real_hello, records
from vm.egress import frames, ipv6
from vm.egress.dns_answers import NoAnswer
from vm.egress.frames import ACK, FIN, RST, BadFrame
from vm.egress.inspect import Http, Tls, names_host
from vm.egress.kinds import GUEST, Limits, Refused
from vm.egress.link import split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.vm.fuzz_mutate import Mutator
    from vm.egress.inspect import Inspector

TLS_NAME, HTTP_NAME = "api.example", "a.example"

FRAME_SEEDS: Final = (
    *SEEDS,
    tcp_frame(b"", flags=FIN | ACK, seq=2),
    tcp_frame(b"", flags=RST, seq=2),
    tcp_frame(b"y" * 1400, flags=ACK, seq=2),
    question("evil.example"),
    GUEST.mac + GUEST.mac + b"\x86\xdd" + six_packet(58, solicitation()),
    GUEST.mac + GUEST.mac + b"\x86\xdd" + six_packet(6, tcp_frame()[34:]),
)
FRAME_WORDS: Final = (
    b"\x08\0",
    b"\x08\6",
    b"\x86\xdd",
    b"\x45",
    b"\2\4\5\xb4",
    b"\3\3\x0e",
    b"\0\0",
)

QUERIES: Final = tuple(
    dns.message.make_query(name, kind, use_edns=edns).to_wire()
    for name in ("shop.example", "data.evil.example", "xn--bcher-kva.example", "a." * 120 + "b")
    for kind, edns in (("A", True), ("AAAA", False), ("HTTPS", True), ("ANY", False))
)
DNS_WORDS: Final = (b"\xc0\x0c", b"\xc0\0", b"\4evil", b"\0\1\0\1", b"\0\x29", b"\x3f" + b"a" * 63)

HELLOS: Final = (
    HELLO,
    real_hello(TLS_NAME),
    real_hello(None),
    records(real_hello(TLS_NAME)[5:], 60),
    records(made_hello(HIDDEN, (0, struct.pack("!HBH", 14, 0, 11) + TLS_NAME.encode()))),
)
TLS_WORDS: Final = (b"\x16\3\1", b"\x16\3\3", b"\0\0", b"evil.example", b"api.example", b"\xfe\x0d")

POST: Final = (
    b"POST /a HTTP/1.1\r\nHost: A.Example:80\r\nContent-Length: 11\r\n\r\nGET / HTTP/" + GET
)
CHUNKED: Final = (
    b"PUT http://a.example/x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4;x=y\r\nGET \r\n0\r\nTrailer: 1\r\n\r\n" + GET
)
WITH_BODY: Final = UPGRADE[:-2] + b"Content-Length: 40\r\n\r\n" + b"b" * 40 + GET
REQUESTS: Final = (GET, GET + GET, POST, CHUNKED, UPGRADE, UPGRADE + GET, WITH_BODY)
HTTP_WORDS: Final = (
    *(b"Host: evil.example\r\n", b"host:a.example\n", b"\r\n\r\n", b"\n\n", b"\r", b" ", b"\t"),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n"),
    *(b"HTTP/1.0", b"HTTP/1.1", b"CONNECT a.example:443", b"http://evil.example/", b"@", b"\0"),
    *(b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Expect: 100-continue\r\n"),
)
ANSWERS: Final = (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"HTTP/1.1 404 Not Found\r\n\r\n")


def any_frame(mutate: Mutator) -> None:
    """A frame is read or refused, and a batch in the stream's form is split where it says."""
    frame = mutate.message()
    frame = mended(bytearray(frame)) if mutate.dice.random() < 0.8 else frame
    with contextlib.suppress(BadFrame):
        _read_frame(memoryview(frame))
    stream = struct.pack("!I", len(frame)) + frame + mutate.message()
    found, at = split(memoryview(stream))
    assert sum(4 + len(one) for one in found) == at <= len(stream)


def _read_frame(frame: memoryview) -> None:
    outer = frames.ethernet(frame)
    if outer.kind == frames.ARP:
        frames.arp(outer.payload)
        return
    if outer.kind == frames.IPV6:
        six = ipv6.parse(outer.payload)
        ipv6.port_of(six)
        ipv6.is_housekeeping(six)
        return
    packet = frames.ipv4(outer.payload)
    if packet.protocol == frames.TCP:
        frames.tcp(packet)
    elif packet.protocol == frames.UDP:
        frames.udp(packet)


class AnyGateway:
    """A whole gateway: no frames break it, its bounds hold, and what it sends can be read."""

    def __init__(self) -> None:
        self._faults: list[dict[str, Any]] = []

    def __call__(self, mutate: Mutator) -> None:
        """Give one gateway some batches of frames."""
        self._faults.clear()
        asyncio.run(self._run(mutate))
        assert not self._faults, self._faults

    async def _run(self, mutate: Mutator) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: self._faults.append(what))
        limits = Limits(flows=4, half_open=3, held=2, dials=2)
        bench = Bench(connects=mutate.dice.random() < 0.5, limits=limits)
        try:
            for _ in range(mutate.dice.randint(1, 4)):
                batch = [mended(bytearray(mutate.message())) for _ in range(5)]
                for frame in bench.take(*batch):
                    _read_frame(memoryview(frame))
                await bench.settle()
                assert bench.gateway.open <= limits.flows
            assert all(entry.host.isprintable() for entry in bench.log)
        finally:
            bench.close()


def any_query(mutate: Mutator) -> None:
    """A message is answered or not; an answer can be read, and gives no denied name an address."""
    message, server = mutate.message(), Server()
    try:
        reply = server.responder.answer(message, 0.0)
    except NoAnswer:
        return
    read = dns.message.from_wire(reply)
    assert reply[:2] == message[:2]
    assert reply[2] & 0x80
    assert not any("evil" in row.name.to_text().lower() for row in read.answer)
    assert len(server.table) <= 1
    assert all(entry.host.isascii() and entry.host.isprintable() for entry in server.log)


def fed(inspector: Inspector, pieces: Sequence[bytes]) -> tuple[bytes, str]:
    """Return what an inspector let pass, and why it refused the rest."""
    passed = b""
    try:
        for piece in pieces:
            passed += inspector.feed(piece)
    except Refused as refused:
        return passed, refused.code
    return passed, ""


class AnyHello:
    """A ClientHello passes only where OpenSSL would read the same name in it."""

    def __init__(self) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.sni_callback = self._heard
        self._names: list[str | None] = []

    def _heard(self, sock: object, name: str | None, context: object) -> int:
        self._names.append(name)
        return ssl.ALERT_DESCRIPTION_ACCESS_DENIED

    def __call__(self, mutate: Mutator) -> None:
        """Feed one, whole and in pieces."""
        data = mutate.message()
        passed, code = fed(Tls(TLS_NAME, hidden_may_pass=True), [data])
        assert passed in (b"", data)
        cut = fed(Tls(TLS_NAME, hidden_may_pass=True), mutate.pieces(data))
        assert code or cut == (passed, ""), (code, cut)
        assert not (code and cut[0] == data), (code, cut)
        if passed:
            for name in self._openssl(data):
                assert name is not None, "OpenSSL saw no name"
                assert names_host(name.encode(), TLS_NAME), name

    def _openssl(self, data: bytes) -> list[str | None]:
        self._names.clear()
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        into.write(data)
        session = self._context.wrap_bio(into, out, server_side=True)
        with contextlib.suppress(ssl.SSLError):
            session.do_handshake()
        return list(self._names)


def any_request(mutate: Mutator) -> None:
    """What passes is what was sent, and its first head names no other host."""
    data = mutate.message()
    pieces = mutate.pieces(data)
    inspector = Http(HTTP_NAME, 80)
    passed, code = fed(inspector, pieces)
    assert data.startswith(passed)
    head = passed.replace(b"\r\n", b"\n").split(b"\n\n")[0]
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        if name.rstrip().lower() == b"host":
            host = value.strip().partition(b":")[0]
            assert names_host(host, HTTP_NAME), line
    if not code:
        whole, why = fed(Http(HTTP_NAME, 80), [data])
        assert (whole, why) == (passed, ""), "it depends on the pieces"
    _conversation(pieces, mutate)


def _conversation(pieces: Sequence[bytes], mutate: Mutator) -> None:
    """Let the server speak in between: what passes stays the beginning of what was sent."""
    inspector, sent, passed = Http(HTTP_NAME, 80), b"", b""
    with contextlib.suppress(Refused):
        for piece in pieces:
            sent += piece
            passed += inspector.feed(piece)
            assert sent.startswith(passed)
            if mutate.dice.random() < 0.3:
                passed += inspector.answered(mutate.dice.choice(ANSWERS))
                assert sent.startswith(passed)


Target = tuple["Callable[[Mutator], None]", "tuple[bytes, ...]", "tuple[bytes, ...]"]


def targets() -> dict[str, Target]:
    """Each target with its good messages and its protocol's words."""
    return {
        "frame": (any_frame, FRAME_SEEDS, FRAME_WORDS),
        "gateway": (AnyGateway(), FRAME_SEEDS, FRAME_WORDS),
        "dns": (any_query, QUERIES, DNS_WORDS),
        "tls": (AnyHello(), HELLOS, TLS_WORDS),
        "http": (any_request, REQUESTS, HTTP_WORDS),
    }
