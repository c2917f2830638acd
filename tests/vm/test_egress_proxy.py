"""The proxy of the host's environment: which connections go through it, and how it can fail."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.gateway import wire
from tests.vm.egress_tap import ALLOW, Judge
from tests.vm.test_egress_dial import Resolver, strict
from vm.egress.dial import DirectDialer
from vm.egress.dial_forward import Absolute
from vm.egress.dial_proxy import MAX_HEAD, NOTE, ProxyDialer
from vm.egress.kinds import Dialled, DialRefused, Request
from vm.egress.policy import Policy, Profile
from vm.egress.proxy import Proxies, Proxy, exceptions, from_environment
from vm.egress.sniff_http import SWITCHING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SECRET = "s3cret-CANARY"
WAIT_S = 60.0


@contextlib.asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """A host that speaks first, as those of SSH and of mail do, and then repeats."""

    idle = asyncio.Event()
    idle.set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        idle.clear()
        writer.write(b"220 first\n")
        with contextlib.suppress(ConnectionError):
            writer.write(await reader.read(100))
            writer.close()
            await writer.wait_closed()
        idle.set()

    made = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(made.sockets[0].getsockname()[1])
    finally:
        made.close()
        async with asyncio.timeout(WAIT_S):
            await idle.wait()


class RealProxy:
    """A small proxy on loopback that does what CONNECT asks for: by name, to where a test says."""

    def __init__(self, target: int = 0, answer: Answer | None = None) -> None:
        self.heads: list[str] = []
        self._target, self._answer = target, answer
        self.over = asyncio.Event()

    async def __aenter__(self) -> RealProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        if self.heads:
            async with asyncio.timeout(WAIT_S):
                await self.over.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if self._answer is not None:
                await self._answer(reader, writer)
                return
            ours, theirs = await asyncio.open_connection("127.0.0.1", self._target)
            first = await ours.read(100)
            # head and first bytes in one piece: they must not be taken for one
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: lab\r\n\r\n" + first)
            with contextlib.suppress(ConnectionError):  # a guest may reset it
                if data := await reader.read(100):
                    theirs.write(data)
                    writer.write(await ours.read(100))
            theirs.close()
            await theirs.wait_closed()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            self.over.set()

    def proxies(self, user: str = "") -> Proxies:
        text = f"http://{user}127.0.0.1:{self.port}"
        return from_environment({"ALL_PROXY": text, "NO_PROXY": "straight.example"})


async def dial(
    proxies: Proxies, request: Request, judge: Judge | None = None, answer_s: float = WAIT_S
) -> tuple[Dialled, Resolver]:
    resolver = Resolver(["127.0.0.1"])
    judge = judge or Judge()
    direct = DirectDialer(judge, resolver)
    return await ProxyDialer(proxies, direct, judge, resolver, answer_s).dial(
        request, ALLOW
    ), resolver


async def refusal(proxies: Proxies, request: Request, judge: Judge | None = None) -> DialRefused:
    with pytest.raises(DialRefused) as refused:
        await dial(proxies, request, judge)
    assert SECRET not in refused.value.reason
    return refused.value


async def test_a_name_goes_through_the_proxy_unresolved_and_the_log_says_so() -> None:
    async with echo() as port, RealProxy(port) as proxy:
        made, resolver = await dial(
            proxy.proxies(f"me:{SECRET}@"), Request("api.example.org", 443), Judge(checked=strict)
        )
        reader, writer = await asyncio.open_connection(sock=made.socket)
        async with asyncio.timeout(WAIT_S):
            assert await reader.readline() == b"220 first\n"
            writer.write(b"hello")
            assert await reader.read() == b"hello"
        writer.close()
    assert made.note == NOTE == "address not checked: proxy"
    assert made.address == f"proxy 127.0.0.1:{proxy.port}"
    assert resolver.asked == []
    lines = proxy.heads[0].split("\r\n")
    assert lines[0] == "CONNECT api.example.org:443 HTTP/1.1"
    pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert f"Proxy-Authorization: Basic {pair}" in lines


async def test_what_is_excepted_goes_straight_and_is_checked() -> None:
    async with echo() as port, RealProxy(port) as proxy:
        made, resolver = await dial(proxy.proxies(), Request("straight.example", port))
        assert (made.note, made.address) == ("", "127.0.0.1")
        made.socket.close()
        assert resolver.asked == ["straight.example"]
        found = await refusal(
            proxy.proxies(), Request("a.straight.example", port), Judge(checked=strict)
        )
        assert found.code == "loopback-address"
    assert proxy.heads == []


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("203.0.113.7", "proxy-literal"),
        ("2001:db8::1", "proxy-literal"),
        ("db", "proxy-local-name"),
    ],
)
async def test_no_proxy_is_asked_for_addresses_and_names_nearby(host: str, code: str) -> None:
    async with RealProxy() as proxy:
        assert (await refusal(proxy.proxies(), Request(host, 443))).code == code
    assert proxy.heads == []


async def test_what_the_policy_says_by_then_counts() -> None:
    later = Judge(checked=lambda _, verdict: replace(verdict, action="deny", code="denied"))
    async with RealProxy() as proxy:
        found = await refusal(proxy.proxies(), Request("api.example.org", 443), later)
    assert found.code == "denied"
    assert proxy.heads == []


def says(data: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return answer


@pytest.mark.parametrize(
    ("code", "data"),
    [
        ("proxy-refused", b"HTTP/1.1 403 Forbidden\r\nX: " + SECRET.encode() + b"\r\n\r\n"),
        ("proxy-refused", b"HTTP/1.0 302 Found\r\nLocation: https://x.example\r\n\r\n"),
        ("proxy-auth", b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n"),
        ("proxy-garbage", b"SSH-2.0-other\r\n"),
        ("proxy-garbage", b"\x15\x03\x03\x00\x02\x02\x28"),
        ("proxy-garbage", b"HTTP/2 200\r\n\r\n"),
        ("proxy-garbage", b"HTTP/1.1 2\r\n\r\n"),
        ("proxy-garbage", b"HTTP/1.1 200 OK\r\nX: " + b"a" * (MAX_HEAD + 100)),
        ("proxy-lost", b"HTTP/1.1 200 OK\r\n"),
        ("proxy-lost", b""),
    ],
)
async def test_each_failure_of_a_proxy_has_its_own_word(code: str, data: bytes) -> None:
    async with RealProxy(answer=says(data)) as proxy:
        assert (await refusal(proxy.proxies(), Request("api.example.org", 443))).code == code


async def test_a_proxy_that_hangs_is_given_up_and_hung_up_on() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200")
        assert await reader.read() == b""

    async with RealProxy(answer=hang) as proxy:
        with pytest.raises(DialRefused) as refused:
            await dial(proxy.proxies(), Request("api.example.org", 443), answer_s=0.2)
        assert refused.value.code == "proxy-timeout"
        async with asyncio.timeout(WAIT_S):
            await proxy.over.wait()


async def test_a_proxy_that_is_not_there() -> None:
    async with RealProxy() as proxy:
        gone = proxy.proxies()
    found = await refusal(gone, Request("api.example.org", 443))
    assert (found.code, found.reason) == (
        "proxy-unreachable",
        "The proxy: The host refused the connection.",
    )


async def test_a_proxy_of_another_kind_closes_the_way() -> None:
    socks = from_environment({"ALL_PROXY": f"socks5://me:{SECRET}@proxy.example:1080"})
    found = await refusal(socks, Request("api.example.org", 443))
    assert found.code == "proxy-unusable"
    assert (
        found.reason
        == "ALL_PROXY names a proxy of a kind that Cloche does not speak: http:// only."
    )
    assert socks.faults == (found.reason,)


def test_which_variable_is_for_what() -> None:
    env = {
        "HTTP_PROXY": "http://one.example:1", "https_proxy": "two.example:2",
        "HTTPS_PROXY": "http://loses.example:9", "ALL_PROXY": "http://three.example:3",
    }  # fmt: skip
    found = from_environment(env)
    assert found.of("a.example.org", 80) == Proxy("one.example", 1)
    assert (
        found.of("a.example.org", 443) == found.of("a.example.org", 22) == Proxy("two.example", 2)
    )
    only = from_environment({"ALL_PROXY": "http://[::1]"})
    assert only.of("a.example.org", 80) == only.of("a.example.org", 443) == Proxy("::1", 1080)
    assert only.https is not None
    assert only.https.place == "[::1]:1080"
    assert from_environment({"HTTP_PROXY": "http://one.example:1"}).of("a.example.org", 443) is None
    assert from_environment({"PATH": "/bin"}) == Proxies()
    for wrong in ("http://a b", "http://p.example:port", "http://", "http://p.example:99999"):
        assert from_environment({"HTTPS_PROXY": wrong}).faults == (
            "HTTPS_PROXY is no address of a proxy.",
        )


@pytest.mark.parametrize(
    ("text", "host", "port", "straight"),
    [
        ("*", "a.example.org", 443, True),
        ("example.org", "example.org", 443, True),
        ("example.org", "a.example.org", 443, True),
        ("example.org", "badexample.org", 443, False),
        (".example.org", "a.example.org", 443, True),
        (".example.org", "example.org", 443, True),
        ("*.example.org", "a.example.org", 443, True),
        ("EXAMPLE.org.", "a.example.org", 443, True),
        ("example.org:8443", "a.example.org", 8443, True),
        ("example.org:8443", "a.example.org", 443, False),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("10.1.2.3:5432", "10.1.2.3", 5432, True),
        ("10.1.2.3:5432", "10.1.2.3", 443, False),
        ("[2001:db8::]/32,[2001:db8::7]", "2001:db8::7", 443, True),
        ("2001:db8::/32", "2001:db8::7", 443, True),
        ("[2001:db8::7]:443", "2001:db8::7", 443, True),
        ("localhost, example.org other.org", "other.org", 443, True),
        ("example.org:port,,::,a b:-1", "example.org", 443, False),
    ],
)
def test_the_usual_forms_of_no_proxy(text: str, host: str, port: int, straight: bool) -> None:
    assert any(one.means(host, port) for one in exceptions(text)) is straight


@given(st.text(max_size=80))
def test_any_text_is_read_or_passed_over(text: str) -> None:
    exceptions(text)
    found = from_environment({"HTTPS_PROXY": text, "NO_PROXY": text})
    found.of("a.example.org", 443)


def test_credentials_reach_the_gateway_and_show_themselves_nowhere() -> None:
    proxies = from_environment({"HTTPS_PROXY": f"http://me:{SECRET}@10.0.0.1:3128"})
    policy = Policy(Profile("locked", (), "deny"))
    pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert pair not in repr(proxies)
    assert wire.beginning(wire.line(wire.InForce(policy, proxies=proxies))).proxies == proxies
    assert wire.beginning(wire.line(wire.InForce(policy))).proxies == Proxies()


class PlainProxy:
    """A proxy as most are set up: it serves absolute requests and refuses CONNECT to port 80."""

    def __init__(self, answer: bytes, then: bytes = b"") -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self._answer, self._then = answer, then

    async def __aenter__(self) -> PlainProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self._over = asyncio.Event()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        async with asyncio.timeout(WAIT_S):
            await self._over.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                if head.startswith("CONNECT"):
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                    continue
                lines = head.lower().split("\r\n")
                length = [one[15:] for one in lines if one.startswith("content-length:")]
                if length:
                    self.bodies.append(await reader.readexactly(int(length[0])))
                writer.write(self._answer)
                if self._then:
                    self.bodies.append(await reader.readexactly(len(self._then)))
                    writer.write(self._then)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self._over.set()

    def proxies(self, user: str = "") -> Proxies:
        return from_environment({"HTTP_PROXY": f"http://{user}127.0.0.1:{self.port}"})


HTTP = replace(ALLOW, inspect="http")


async def plain(proxy: PlainProxy, user: str = "") -> Dialled:
    """Dial port 80 as the gateway does where it reads requests along."""
    resolver = Resolver(["127.0.0.1"])
    dialer = ProxyDialer(proxy.proxies(user), DirectDialer(Judge(), resolver), Judge(), resolver)
    return await dialer.dial(Request("api.example.org", 80), HTTP)


async def test_plain_requests_reach_the_proxy_with_their_whole_address() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with PlainProxy(answer) as proxy:
        made = await plain(proxy, f"me:{SECRET}@")
        assert made.note == NOTE
        reader, writer = await asyncio.open_connection(sock=made.socket)
        said = (
            b"GET /a?b=c HTTP/1.1\r\nHost: api.example.org\r\nProxy-Authorization: mine\r\n\r\n"
            b"POST http://api.example.org/p HTTP/1.1\r\nHost: api.example.org\r\n"
            b"Content-Length: 5\r\n\r\nhello"
            b"OPTIONS * HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
        )
        async with asyncio.timeout(WAIT_S):
            for at in range(0, len(said), 7):  # wherever the pieces end
                writer.write(said[at : at + 7])
                await writer.drain()
            writer.write_eof()
            assert await reader.read() == answer * 3
        writer.close()
    lines = [head.split("\r\n")[0] for head in proxy.heads]
    assert lines == [
        "GET http://api.example.org/a?b=c HTTP/1.1",
        "POST http://api.example.org/p HTTP/1.1",
        "OPTIONS http://api.example.org HTTP/1.1",
    ]
    assert proxy.bodies == [b"hello"]
    pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert all(f"Proxy-Authorization: Basic {pair}" in head for head in proxy.heads)
    assert "mine" not in proxy.heads[0]


async def test_a_websocket_through_the_proxy_is_read_as_http_no_longer() -> None:
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    frame = b"\x81\x81maskx"
    async with PlainProxy(upgrade, frame) as proxy:
        made = await plain(proxy)
        reader, writer = await asyncio.open_connection(sock=made.socket)
        ask = b"GET /ws HTTP/1.1\r\nHost: api.example.org\r\nConnection: Upgrade\r\n"
        writer.write(ask + b"Upgrade: websocket\r\n\r\n")
        async with asyncio.timeout(WAIT_S):
            assert await reader.readuntil(b"\r\n\r\n") == upgrade
            writer.write(frame)
            assert await reader.readexactly(len(frame)) == frame
        writer.close()
        await writer.wait_closed()
    assert proxy.bodies == [frame]


UPGRADE = (
    b"GET /%d HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
)
PLAIN = b"GET /%d HTTP/1.1\r\nHost: a.example\r\n\r\n"


def test_what_an_earlier_answer_brings_is_no_word_about_another_protocol() -> None:
    absolute = Absolute(Request("a.example", 80), "")
    absolute.feed(PLAIN % 1 + UPGRADE % 2)
    absolute.answered(SWITCHING + b" from the body of an answer\r\n\r\n")
    assert absolute.feed(PLAIN % 3).startswith(b"GET http://a.example/3 HTTP/1.1\r\n")


@pytest.mark.parametrize("early", [0, 1])
def test_a_proxy_that_did_not_follow_hears_no_request_behind_an_upgrade(early: int) -> None:
    said = b"GET http://intern.example/ HTTP/1.1\r\nHost: intern.example\r\n\r\n"
    absolute = Absolute(Request("a.example", 80), "")
    absolute.feed(UPGRADE % 1)
    absolute.answered(SWITCHING + b" Switching Protocols\r\n\r\n")
    assert absolute.feed(said[:early]) == said[:early]
    with pytest.raises(h11.ProtocolError):
        absolute.feed(said[early:])


async def test_where_nothing_reads_requests_along_port_80_is_a_tunnel() -> None:
    async with echo() as port, RealProxy(port) as proxy:
        made, _ = await dial(proxy.proxies(), Request("api.example.org", 80))
        made.socket.close()
    assert proxy.heads[0].startswith("CONNECT api.example.org:80 ")


BODIES = st.lists(st.tuples(st.booleans(), st.binary(max_size=40)), min_size=1, max_size=4)


@given(BODIES, st.data())
def test_what_the_proxy_is_told_means_the_same_requests(
    bodies: list[tuple[bool, bytes]], data: st.DataObject
) -> None:
    sent = b""
    for chunked, body in bodies:
        sent += b"PUT /x HTTP/1.1\r\nHost: a.example\r\n"
        if chunked:
            piece = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            sent += b"Transfer-Encoding: chunked\r\n\r\n" + piece + b"0\r\n\r\n"
        else:
            sent += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    absolute, said = Absolute(Request("a.example", 80), ""), b""
    while sent:
        cut = data.draw(st.integers(1, len(sent)))
        said += absolute.feed(sent[:cut])
        sent = sent[cut:]
    parser, found = h11.Connection(h11.SERVER), list[bytes]()
    parser.receive_data(said)
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Request):
            assert bytes(event.target) == b"http://a.example/x"
            found.append(b"")
        elif isinstance(event, h11.Data):
            found[-1] += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            rest = parser.trailing_data[0]
            if not rest:
                break
            parser = h11.Connection(h11.SERVER)
            parser.receive_data(rest)
        else:
            break
    assert found == [body for _, body in bodies]


async def test_the_proxys_credentials_never_come_back() -> None:
    pair = base64.b64encode(f"me:{SECRET}".encode())
    body = b"you said: Basic " + pair + b" that is " + SECRET.encode()
    answer = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with PlainProxy(answer) as proxy:
        made = await plain(proxy, f"me:{SECRET}@")
        reader, writer = await asyncio.open_connection(sock=made.socket)
        writer.write(b"GET / HTTP/1.1\r\nHost: api.example.org\r\nMax-Forwards: 0\r\n\r\n")
        writer.write_eof()
        async with asyncio.timeout(WAIT_S):
            said = await reader.read()
        writer.close()
    assert len(said) == len(answer)
    assert pair not in said
    assert "max-forwards" not in proxy.heads[0].lower()
    absolute = Absolute(Request("a.example", 80), "Basic " + pair.decode())
    with pytest.raises(h11.ProtocolError):
        absolute.feed(b"trace / HTTP/1.1\r\nHost: a.example\r\n\r\n")
