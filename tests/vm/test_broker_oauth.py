"""Tokens that run out: renewed once, written back whole, or left alone with a clear word."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from tests.vm import oauth_process
from tests.vm.broker_lab import Upstream, body
from tests.vm.oauth_process import GRANT
from vm.egress.broker import services
from vm.egress.broker.broker import Broker, prepare
from vm.egress.broker.oauth import read, renew
from vm.egress.broker.trust import context
from vm.egress.kinds import Refused
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    import socket

OLD, NEW = "old-access-CANARY", "new-access-CANARY"


class Endpoint:
    """Who gives tokens: each refresh token is good for one time only."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "login.json"
        self.good = "refresh-0"
        self.given = 0
        self.status = b"200 OK"
        self.answer: bytes | None = None
        self.heads: list[str] = []
        self.write(time.time() - 5)

    def write(self, until: float, **more: Any) -> None:
        login = {"access": OLD, "refresh": self.good, "expires": int(until * 1000), "kept": [1]}
        self.file.write_text(json.dumps({"login": {**login, **more}, "other": {"a": "ü"}}))
        self.file.chmod(0o600)

    async def serve(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.heads.append(head.decode())
        if not head.startswith(b"POST /token"):
            await _echo(head, reader, writer)
            return
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        form = parse_qs((await reader.readexactly(length)).decode())
        assert form["client_id"] == ["client-1"]
        assert form["grant_type"] == ["refresh_token"]
        status, answer = b"400 Bad Request", b'{"error": "invalid_grant"}'
        if form["refresh_token"] == [self.good]:
            self.given += 1
            self.good = f"refresh-{self.given}"
            status, answer = self.status, self.answer or json.dumps(
                {"access_token": NEW, "token_type": "Bearer", "expires_in": 3600,
                 "refresh_token": self.good}
            ).encode()  # fmt: skip
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(answer), answer))


async def _echo(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))


def leftovers(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(".cloche-"))


