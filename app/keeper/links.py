"""The two links to one guest: made when they are needed, made again when they broke."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import asyncssh

from app.keeper.threads import end_tasks
from vm.errors import LinkLost
from vm.machine import ssh as guest_ssh
from vm.machine.bulk import BulkClient
from vm.machine.shells import Shells

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from vm.machine.identity import Identity
    from vm.machine.spec import MachineSpec

SYNC_S: Final = 30.0
SYNCER: Final = "while read line; do sync; echo; done"

CONNECT_S: Final = 20.0
"""Seconds that one attempt to reach the guest may take."""

WATCH_S: Final = 1.0
"""How often it is looked at whether a machine stands still; far shorter than sshd's patience."""


class Links:
    """Hands out the SSH connection and the bulk client of a running machine."""

    def __init__(
        self, spec: MachineSpec, identity: Identity, ssh: asyncssh.SSHClientConnection | None
    ) -> None:
        self._spec = spec
        self._identity = identity
        self._ssh = ssh
        self._shells: Shells | None = None
        self._bulk: BulkClient | None = None
        self._syncer: asyncssh.SSHClientProcess[bytes] | None = None
        self._attempt: asyncio.Task[asyncssh.SSHClientConnection] | None = None
        self._using_bulk = asyncio.Lock()

    async def ssh(self) -> asyncssh.SSHClientConnection:
        """Return a live connection. Raises LinkLost after one attempt, which all callers share."""
        if self._ssh is not None and not self._ssh.is_closed():
            return self._ssh
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_task(self._connect())
            self._attempt.add_done_callback(_taken)
        return await asyncio.shield(self._attempt)

    async def _connect(self) -> asyncssh.SSHClientConnection:
        self._ssh = await guest_ssh.connect(self._spec.control_socket, self._identity, CONNECT_S)
        return self._ssh

    async def watch(self, still: Callable[[], bool]) -> None:
        """Ask the guest's sshd now and then whether it is there; not while the machine is `still`.

        A connection without an answer ends, and the next one is made when it is needed. A machine
        that stands still answers nothing, and what runs in it goes on with it.
        """
        asked: tuple[asyncssh.SSHClientConnection | None, bool] = (None, True)
        while True:
            if asked != (asked := (self._ssh, not still())) and self._ssh is not None:
                self._ssh.set_keepalive(guest_ssh.KEEPALIVE_S if asked[1] else 0)
            await asyncio.sleep(WATCH_S)

    async def shells(self) -> tuple[asyncssh.SSHClientConnection, Shells]:
        """Return a live connection and its shells. Raises LinkLost."""
        ssh = await self.ssh()
        if self._shells is None or self._shells.connection is not ssh:
            self._shells = Shells(ssh)
        return ssh, self._shells

    async def log_in(self, port: socket.socket, username: str) -> asyncssh.SSHClientConnection:
        """Log in to another of the guest's sshds, at the other end of `port`. Raises LinkLost."""
        inner = await guest_ssh.log_in(port, self._identity, CONNECT_S, username)
        inner.set_keepalive(0)  # it ends with the connection that carries it
        return inner

    async def sync(self) -> None:
        """Make the guest write everything to its disks; returns when it is there.

        One shell waits in the guest for this, so that a pass costs no login. Raises LinkLost.
        """
        ssh = await self.ssh()
        try:
            async with asyncio.timeout(SYNC_S):
                if self._syncer is None or self._syncer.is_closing():
                    self._syncer = await ssh.create_process(SYNCER, encoding=None)
                self._syncer.stdin.write(b"\n")
                if await self._syncer.stdout.readexactly(1) == b"\n":
                    return
        except (asyncssh.Error, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._drop_syncer()
            raise LinkLost("The guest did not write its disks.") from error

    def _drop_syncer(self) -> None:
        syncer, self._syncer = self._syncer, None
        if syncer is not None:
            syncer.close()

    @property
    def bulk_lock(self) -> asyncio.Lock:
        """Held for a whole series of bulk calls that belong together."""
        return self._using_bulk

    async def bulk(self) -> BulkClient:
        """Return a live bulk client; call it with `bulk_lock` held. Raises LinkLost."""
        if self._bulk is None:
            self._bulk = await BulkClient.connect(
                self._spec.bulk_socket, self._identity.token, CONNECT_S
            )
        return self._bulk

    async def drop_bulk(self) -> None:
        """Forget a bulk client after it failed; the next call makes a new one."""
        bulk, self._bulk = self._bulk, None
        if bulk is not None:
            await bulk.close()

    async def close(self) -> None:
        """Hang up both."""
        await self.drop_bulk()
        self._drop_syncer()
        if self._shells is not None:
            await self._shells.close()
        if self._attempt is not None:
            await end_tasks([self._attempt])
        if self._ssh is not None:
            self._ssh.abort()
            self._ssh = None


def _taken(attempt: asyncio.Task[asyncssh.SSHClientConnection]) -> None:
    """Take an attempt's error: whoever asked for it may have gone away meanwhile."""
    if not attempt.cancelled():
        attempt.exception()
