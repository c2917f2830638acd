"""What the processors of a machine do, asked of QEMU: for a guest that says nothing itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from vm.errors import LinkLost
from vm.machine.qmp import QmpRefused
from vm.text import printable

if TYPE_CHECKING:
    from vm.machine.qmp import Qmp

ASK_S: Final = 2.0
"""Seconds that each of the two questions may take; the machine is about to be ended anyway."""

_FACTS: Final = re.compile(r"^CPU#\d+|\b(?:RIP|CPL|HLT)=\w+", re.MULTILINE)
"""Of QEMU's dump of registers: which processor, where it is, its privilege, whether it waits."""


async def doing(qmp: Qmp) -> str:
    """Return one line: the machine's status, then place and privilege of each processor.

    It goes into a log, so a machine that does not answer is an answer, too.
    """
    try:
        status = await qmp.execute("query-status", timeout_s=ASK_S)
        words = {"command-line": "info registers -a"}
        registers = await qmp.execute("human-monitor-command", words, timeout_s=ASK_S)
    except (LinkLost, QmpRefused) as error:
        return error.message
    found: list[str] = _FACTS.findall(str(registers))
    facts = cast("dict[str, object]", status) if isinstance(status, dict) else {}
    return printable(" ".join([f"{facts.get('status')}:", *found]))
