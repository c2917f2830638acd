"""The broker between a guest and a service with real TLS."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import TYPE_CHECKING

import pytest

from tests.vm.broker_lab import CANARY, WAIT_S, Upstream, body
from vm.egress.broker.meter import Caps, Totals, Waiting
from vm.egress.broker.pipes import GuestPipe, Limits
from vm.egress.broker.target import named
from vm.egress.broker.trust import bundle, context

if TYPE_CHECKING:
    from pathlib import Path


async def hello(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\nhello")
    await writer.drain()


async def test_the_service_gets_the_key_and_the_guest_never_does(tmp_path: Path) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab()
        cookie = "Cookie: x=y"
        answer = await lab.ask(lab.head("GET /v1/models?limit=2", cookie, "Accept-Encoding: gzip"))
    assert answer.startswith(b"HTTP/1.1 200")
    assert body(answer) == b"hello"
    assert b"cookie" not in answer.lower()
    (head,) = upstream.heads
    assert head.startswith(
        b"GET /v1/models?limit=2 HTTP/1.1\r\nHost: api.lab.example\r\n".replace(
            b"Host", head.split(b"\r\n")[1][:4]
        )
    )
    assert f"Bearer {CANARY}".encode() in head
    assert b"accept-encoding: identity" in head.lower()
    assert b"gzip" not in head
    assert lab.held.placeholder.encode() not in head
    assert CANARY not in repr((lab.records, lab.held, lab.broker.__dict__))
    assert lab.records[0].path == "/v1/models"


async def test_two_requests_use_one_connection(tmp_path: Path) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab()
        answer = await lab.ask(lab.head("GET /v1/a") + lab.head("GET /v1/b"))
    assert answer.count(b"hello") == 2
    assert [record.path for record in lab.records] == ["/v1/a", "/v1/b"]


REFUSED: list[tuple[str, str, list[str], bool]] = [
    ("no-placeholder", "GET /v1/a", ["X-Auth: none"], False),
    ("foreign-credential", "GET /v1/a", ["Authorization: Bearer sk-of-somebody"], False),
    ("foreign-credential", "GET /v1/a", ["X-Api-Key: sk-of-somebody"], True),
    ("foreign-credential", "GET /v1/a", ["Authorization: Bearer second"], True),
    ("upgrade", "GET /v1/a", ["Upgrade: websocket", "Connection: upgrade"], True),
    ("not-allowed", "DELETE /v1/a", [], True),
    ("not-allowed", "GET /v2/a", [], True),
    ("not-allowed", "TRACE /v1/a", [], True),
    ("credential-in-query", "GET /v1/a?key=1", [], True),
    ("credential-in-query", "GET /v1/a?k%65y=1", [], True),
    ("target-not-plain", "GET /v1/../admin", [], True),
    ("target-not-plain", "GET /v1/%2e%2e/admin", [], True),
    ("target-not-plain", "GET /v1/%252e/admin", [], True),
    ("target-not-plain", "GET /v1//a", [], True),
    ("target-not-plain", "GET /v1/a;b", [], True),
    ("target-not-plain", "GET http://api.lab.example/v1/a", [], True),
    ("http-two-lengths", "POST /v1/a", ["Content-Length: 1", "Transfer-Encoding: chunked"], True),
    ("http-two-lengths", "POST /v1/a", ["Content-Length: 1", "Content-Length: 1"], True),
    ("not-http", "GET /v1/a", ["X-Fold: a\r\n b"], True),
    ("not-http", "GET /v1/a", ["X-Bare: a\nX-Api-Key: b"], True),
    ("not-http", "GET /v1/a", ["X-Space : a"], True),
    ("not-http", "POST /v1/a", ["Transfer-Encoding: gzip, chunked"], True),
    ("not-http", "POST /v1/a", ["Content-Length: -1"], True),
    ("host-mismatch", "GET /v1/a", ["Host: other.example"], True),
    ("too-large", "POST /v1/a", ["Content-Length: 99999999999"], True),
    ("head-too-large", "GET /v1/a", ["X-Big: " + "a" * 70_000], True),
    ("head-too-large", "GET /v1/a", [f"X-{n}: a" for n in range(200)], True),
]


@pytest.mark.parametrize(("code", "line", "headers", "auth"), REFUSED)
async def test_what_is_not_meant_is_refused_before_the_service_is_asked(
    tmp_path: Path, code: str, line: str, headers: list[str], auth: bool
) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab()
        answer = await lab.ask(lab.head(line, *headers, auth=auth))
    error = json.loads(body(answer))["error"]
    assert (error["code"], error["retry"]) == (code, False)
    assert upstream.heads == []
    method, target, *_ = line.split()
    path = re.split("[?;]", target)[0] if target.startswith("/") else ""
    (record,) = lab.records
    assert (record.code, record.method, record.path) == (code, method, path)


@pytest.mark.parametrize(
    ("line", "method", "path"),
    [
        (b"GET /v1/%3Fkey=s HTTP/1.1", "GET", "/v1/"),
        (b"GET /v1/a#k=s HTTP/1.0", "GET", "/v1/a"),
        (b"GET https://me:s@x.example/ HTTP/1.1", "GET", ""),
        (b"\x16\x03\x01 hello", "", ""),
        (b"GET /v1/a HTTP/2", "", ""),
        (b"", "", ""),
    ],
)
def test_the_log_names_a_request_and_nothing_that_could_be_its_query(
    line: bytes, method: str, path: str
) -> None:
    assert named(line) == (method, path)


async def test_a_connection_on_which_nothing_was_asked_ends_without_a_row(tmp_path: Path) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab(limits=Limits(head_s=0.05))
        reader, writer = await lab.guest()
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == b""
        writer.close()
        assert lab.records == []
        reader, writer = await lab.guest()
        writer.write(b"GET /v1/a HTTP/1.1\r\n")
        async with asyncio.timeout(WAIT_S):
            assert b"guest-timeout" in await reader.read()
        writer.close()
        assert [(one.method, one.path) for one in lab.records] == [("GET", "/v1/a")]


async def test_a_redirect_is_passed_back_and_not_followed(tmp_path: Path) -> None:
    async def away(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        where = f"https://evil.example/?k={CANARY}".encode()
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + where + b"\r\nContent-Length: 0\r\n\r\n")

    async with Upstream(tmp_path, away) as upstream:
        lab = upstream.lab()
        answer = await lab.ask(lab.head("GET /v1/a"))
    assert b"302" in answer
    assert b"https://evil.example/?k=***" in answer
    assert CANARY.encode() not in answer
    assert len(upstream.heads) == 1


async def test_a_placeholder_is_replaced_in_its_own_field_and_nowhere_else(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def echo(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readexactly(len(placeholder)))
        text = head + got[0]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)

    async with Upstream(tmp_path, echo) as upstream:
        lab = upstream.lab()
        placeholder = lab.held.placeholder
        fields = [f"{name}: {placeholder}" for name in ("User-Agent", "Origin", "X-Other")]
        head = lab.head(
            f"POST /v1/a?q={placeholder}", *fields, f"Content-Length: {len(placeholder)}"
        )
        answer = await lab.ask(head + placeholder.encode())
    assert answer.startswith(b"HTTP/1.1 200")
    assert got == [placeholder.encode()]
    (sent,) = upstream.heads
    carrying = [line for line in sent.split(b"\r\n") if CANARY.encode() in line]
    assert [line.lower().partition(b":")[0] for line in carrying] == [b"authorization"]
    assert f"?q={placeholder} ".encode() in sent
    assert CANARY.encode() not in answer


async def test_each_event_arrives_before_the_next_is_made(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def events(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(20):
            writer.write(b"data: %d s\n\n" % number)
            await writer.drain()
            await go.wait()
            go.clear()

    async with Upstream(tmp_path, events) as upstream:
        lab = upstream.lab()
        reader, writer = await lab.guest()
        writer.write(lab.head("GET /v1/a"))
        async with asyncio.timeout(WAIT_S):
            for number in range(20):
                await reader.readuntil(b"data: %d s\n\n" % number)
                go.set()
        writer.close()


async def test_a_service_of_another_name_is_not_believed(tmp_path: Path) -> None:
    async with Upstream(tmp_path, hello, host="other.example") as upstream:
        answer = await (lab := upstream.lab()).ask(lab.head("GET /v1/a"))
    assert json.loads(body(answer))["error"]["code"] == "upstream-tls"
    assert upstream.heads == []


async def test_a_body_passes_with_an_invitation_and_in_chunks(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def take(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"expect" not in head.lower()
        got.append(await reader.readuntil(b"0\r\n\r\n"))
        await hello(head, reader, writer)

    async with Upstream(tmp_path, take) as upstream:
        lab = upstream.lab()
        reader, writer = await lab.guest()
        more = ("Expect: 100-continue", "Transfer-Encoding: chunked")
        writer.write(lab.head("POST /v1/a", *more))
        async with asyncio.timeout(WAIT_S):
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"3;x=y\r\nabc\r\n0\r\n\r\n")
            assert b" 200 " in await reader.readuntil(b"hello")
        writer.close()
    assert b"abc" in got[0]
    assert b"x=y" not in got[0]


async def test_a_body_that_grows_too_large_ends_the_request(tmp_path: Path) -> None:
    async def drain(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            pass

    async with Upstream(tmp_path, drain) as upstream:
        lab = upstream.lab({"max_request": 1000})
        raw = lab.head("POST /v1/a", "Transfer-Encoding: chunked")
        answer = await lab.ask(raw + b"3e9\r\n" + b"a" * 1001 + b"\r\n0\r\n\r\n")
    assert json.loads(body(answer))["error"]["code"] == "too-large"


async def test_a_guest_that_does_not_read_holds_the_service_back(tmp_path: Path) -> None:
    sent = 0
    stuck = asyncio.Event()

    async def flood(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while sent < 256 << 20:
                writer.write(b"a" * 65_536)
                async with asyncio.timeout(5):
                    await writer.drain()
                sent += 65_536
        except TimeoutError:
            stuck.set()

    async with Upstream(tmp_path, flood) as upstream:
        lab = upstream.lab()
        _, writer = await lab.guest()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
        writer.write(lab.head("GET /v1/a"))
        async with asyncio.timeout(WAIT_S):
            await stuck.wait()
        writer.transport.abort()
    assert sent < 64 << 20


ANSWER = json.dumps({"model": "gpt-4o-2024-08-06", "usage": {"prompt_tokens": 90,
    "completion_tokens": 10}}).encode()  # fmt: skip


METERED = {"meter": "openai", "metered": ["POST /v1/chat"]}


async def model(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)


class AtCap:
    """A broker whose session's cap of 100 tokens is used up, and who waits for a word about it."""

    def __init__(self, upstream: Upstream, limits: Limits = Limits()) -> None:  # noqa: B008 - a frozen value
        self.told: list[Waiting] = []
        self._news = asyncio.Event()
        self.lab = upstream.lab(
            METERED, caps=Caps(tokens=100), totals=Totals(1, 100), waiting=self._hear, limits=limits
        )
        self.head = self.lab.head("POST /v1/chat", "Content-Length: 0", "Connection: close")

    def _hear(self, waiting: Waiting) -> None:
        self.told.append(waiting)
        self._news.set()

    async def ask(self) -> bytes:
        """Ask for a completion and wait for the answer as a client does, both ways open."""
        reader, writer = await self.lab.guest()
        writer.write(self.head)
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        return answer

    async def until(self, requests: int) -> None:
        """Wait until so many requests wait."""
        async with asyncio.timeout(WAIT_S):
            while not self.told or self.told[-1].requests != requests:
                self._news.clear()
                await self._news.wait()

    async def waiting(self, requests: int) -> list[asyncio.Task[bytes]]:
        """Have so many wait."""
        tasks = [asyncio.create_task(self.ask()) for _ in range(requests)]
        await self.until(requests)
        return tasks


