"""The gateway's two other ways: through this host's proxy, and to the session's broker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from app.client.launch import KEPT_VARIABLES, role_command
from app.keeper.gateway import GatewayKeeper
from tests.app.test_gateway_process import POLICY, WAIT_S, frame, look_up, send
from tests.vm.test_egress_gateway import tcp_frame
from tests.vm.test_egress_proxy import SECRET, RealProxy, echo
from vm.egress.dial_proxy import NOTE
from vm.egress.frames import SYN
from vm.egress.proxy import Proxies

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from vm.egress.kinds import Entry
    from vm.egress.policy import Policy

SYN_ACK = 0x12


@contextlib.asynccontextmanager
async def card(
    folder: Path, log: asyncio.Queue[Entry], policy: Policy, proxies: Proxies, door: str
) -> AsyncGenerator[socket.socket]:
    """A machine's end of its link, whose other end is a real gateway's process."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "net.sock"))
    listener.listen(1)
    listener.setblocking(False)
    keeper = GatewayKeeper(
        role_command("gateway"), folder, folder / "net.sock", policy, log=log.put_nowait,
        asked=lambda asked: None, fault=lambda text: None, proxies=proxies, door=door,
    )  # fmt: skip
    keeper.start()
    loop = asyncio.get_running_loop()
    end, _ = await asyncio.wait_for(loop.sock_accept(listener), WAIT_S)
    end.setblocking(False)
    try:
        yield end
    finally:
        end.close()
        await keeper.stop()
        listener.close()


async def opened(log: asyncio.Queue[Entry]) -> Entry:
    async with asyncio.timeout(WAIT_S):
        while (entry := await log.get()).kind != "open":
            pass
    return entry


async def test_a_guests_connection_goes_through_the_proxy(tmp_path: Path) -> None:
    log: asyncio.Queue[Entry] = asyncio.Queue()
    async with echo() as port, RealProxy(port) as proxy:
        proxies = proxy.proxies(f"me:{SECRET}@")
        async with card(tmp_path, log, POLICY, proxies, "") as end:
            assert await look_up(end, "b.dev.example") == "198.18.0.1"
            await send(end, tcp_frame(flags=SYN))
            assert (await frame(end))[47] == SYN_ACK
            entry = await opened(log)
    assert (entry.verdict, entry.note) == ("allow", NOTE)
    assert entry.address == f"proxy 127.0.0.1:{proxy.port}"
    assert SECRET not in repr(entry)
    assert proxy.heads[0].startswith("CONNECT b.dev.example:443 HTTP/1.1\r\n")


async def test_an_internal_name_leads_to_the_broker_alone(tmp_path: Path) -> None:
    log: asyncio.Queue[Entry] = asyncio.Queue()
    policy = replace(POLICY, internal=("lab.cloche.internal",))
    async with card(tmp_path, log, policy, Proxies(), str(tmp_path / "door")) as end:
        assert await look_up(end, "other.cloche.internal") == "3"  # no such name
        assert await look_up(end, "lab.cloche.internal") == "198.18.0.1"
        await send(end, tcp_frame(flags=SYN))  # to port 443, which is none of the broker's
        entry = await opened(log)
    assert (entry.verdict, entry.code) == ("deny", "internal-name")


def test_a_keeper_takes_the_ways_out_of_its_environment() -> None:
    assert {"HTTPS_PROXY", "https_proxy", "NO_PROXY", "ALL_PROXY"} <= set(KEPT_VARIABLES)
    program = (
        "import os; from app.keeper.role import _outside; found = _outside(-1);"
        "print(found.proxies.https.place, sorted(n for n in os.environ if 'prox' in n.lower()))"
    )
    env = {**os.environ, "HTTPS_PROXY": f"http://me:{SECRET}@proxy.example:8080", "no_proxy": "a"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "proxy.example:8080 []\n"
