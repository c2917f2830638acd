"""`control.sock` over a real socket: calls, events, blobs, and everything that is refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import asyncssh
import pytest

from app.client import programs
from app.client.connection import Connection, connect, new_host_key, open_subsystem
from app.errors import AppError
from app.keeper import subsystem
from app.keeper.control import ControlServer
from app.keeper.guest_program import HOME
from app.programs import Program
from app.protocol import Event, SessionInfo
from app.rpc_parts import PIECE, LetGo, Put, Shelf, Wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import msgspec

    from app.client.session import SessionClient
    from app.keeper.carrying import ClientSession
    from app.keeper.guest_files import GuestFiles
    from app.keeper.guest_program import GuestProgram, Place

INFO = SessionInfo("0000000000", "n", "shell", "running", "/w", "tcg", 0.0)
BLOB = "ab" + "0" * 62


class FakeKeeper:
    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.news: asyncio.Queue[Event] = asyncio.Queue()
        self.called = asyncio.Event()

    async def call(self, method: str, params: msgspec.Raw) -> object:
        self.calls.append((method, bytes(params)))
        self.called.set()
        if method == "refuse":
            raise AppError("busy", "Not now.", "Wait")
        if method == "hang":
            await asyncio.Event().wait()
        if method == "long":
            return "x" * (20 * PIECE)
        return {"did": method}

    async def events(self) -> AsyncIterator[Event]:
        while True:
            yield await self.news.get()

    async def open_process(
        self,
        argv: tuple[str, ...],
        *,
        root: bool,
        term: tuple[str, int, int] | None,
        place: Place = HOME,
    ) -> GuestProgram:
        raise AppError("not-running", "There is no machine.")

    async def open_files(self, *, root: bool) -> GuestFiles:
        raise AppError("not-running", "There is no machine.")

    async def copy(self, client: ClientSession) -> int:
        raise AppError("not-running", "There is no machine.")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "control.sock"
        self.public, private = new_host_key()
        self.keeper = FakeKeeper()
        self.blobs = folder / "blobs"
        (self.blobs / BLOB[:2]).mkdir(parents=True)
        (self.blobs / BLOB[:2] / BLOB).write_bytes(b"content")
        (folder / "secret").write_bytes(b"secret")
        key = asyncssh.import_private_key(private)
        self.server = ControlServer(self.path, key, self.keeper, self.keeper, self.blobs)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    made.server.start()
    yield made
    await made.server.close()


@pytest.fixture
async def client(bench: Bench, tmp_path: Path) -> AsyncIterator[Connection]:
    connection = await Connection.open(tmp_path, lambda: tmp_path, bench.public)
    yield connection
    await connection.close()


async def test_calls_are_answered(bench: Bench, client: Connection) -> None:
    assert await client.ask("info", {"a": 1}, dict[str, str]) == {"did": "info"}
    assert bench.keeper.calls == [("info", b'{"a":1}')]


async def test_an_error_keeps_code_sentence_and_hint(client: Connection) -> None:
    with pytest.raises(AppError) as caught:
        await client.call("refuse", {})
    error = caught.value
    assert (error.code, error.message, error.hint) == ("busy", "Not now.", "Wait")


async def test_a_call_that_hangs_holds_no_other(client: Connection) -> None:
    with pytest.raises(AppError, match="did not answer 'hang'"):
        await client.call("hang", {}, timeout_s=0.05)
    assert await client.ask("info", {}, dict[str, str]) == {"did": "info"}


class WatchedShelf(Shelf):
    """The keeper's long values, and when a client begins and breaks off."""

    begun = asyncio.Event()
    let: asyncio.Queue[LetGo] = asyncio.Queue()

    def put(self, piece: Put) -> None:
        super().put(piece)
        self.begun.set()

    def piece(self, wanted: Wanted) -> bytes:
        self.begun.set()
        return super().piece(wanted)

    def let_go(self, named: LetGo) -> None:
        super().let_go(named)
        self.let.put_nowait(named)


@pytest.mark.parametrize("method", ["long", "info"])
async def test_a_long_value_that_is_broken_off_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(subsystem, "Shelf", WatchedShelf)
    monkeypatch.setattr(WatchedShelf, "begun", asyncio.Event())
    monkeypatch.setattr(WatchedShelf, "let", asyncio.Queue[LetGo]())
    bench = Bench(tmp_path)
    bench.server.start()
    client = await Connection.open(tmp_path, lambda: tmp_path, bench.public)
    long = "x" * (20 * PIECE)
    params = {} if method == "long" else {"a": long}
    async with asyncio.timeout(60):
        call = asyncio.create_task(client.call(method, params))
        await WatchedShelf.begun.wait()
        call.cancel()
        named = await WatchedShelf.let.get()
        assert named.result == (method == "long")
        assert await client.ask("echo", {"a": long}, dict[str, str]) == {"did": "echo"}
    await client.close()
    await bench.server.close()