async def test_who_hangs_up_before_the_numbers_reaches_the_cap_all_the_same(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def stream(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(400)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                writer.write(b'data: {"model": "gpt-4o", "choices": []}\n\n')
                await writer.drain()
        finally:
            gone.set()

    async with Upstream(tmp_path, stream) as upstream:
        lab = upstream.lab(METERED, caps=Caps(tokens=101))
        reader, writer = await lab.guest()
        writer.write(lab.head("POST /v1/chat", "Content-Length: 400") + b"x" * 400)
        async with asyncio.timeout(WAIT_S):
            await reader.readuntil(b"choices")
            writer.transport.abort()
            await gone.wait()
            await asyncio.wait(lab.tasks)
        totals = lab.broker.gate.totals
        assert (totals.answers, totals.silent, totals.unpriced) == (1, 1, 0)
        assert totals.tokens >= 101  # 400 bytes that were sent, and at least the event that came
        assert totals.dollars == pytest.approx((100 * 2.5 + (totals.tokens - 100) * 10) / 1e6)
        assert code_of(await lab.ask(lab.head("POST /v1/chat"))) == "cap"


def code_of(answer: bytes) -> str:
    return str(json.loads(body(answer))["error"]["code"])


async def test_what_waits_at_a_cap_is_one_question_and_goes_on_by_its_answer(
    tmp_path: Path,
) -> None:
    async with Upstream(tmp_path, model) as upstream:
        here = AtCap(upstream)
        both = await here.waiting(2)
        first, second = here.told
        assert (first.requests, second.requests) == (1, 2)
        assert first.since == second.since
        assert first.ends <= second.ends
        assert upstream.heads == []  # nothing costs while nobody answered
        here.lab.broker.gate.change(Caps(tokens=90))
        await here.until(2)
        here.lab.broker.gate.change(Caps(tokens=350))
        assert all(b" 200 " in answer for answer in await asyncio.gather(*both))
        assert here.told[-1] == Waiting()
    assert here.lab.broker.gate.totals.tokens == 300
    assert here.lab.broker.gate.totals.dollars == pytest.approx(2 * (90 * 2.5 + 10 * 10) / 1e6)


async def test_kept_stopped_is_refused_until_the_caps_are_others(tmp_path: Path) -> None:
    async with Upstream(tmp_path, model) as upstream:
        here = AtCap(upstream)
        both = await here.waiting(2)
        here.lab.broker.gate.change(Caps(tokens=100), stopped=True)
        assert [code_of(answer) for answer in await asyncio.gather(*both)] == ["cap", "cap"]
        told = len(here.told)
        assert code_of(await here.ask()) == "cap"  # nobody is asked again
        assert len(here.told) == told
        here.lab.broker.gate.change(Caps())
        assert b" 200 " in await here.ask()
    assert len(upstream.heads) == 1


async def test_without_an_answer_it_is_refused(tmp_path: Path) -> None:
    async with Upstream(tmp_path, model) as upstream:
        here = AtCap(upstream, Limits(ask_s=0.2))
        assert code_of(await here.ask()) == "cap"
        assert here.told[-1] == Waiting()
        nobody = upstream.lab(METERED, caps=Caps(tokens=1), totals=Totals(1, 1))
        assert code_of(await nobody.ask(nobody.head("POST /v1/chat"))) == "cap"  # headless: at once
    assert upstream.heads == []


async def test_a_client_that_gave_up_at_a_cap_costs_nothing_later(tmp_path: Path) -> None:
    async with Upstream(tmp_path, model) as upstream:
        here = AtCap(upstream)
        reader, writer = await here.lab.guest()
        writer.write(here.head)
        await here.until(1)
        writer.close()
        await here.until(0)
        here.lab.broker.gate.change(Caps())
        assert b" 200 " in await here.ask()
        await writer.wait_closed()
        assert reader.at_eof()
    assert len(upstream.heads) == 1
    assert [one.code for one in here.lab.records] == ["guest-gone", "answered"]


async def test_a_client_that_is_cut_off_has_given_up() -> None:
    ours, guest = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    pipe = GuestPipe(reader, writer, WAIT_S, "guest-timeout")
    assert not pipe.gone()
    writer.write(b"an answer that nobody reads")
    await writer.drain()
    guest.close()
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    assert pipe.gone()
    writer.close()


async def test_a_silent_service_is_given_up(tmp_path: Path) -> None:
    async def silent(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Upstream(tmp_path, silent) as upstream:
        lab = upstream.lab(limits=Limits(answer_s=0.2))
        answer = await lab.ask(lab.head("GET /v1/a"))
    assert json.loads(body(answer))["error"]["code"] == "timeout"


def test_no_trust_store_no_broker(tmp_path: Path) -> None:
    from vm.errors import BrokerRefused

    with pytest.raises(BrokerRefused, match="no list of trusted"):
        bundle({}, (tmp_path / "none",))
    (tmp_path / "empty").write_text("")
    with pytest.raises(BrokerRefused, match="no authority"):
        context(tmp_path / "empty")