async def test_five_processes_at_once_renew_a_token_once(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    async with Upstream(tmp_path, endpoint.serve, "login.lab.example") as upstream:
        words = [str(endpoint.file), str(upstream.port), str(upstream.cert)]
        program = [sys.executable, "-P", str(Path(oauth_process.__file__)), *words]
        running = [
            await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
            for _ in range(5)
        ]
        said = [(await one.communicate())[0] for one in running]
    assert endpoint.given == 1
    assert said == [hashlib.sha256(NEW.encode()).hexdigest().encode()] * 5
    written = json.loads(endpoint.file.read_text())
    assert (written["login"]["access"], written["login"]["refresh"]) == (NEW, "refresh-1")
    assert written["login"]["kept"] == [1]
    assert written["other"] == {"a": "ü"}
    assert written["login"]["expires"] > (time.time() + 3000) * 1000
    assert endpoint.file.stat().st_mode & 0o777 == 0o600
    assert leftovers(tmp_path) == []


async def test_a_fresh_token_is_left_alone(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    endpoint.write(time.time() + 1000)
    before = endpoint.file.read_bytes()

    async def nobody(host: str, port: int) -> socket.socket:
        raise AssertionError(host, port)

    async with Upstream(tmp_path, endpoint.serve) as upstream:
        token = await renew(endpoint.file, GRANT, nobody, context(upstream.cert))
    assert token.secret.reveal() == OLD.encode()
    assert endpoint.file.read_bytes() == before


@pytest.mark.parametrize(
    ("code", "status", "answer", "more"),
    [
        ("token-refused", b"200 OK", b"{}", {}),
        ("token-refused", b"200 OK", b"not json", {}),
        ("token-refused", b"200 OK", b'{"access_token": "a b", "expires_in": -1}', {}),
        ("token-refused", b"500 Oops", b"", {}),
        ("token-refused", b"200 OK", b"", {"refresh": "spent"}),
        ("token-file", b"200 OK", b"", {"refresh": 7}),
        ("token-file", b"200 OK", b"", {"access": None}),
        ("token-lost", b"200 OK\r\nTransfer-Encoding: other", b"x", {}),
    ],
)
async def test_what_goes_wrong_leaves_the_file_as_it_was(
    tmp_path: Path, code: str, status: bytes, answer: bytes, more: dict[str, Any]
) -> None:
    endpoint = Endpoint(tmp_path)
    endpoint.status, endpoint.answer = status, answer or None
    endpoint.write(time.time() - 5, **more)
    before = endpoint.file.read_bytes()
    async with Upstream(tmp_path, endpoint.serve, "login.lab.example") as upstream:
        with pytest.raises(Refused) as refused:
            await renew(endpoint.file, GRANT, upstream.connect, context(upstream.cert))
    assert refused.value.code == code
    assert endpoint.file.read_bytes() == before
    assert leftovers(tmp_path) == []


async def test_a_request_gets_the_new_token_and_its_answer_loses_it(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    settings = {
        "upstream": "https://login.lab.example", "credential": f"oauth:{endpoint.file}",
        "oauth": {"endpoint": "https://login.lab.example/token", "client_id": "client-1",
                  "access": "login.access", "refresh": "login.refresh",
                  "expires": "login.expires", "milliseconds": True},
        "add": "bearer", "accept": ["bearer"], "allow": ["GET /v1/**"],
    }  # fmt: skip
    service = services.parse("lab", settings)
    assert service.oauth == GRANT
    async with Upstream(tmp_path, endpoint.serve, "login.lab.example") as upstream:
        env = {"SSL_CERT_FILE": str(upstream.cert)}
        held, missing, trust = prepare_here(service, env)
        assert missing == {}
        lab = upstream.lab()
        lab.broker = Broker(held, upstream.connect, trust, lab.records.append)
        lab.held = held[0]
        answers = await asyncio.gather(*(lab.ask(lab.head("GET /v1/a")) for _ in range(4)))
    assert endpoint.given == 1
    assert sum(f"authorization: Bearer {NEW}" in head for head in endpoint.heads) == 4
    assert all(b" 200 " in answer for answer in answers)
    assert not any(NEW.encode() in answer for answer in answers)


def prepare_here(service: services.Service, env: dict[str, str]) -> Any:
    """Prepare in a test's own process, which must stay one that can be looked into."""
    from unittest.mock import patch

    with patch("vm.egress.broker.secret.harden"):
        return prepare([service], env, [])


async def test_a_login_that_is_over_is_told_to_the_guest(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    endpoint.write(time.time() - 5, refresh="spent")
    service = services.parse(
        "lab",
        {
            "upstream": "https://login.lab.example", "credential": f"oauth:{endpoint.file}",
            "oauth": {"endpoint": "https://login.lab.example/token", "client_id": "client-1",
                      "access": "login.access", "refresh": "login.refresh",
                      "expires": "login.expires", "milliseconds": True},
            "add": "bearer", "accept": ["bearer"], "allow": ["GET /v1/**"],
        },
    )  # fmt: skip
    async with Upstream(tmp_path, endpoint.serve, "login.lab.example") as upstream:
        held, _, trust = prepare_here(service, {"SSL_CERT_FILE": str(upstream.cert)})
        lab = upstream.lab()
        lab.broker = Broker(held, upstream.connect, trust, lab.records.append)
        lab.held = held[0]
        answer = await lab.ask(lab.head("GET /v1/a"))
    assert json.loads(body(answer))["error"]["code"] == "token-refused"


def test_a_file_is_read_as_a_keys_file_is(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    assert read(endpoint.file, GRANT).secret.reveal() == OLD.encode()
    with pytest.raises(BrokerRefused, match="workspace"):
        read(endpoint.file, GRANT, [tmp_path])
    endpoint.file.chmod(0o644)
    with pytest.raises(BrokerRefused) as caught:
        read(endpoint.file, GRANT)
    assert caught.value.hint == f"chmod 600 {endpoint.file}"
    endpoint.file.chmod(0o600)
    for text in ("[]", "{", "{}", json.dumps({"login": {"access": OLD}}), "x" * 70_000):
        endpoint.file.write_text(text)
        with pytest.raises(BrokerRefused) as caught:
            read(endpoint.file, GRANT)
        assert OLD not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("credential", "oauth"),
    [
        ("oauth:/a/b", None),
        ("env:A", {"endpoint": "https://a.example/t", "access": "a"}),
        ("oauth:/a/b", {"endpoint": "http://a.example/t", "access": "a", "refresh": "b"}),
        ("oauth:/a/b", {"endpoint": "https://a.example", "access": "a", "refresh": "b"}),
        ("oauth:/a/b", {"endpoint": "https://a.example/t", "access": "a..b", "refresh": "b"}),
        ("oauth:/a/b", {"endpoint": "https://a.example/t", "access": "a", "secret": "b"}),
        ("oauth:/a/b", "text"),
    ],
)
def test_settings_of_a_renewal_that_are_wrong_are_named(credential: str, oauth: object) -> None:
    data: dict[str, Any] = {
        "upstream": "https://a.example", "credential": credential, "add": "bearer",
        "accept": ["bearer"], "allow": ["GET /**"],
    }  # fmt: skip
    with pytest.raises(BrokerRefused, match="Service lab"):
        services.parse("lab", {**data, "oauth": oauth})