async def test_events_arrive_after_subscribing(bench: Bench, client: Connection) -> None:
    await client.call("subscribe", {})
    await bench.keeper.news.put(Event("changes", INFO))
    async with asyncio.timeout(30):
        async for event in client.events():
            assert event == Event("changes", INFO)
            break


async def test_a_lost_keeper_fails_calls_and_events(bench: Bench, client: Connection) -> None:
    waiting = asyncio.create_task(client.call("hang", {}))
    await bench.keeper.called.wait()
    await bench.server.close()
    with pytest.raises(AppError) as caught:
        await waiting
    assert caught.value.code == "keeper-lost"
    with pytest.raises(AppError):
        await client.call("info", {})


async def test_another_host_key_is_not_spoken_to(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(AppError, match="Somebody else answers"):
        await Connection.open(tmp_path, lambda: tmp_path, new_host_key()[0])


async def test_the_first_call_must_be_hello(bench: Bench) -> None:
    ssh = await connect(bench.path, bench.public)
    writer, reader = await open_subsystem(ssh)
    writer.write(b'{"jsonrpc":"2.0","id":1,"method":"info"}\n')
    assert await asyncio.wait_for(reader.read(), 30) == b""
    assert bench.keeper.calls == []
    ssh.abort()
    await ssh.wait_closed()


@pytest.mark.parametrize("line", [b"no json\n", b"[1]\n", b'{"method": 3}\n', b"x" * (2 << 20)])
async def test_nonsense_ends_the_conversation(bench: Bench, line: bytes) -> None:
    ssh = await connect(bench.path, bench.public)
    writer, reader = await open_subsystem(ssh)
    writer.write(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}\n')
    assert b'"protocol":1' in await asyncio.wait_for(reader.readline(), 30)
    writer.write(line)
    assert await asyncio.wait_for(reader.read(), 30) == b""
    ssh.abort()
    await ssh.wait_closed()


async def test_blobs_are_read_and_nothing_else(client: Connection) -> None:
    sftp = await client.ssh.start_sftp_client()
    async with sftp.open(f"/{BLOB[:2]}/{BLOB}", "rb") as file:
        content: object = await file.read()  # pyright: ignore[reportUnknownVariableType]
    assert content == b"content"
    for path in ("/", "../secret", "/../secret", f"/{BLOB[:2]}/../../secret", "/etc/passwd"):
        with pytest.raises(asyncssh.SFTPError):
            async with sftp.open(path, "rb") as file:
                await file.read()


async def test_blobs_are_never_written(bench: Bench, client: Connection) -> None:
    sftp = await client.ssh.start_sftp_client()
    name = f"/{BLOB[:2]}/{BLOB}"
    attempts = [
        sftp.open(name, "wb"),
        sftp.open(name, "ab"),
        sftp.open(f"/{BLOB[:2]}/{'f' * 64}", "xb"),
    ]
    for attempt in attempts:
        with pytest.raises(asyncssh.SFTPPermissionDenied):
            await attempt
    for change in (
        sftp.remove(name),
        sftp.rename(name, "/x"),
        sftp.mkdir("/x"),
        sftp.rmdir("/ab"),
        sftp.symlink("/etc", "/x"),
        sftp.link(name, "/x"),
        sftp.chmod(name, 0o777),
        sftp.truncate(name, 0),
        sftp.listdir("/"),
    ):
        with pytest.raises(asyncssh.SFTPError):
            await change
    assert (bench.blobs / BLOB[:2] / BLOB).read_bytes() == b"content"


async def test_nothing_is_forwarded(client: Connection, tmp_path: Path) -> None:
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.ssh.open_connection("127.0.0.1", 22)  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.ssh.open_unix_connection(str(tmp_path / "control.sock"))  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(asyncssh.ChannelListenError):
        await client.ssh.forward_remote_port("", 0, "127.0.0.1", 22)


async def test_a_command_without_a_machine_says_so(client: Connection) -> None:
    done = await client.ssh.run("true")
    assert done.exit_status == 125
    assert "There is no machine" in str(done.stderr)


async def test_our_own_clients_get_that_as_an_error(client: Connection) -> None:
    async def never(_: bytes) -> None:
        raise AssertionError("it is no output")

    session = cast("SessionClient", client)
    running = await programs.start(session, Program(("true",)))
    with pytest.raises(AppError, match="There is no machine") as caught:
        await programs.carry(running, stdin=None, out=never, err=never)
    assert caught.value.code == "not-running"


async def test_an_unknown_subsystem_is_refused(client: Connection) -> None:
    _, reader = await open_subsystem(client.ssh, "other")
    assert await asyncio.wait_for(reader.read(), 30) == b""
