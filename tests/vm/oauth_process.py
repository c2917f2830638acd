"""One of many that find a token at its end: `FILE PORT CERTIFICATE`, prints the token's digest."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vm.egress.broker.grant import Grant
from vm.egress.broker.oauth import renew
from vm.egress.broker.trust import context

GRANT = Grant(
    "login.lab.example", 443, "/token", "client-1",
    ("login", "access"), ("login", "refresh"), ("login", "expires"), milliseconds=True,
)  # fmt: skip


async def main(file: str, port: str, certificate: str) -> None:
    """Renew once."""

    async def connect(host: str, _: int) -> socket.socket:
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", int(port)))
        return sock

    token = await renew(Path(file), GRANT, connect, context(Path(certificate)))
    sys.stdout.write(hashlib.sha256(token.secret.reveal()).hexdigest())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
