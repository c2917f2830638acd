"""A service that the broker asks over real TLS on loopback, and a guest that asks the broker."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vm.egress.broker import services
from vm.egress.broker.broker import Broker
from vm.egress.broker.secret import Secret
from vm.egress.broker.trust import context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from vm.egress.broker.exchange import Record

    Handler = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

CANARY = "sk-real-CANARY/0123+456789"
WAIT_S = 60.0


def certificate(folder: Path, host: str, age_s: float = 86_400) -> tuple[Path, Path]:
    """Make an authority that is its own server; return the certificate's file and the key's.

    It is valid since `age_s` seconds ago.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(seconds=age_s))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "ca.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, private


@dataclass
class Lab:
    """A broker with one service behind it."""

    broker: Broker
    held: services.Held
    heads: list[bytes]
    records: list[Record]
    tasks: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])

    async def guest(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect a guest."""
        ours, theirs = socket.socketpair()
        serving = self.broker.serve(self.held.service.internal, ours)
        self.tasks.append(asyncio.create_task(serving))
        return await asyncio.open_connection(sock=theirs)

    def head(self, line: str, *more: str, auth: bool = True) -> bytes:
        """Write a request's head."""
        rows = [f"{line} HTTP/1.1", f"Host: {self.held.service.internal}", *more]
        if auth:
            way = self.held.service.accept[0]
            name, value = services.field_of(
                way, self.held.service.user, self.held.placeholder.encode()
            )
            rows.append(f"{name.decode()}: {value.decode()}")
        return "\r\n".join(rows).encode() + b"\r\n\r\n"

    async def ask(self, raw: bytes) -> bytes:
        """Send bytes, then read to the end of the connection."""
        reader, writer = await self.guest()
        writer.write(raw)
        writer.write_eof()
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        return answer


class Upstream:
    """The service: it reads a head, notes it, and lets the handler answer."""

    def __init__(self, folder: Path, handler: Handler, host: str = "api.lab.example") -> None:
        self.cert, self._key = certificate(folder, host)
        self._handler = handler
        self.heads: list[bytes] = []
        self.records: list[Record] = []
        self._labs: list[Lab] = []

    async def __aenter__(self) -> Upstream:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.cert, self._key)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for lab in self._labs:
            for task in lab.tasks:
                task.cancel()
            await asyncio.gather(*lab.tasks, return_exceptions=True)
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            await self._handler(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the broker hung up, as some tests want
        finally:
            writer.close()

    async def connect(self, host: str, port: int) -> socket.socket:
        """Reach the service by the name that the broker asks for."""
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        return sock

    def lab(self, data: dict[str, Any] | None = None, **more: Any) -> Lab:
        """Make a broker for a service of these settings."""
        settings = {
            "upstream": "https://api.lab.example",
            "credential": "env:KEY",
            "add": "bearer",
            "accept": ["bearer"],
            "allow": ["GET /v1/**", "POST /v1/**", "HEAD /v1/**"],
        }
        return self.lab_of(services.parse("lab", {**settings, **(data or {})}), **more)

    def lab_of(self, service: services.Service, **more: Any) -> Lab:
        """Make a broker for a service."""
        held = services.hold(service, Secret(CANARY.encode(), "none"))
        broker = Broker([held], self.connect, context(self.cert), self.records.append, **more)
        self._labs.append(Lab(broker, held, self.heads, self.records))
        return self._labs[-1]


def body(answer: bytes) -> bytes:
    """Return what follows an answer's head."""
    return answer.partition(b"\r\n\r\n")[2]
