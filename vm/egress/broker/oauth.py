"""Tokens that run out, as of subscriptions: read from a program's own file, renewed, written back.

The file is JSON of the user's that another program wrote at login. Whoever finds the token at its
end renews it (RFC 6749, section 6) under a lock beside the file, so that of many sessions one does;
the others read what it wrote. A provider may take each refresh token only once: so room for the
new one is made before it is asked for, and the file is replaced in one step.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode

import h11

from vm.egress.broker import reference
from vm.egress.broker.pipes import CHUNK, Pipe
from vm.egress.broker.secret import Secret
from vm.egress.kinds import DialRefused, Refused
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from vm.egress.broker.exchange import Connect
    from vm.egress.broker.grant import Grant

MAX_FILE: Final = 65_536
"""Bytes of the file, and of the endpoint's answer."""
EARLY_S: Final = 60.0
"""A token is renewed that much before its end, for requests take their time."""
LOCK_S: Final = 45.0
"""Longer than a renewal by somebody else may take."""
RETRY_S: Final = 0.02
ANSWER_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its end in unix seconds."""

    secret: Secret
    until: float

    @property
    def fresh(self) -> bool:
        """Whether it need not be renewed yet."""
        return self.until - time.time() > EARLY_S


def read(path: Path, grant: Grant, workspaces: Sequence[Path] = ()) -> Token:
    """Read the token as the file has it, at its end or not. Raises BrokerRefused, unshown."""
    return _token(path, _data(path, workspaces), grant)


def _data(path: Path, workspaces: Sequence[Path]) -> dict[str, Any]:
    raw = reference.read_file(path, workspaces, MAX_FILE)
    try:
        data: object = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or len(raw) > MAX_FILE:
        raise BrokerRefused(f"{path} does not hold what a login writes.", "Log in anew.")
    return cast("dict[str, Any]", data)


def _token(path: Path, data: dict[str, Any], grant: Grant) -> Token:
    access, until = _at(data, grant.access), _at(data, grant.expires)
    if not isinstance(access, str) or not isinstance(until, (int, float)):
        raise BrokerRefused(f"{path} holds no token where the service says.", "Log in anew.")
    return Token(
        Secret(access.encode("utf-8", "replace"), f"Look at what {path} holds"),
        until / 1000 if grant.milliseconds else float(until),
    )


def _at(data: object, keys: tuple[str, ...]) -> object:
    for key in keys:
        data = cast("dict[str, object]", data).get(key) if isinstance(data, dict) else None
    return data


async def renew(path: Path, grant: Grant, connect: Connect, trust: ssl.SSLContext) -> Token:
    """Return a token that is fresh: the file's, or else one that is asked for and written there.

    Raises Refused: `token-lock`, `token-file`, `token-refused` or `token-lost`.
    """
    try:
        async with _locked(path):
            data = _data(path, ())
            token = _token(path, data, grant)
            return token if token.fresh else await _exchange(path, data, grant, connect, trust)
    except (BrokerRefused, OSError):
        raise Refused("token-file") from None


@contextlib.asynccontextmanager
async def _locked(path: Path) -> AsyncGenerator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(f"{path}.lock", flags, 0o600)
    try:
        end = time.monotonic() + LOCK_S
        while not _try(descriptor):
            if time.monotonic() > end:
                raise Refused("token-lock")
            await asyncio.sleep(RETRY_S)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _exchange(
    path: Path, data: dict[str, Any], grant: Grant, connect: Connect, trust: ssl.SSLContext
) -> Token:
    """Ask for a new token and write it down, with room for it made before. Raises Refused."""
    old = _at(data, grant.refresh)
    if not isinstance(old, str):
        raise Refused("token-file")
    descriptor, draft = tempfile.mkstemp(prefix=".cloche-", dir=path.parent)
    try:
        os.posix_fallocate(descriptor, 0, MAX_FILE * 2)
        said = await _ask(old, grant, connect, trust)
        _put(data, grant, said)
        text = json.dumps(data, indent=2).encode() + b"\n"
        os.pwrite(descriptor, text, 0)
        os.ftruncate(descriptor, len(text))
        os.fsync(descriptor)
        os.replace(draft, path)
    except BaseException:  # the file stays as it was, whatever came in between
        os.unlink(draft)
        raise
    finally:
        os.close(descriptor)
    return _token(path, data, grant)


def _put(data: dict[str, Any], grant: Grant, said: dict[str, Any]) -> None:
    until = time.time() + float(said["expires_in"])
    _set(data, grant.access, said["access_token"])
    _set(data, grant.expires, int(until * 1000) if grant.milliseconds else int(until))
    if "refresh_token" in said:  # it stays what it was where none is given (RFC 6749, 6)
        _set(data, grant.refresh, said["refresh_token"])


def _set(data: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    for key in keys[:-1]:
        data = data[key]
    data[keys[-1]] = value


async def _ask(old: str, grant: Grant, connect: Connect, trust: ssl.SSLContext) -> dict[str, Any]:
    form = {"grant_type": "refresh_token", "refresh_token": old, "client_id": grant.client_id}
    body = urlencode({name: value for name, value in form.items() if value}).encode("ascii")
    try:
        async with asyncio.timeout(ANSWER_S):
            sock = await connect(grant.host, grant.port)
            reader, writer = await asyncio.open_connection(
                sock=sock, ssl=trust, server_hostname=grant.host, limit=CHUNK
            )
            status, answer = await _post(Pipe(reader, writer, ANSWER_S, "token-lost"), grant, body)
    except (OSError, TimeoutError, DialRefused, h11.ProtocolError):
        raise Refused("token-lost") from None
    said = _said(answer)
    if status != 200 or said is None:
        raise Refused("token-refused")
    return said


async def _post(pipe: Pipe, grant: Grant, body: bytes) -> tuple[int, bytes]:
    host = grant.host if grant.port == 443 else f"{grant.host}:{grant.port}"
    headers = [
        ("host", host), ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"), ("accept-encoding", "identity"),
        ("content-length", str(len(body))), ("connection", "close"),
    ]  # fmt: skip
    try:
        await pipe.send(h11.Request(method="POST", target=grant.path, headers=headers))
        await pipe.send(h11.Data(data=body))
        await pipe.send(h11.EndOfMessage())
        status, answer = 0, b""
        while not isinstance(event := await pipe.event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                answer += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break  # it hung up
            if len(answer) > MAX_FILE:
                break
        return status, answer
    finally:
        await pipe.close()


def _said(answer: bytes) -> dict[str, Any] | None:
    """Return a whole answer (RFC 6749, 5.1) of which each value is what it must be."""
    try:
        said: object = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    found = cast("dict[str, Any]", said)
    texts = [found.get("access_token"), found.get("refresh_token", "none")]
    lasts = found.get("expires_in", 3600)
    good = all(isinstance(text, str) and text for text in texts) and type(lasts) in (int, float)
    return {**found, "expires_in": lasts} if good and 0 < lasts < 1e9 else None
