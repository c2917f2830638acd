"""How a session gets its machine: memory for it, a jail, a snapshot, QEMU, a guest that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.keeper.engine import boot_guest, start_machine
from app.records import Process
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
        machinery = await self._workshop.machinery(jail, network=agent and self._network.on)
        reached("boot.machinery")
        machine = await self._qemu(machinery)
        if agent:
            self._network.start(machine.spec.network_socket)
        engine = await boot_guest(machine, machinery)
        reached("boot.guest")
        self._ledger.change(boot_ms=engine.boot_ms)
        return engine

    async def _jail(self) -> Jail | None:
        """Find QEMU's jail and say at every start when there is none. Raises NoJail."""
        choice = await self._workshop.jail()
        others = tuple(text for text in self._ledger.state.notices if not text.startswith(OPEN))
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
