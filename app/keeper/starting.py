"""How a session gets its machine: memory for it, a jail, a snapshot, QEMU, a guest that answers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from app.keeper.engine import boot_guest, start_machine
from app.records import Process
from vm.errors import GuestSilent
from vm.machine.jail_check import OPEN
from vm.steps import reached

if TYPE_CHECKING:
    from app.keeper.boot import Machinery, Workshop
    from app.keeper.engine import Engine
    from app.keeper.governor import Governor
    from app.keeper.ledger import Ledger
    from app.keeper.network import GuestNetwork
    from app.keeper.tree import Tree
    from vm.machine.jail import Jail
    from vm.machine.machine import Machine


log = logging.getLogger(__name__)

FIRST_S: Final = 45.0
"""Seconds after which a machine whose guest says nothing is given up for a second one.

In thousands of emulated boots, which take 2 to 25 seconds as the host is busy, one stood still.
"""

BOOT_S: Final = 120.0
"""Seconds that the second one has: it may have been the host, and nothing follows."""

AGAIN: Final = "The machine was started twice, for nothing in the first one answered"
"""Begins the notice of a session for as long as its second machine runs."""


class Starter:
    """Takes the steps of a start and writes each one down before the next begins.

    So a keeper that follows one which was killed knows how far it came. Who calls this gives memory
    and network back where a step fails.
    """

    def __init__(
        self,
        ledger: Ledger,
        tree: Tree,
        network: GuestNetwork,
        workshop: Workshop,
        memory: Governor,
    ) -> None:
        self._ledger = ledger
        self._tree = tree
        self._network = network
        self._workshop = workshop
        self._memory = memory

    async def start(self, *, agent: bool) -> Engine:
        """Return a machine whose guest answers; without `agent` it has no network.

        Raises VMError, SnapshotError, AppError or OSError. A machine whose guest does not answer is
        ended before that.
        """
        if agent:
            await self._network.prepare()
        await self._memory.enter()
        jail = await self._jail()
        await self._prepare()
        await self._memory.granted()
        try:
            return await self._boot(jail, FIRST_S, agent=agent)
        except GuestSilent as silent:
            await self._begin_again(silent, agent=agent)
        return await self._boot(jail, BOOT_S, agent=agent)

    async def _boot(self, jail: Jail | None, patience_s: float, *, agent: bool) -> Engine:
        machinery = await self._workshop.machinery(jail, network=agent and self._network.on)
        reached("boot.machinery")
        machine = await self._qemu(machinery)
        if agent:
            self._network.start(machine.spec.network_socket)
        engine = await boot_guest(machine, machinery, patience_s)
        reached("boot.guest")
        self._ledger.change(boot_ms=engine.boot_ms)
        return engine

    async def _begin_again(self, silent: GuestSilent, *, agent: bool) -> None:
        """Say what happened to the first machine, and prepare for a second."""
        log.warning("%s Its console ends with:\n%s", silent.message, silent.console)
        said = f"{AGAIN}. What it did: cloche logs {self._ledger.record.id}"
        self._ledger.change(notices=(*self._ledger.state.notices, said))
        if agent:
            await self._network.stop()
            await self._network.prepare()

    async def _jail(self) -> Jail | None:
        """Find QEMU's jail and say at every start when there is none. Raises NoJail."""
        choice = await self._workshop.jail()
        old = (OPEN, AGAIN)
        others = tuple(text for text in self._ledger.state.notices if not text.startswith(old))
        notices = (choice.notice, *others) if choice.notice else others
        self._ledger.change(jail="on" if choice.jail else "off", notices=notices)
        return choice.jail

    async def _prepare(self) -> None:
        """Take the snapshot, once in a session's life, and open it where it is to be reviewed."""
        if not self._ledger.state.prepared:
            notices = await self._workshop.prepare()
            self._ledger.change(prepared=True, notices=(*self._ledger.state.notices, *notices))
            reached("start.prepared")
        if not self._ledger.record.sandbox:
            await self._tree.open()

    async def _qemu(self, machinery: Machinery) -> Machine:
        """Start QEMU and note its process, so that whoever comes next finds it."""
        machine = await start_machine(machinery)
        reached("boot.answers")
        process = Process.here(machine.pid, machine.start_time)
        notices = self._ledger.state.notices
        if machinery.notice and machinery.notice not in notices:
            notices = (*notices, machinery.notice)
        self._ledger.change(
            machine=process, accelerator=machinery.spec.accelerator, notices=notices
        )
        self._memory.hold(process)
        reached("boot.noted")
        return machine
