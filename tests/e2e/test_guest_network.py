"""A machine with a network card has its address, one way out, and one name server: the gateway.

What its kernel could do if it were the agent's is tried from the toolkit's root, which has all its
rights; the agent and the world's root have none to send frames of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dns.message
import pytest
import pytest_asyncio

from tests.e2e import vmlab
from tests.vm import egress_guest as guest
from tests.vm.egress_tap import WAIT_S, Judge, echo, resolve_here
from tests.vm.test_egress_gateway import arp_for, mended, tcp_frame
from vm.egress import frames
from vm.egress.dial import DirectDialer
from vm.egress.gateway import Gateway
from vm.egress.ipv6 import GATEWAY_IP
from vm.egress.kinds import GATEWAY, GUEST, MASK, MTU, Entry, Station
from vm.egress.table import NameTable
from vm.machine.commands import run_toolkit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm
together = pytest.mark.asyncio(loop_scope="module")
"""Tests that share a machine share a loop."""

GUEST_S = 300.0
HERE, OWN = str(IPv4Address(GATEWAY.ip)), str(IPv4Address(GUEST.ip))
NETMASK = str(IPv4Address(MASK))
OTHER_MAC = bytes.fromhex("02c10c4e0099")
GARBAGE = bytes(range(1, 256)) * 255
NEW_CARD = (
    "sh -c 'cd /sys/bus/virtio/drivers/virtio_net && card=$(ls -d virtio*) && "
    "echo $card > unbind && echo $card > bind && [ -e /sys/class/net/eth0 ]'"
)
"""Takes the card from its driver and gives it back, which begins anew as after a boot."""
PROGRAM = Path(guest.__file__).read_bytes()
DNS_QUERY = dns.message.make_query("fine.example", "A").to_wire()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def vm(guest_image: ImageSet) -> AsyncIterator[vmlab.LabVM]:
    """A machine with a card that leads nowhere yet."""
    async with vmlab.cold_vm(guest_image, network=True) as made:
        yield made


@together
async def test_the_card_is_up_and_leads_to_the_gateway_alone(vm: vmlab.LabVM) -> None:
    assert await vm.sh("cat /etc/resolv.conf") == f"nameserver {HERE}\n"
    routes = [line.split() for line in (await vm.sh("cat /proc/net/route")).splitlines()[1:]]
    way_out = [row for row in routes if row[1] == "00000000"]
    assert [row[0] for row in way_out] == ["eth0"]
    assert bytes.fromhex(way_out[0][2])[::-1] == GATEWAY.ip
    assert OWN in await vm.sh("cat /proc/net/fib_trie")
    six = [line.split() for line in (await vm.sh("cat /proc/net/ipv6_route")).splitlines()]
    (out,) = [row for row in six if row[1] == "00" and row[-1] == "eth0"]
    assert bytes.fromhex(out[4]) == GATEWAY_IP


class Far:
    """The far end of a machine's card: a gateway that knows one host, which says all back."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.judge, self.table = Judge(), NameTable()
        dialer = DirectDialer(self.judge, resolve_here)
        self.gateway = Gateway(self.judge, dialer, self.log.append, self.table)
        self.host = str(IPv4Address(self.table.bind("fine.example", 0.0)))

    def told(self) -> dict[str, int]:
        """How often the log told of each reason; nothing is merged any more after `detach`."""
        counts: Counter[str] = Counter()
        for entry in self.log:
            counts[entry.code] += entry.count
        return counts


@contextlib.asynccontextmanager
async def far_end(vm: vmlab.LabVM) -> AsyncGenerator[tuple[Far, int]]:
    """Serve a machine's card; yields also the port of the host."""
    far = Far()
    talks: set[asyncio.Task[None] | None] = set()

    async def say_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            await echo(reader, writer)

    server = await asyncio.start_server(say_back, "127.0.0.1", 0)
    serving = asyncio.create_task(far.gateway.serve(vm.spec.network_socket))
    try:
        yield far, server.sockets[0].getsockname()[1]
        assert not serving.done(), "the gateway ended"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        server.close()
        await server.wait_closed()
        await asyncio.wait_for(asyncio.gather(*filter(None, talks)), WAIT_S)


Step = tuple["Callable[..., Any]", tuple[Any, ...]]


async def do(vm: vmlab.LabVM, *steps: Step) -> list[Any]:
    """Do steps of `egress_guest` in the guest, one after the other; what each returned."""
    put = await run_toolkit(vm.ssh, "cat > /world/tmp/guest.py", stdin=PROGRAM)
    assert put.exit_code == 0, put
    orders = "".join(json.dumps([what.__name__, values]) + "\n" for what, values in steps)
    words = f"/usr/bin/python3 -P /tmp/guest.py - {GUEST.mac.hex()} {OWN} {HERE} {MTU}"
    done = await run_toolkit(
        vm.ssh, f"busybox chroot /world {words}", stdin=orders.encode(), timeout_s=GUEST_S
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(steps), done
    assert all("ok" in answer for answer in answers), answers
    return [answer["ok"] for answer in answers]


def hostile_frames() -> dict[str, tuple[bytes, str]]:
    """Return frames that no guest of good will sends, with the code of each."""
    as_gateway = frames.Wire(Station(GATEWAY.mac, GATEWAY.ip), GUEST)
    other_card = frames.Wire(Station(OTHER_MAC, GUEST.ip), GATEWAY)
    mine = frames.Wire(GUEST, GATEWAY)
    elsewhere = frames.Wire(GUEST, Station(GATEWAY.mac, bytes((8, 8, 8, 8))))
    head = GATEWAY.mac + GUEST.mac
    from_guest = bytes.fromhex("fd00c10c000e" + "00" * 9 + "02")
    six = b"\x60" + bytes(3) + b"\0\0\x3b\x40" + from_guest
    fragment, ping = bytearray(tcp_frame(b"x")), bytearray(elsewhere.udp(GUEST.ip, 8, 0, bytes(20)))
    fragment[20] |= 0x20
    ping[23] = frames.ICMP
    wrong = bytearray(tcp_frame(b"changed on the way"))
    wrong[-1] ^= 1
    return {
        "ARP from the gateway's address": (arp_for(GUEST.ip, own=GATEWAY.ip), "spoofed-gateway"),
        "ARP from a third": (arp_for(GATEWAY.ip, own=bytes((9, 9, 9, 9))), "spoofed-address"),
        "the gateway's card": (as_gateway.udp(GATEWAY.ip, 53, 9, DNS_QUERY), "spoofed-mac"),
        "a third card": (other_card.udp(GATEWAY.ip, 9, 53, DNS_QUERY), "spoofed-mac"),
        "the gateway's address": (mine.udp(GATEWAY.ip, 9, 53, DNS_QUERY), "spoofed-address"),
        "a third address": (mine.udp(bytes((10, 0, 0, 1)), 9, 53, DNS_QUERY), "spoofed-address"),
        "IPv6": (head + b"\x86\xdd" + six + bytes.fromhex("20010db8" + "00" * 11 + "01"), "ipv6"),
        "DNS of others": (elsewhere.udp(GUEST.ip, 9, 53, DNS_QUERY), "foreign-dns"),
        "QUIC": (elsewhere.udp(GUEST.ip, 9, 443, b"x"), "quic"),
        "DHCP": (elsewhere.udp(GUEST.ip, 68, 67, b"x"), "dhcp"),
        "another datagram": (elsewhere.udp(GUEST.ip, 9, 123, b"x"), "udp"),
        "a ping": (mended(ping), "icmp"),
        "no DNS at all": (mine.udp(GUEST.ip, 9, 53, b"x"), "not-dns"),
        "nothing after the head": (head + b"\x08\0", "short-ip"),
        "garbage": (head + b"\x08\0" + GARBAGE[:500], "ip-version"),
        "as much garbage as a frame holds": (head + b"\x08\0" + GARBAGE[:MTU], "ip-version"),
        "a fragment": (mended(fragment), "fragment"),
        "a wrong checksum": (bytes(wrong), "tcp-checksum"),
        "another protocol": (head + b"\x88\xcc" + GARBAGE[:100], "other-protocol"),
        "a short ARP": (head + b"\x08\x06" + GARBAGE[:10], "short-arp"),
        "a strange ARP": (head + b"\x08\x06" + GARBAGE[:40], "strange-arp"),
    }


@together
async def test_what_a_hostile_kernel_sends_is_told_by_its_reason_and_takes_nothing_over(
    vm: vmlab.LabVM,
) -> None:
    sent = hostile_frames()
    async with far_end(vm) as (far, port):
        works: Step = (guest.try_connect, (far.host, port, "?", GUEST_S))
        fails: Step = (guest.try_connect, (far.host, port, "?", 1.0))
        steps: list[Step] = [
            works,
            (guest.udp, (HERE, 53, DNS_QUERY.hex())),
            (guest.udp, ("8.8.8.8", 53, DNS_QUERY.hex())),
            (guest.try_connect, ("2001:db8::1", 80)),
            (guest.raw_frames, ([frame.hex() for frame, _ in sent.values()],)),
            works,
            # another card's address, then the card's own again
            (guest.set_mac, (OTHER_MAC.hex(),)),
            fails,
            (guest.set_mac, (GUEST.mac.hex(),)),
            (guest.reset_card, ()),
            works,
            # another address, then its own again
            (guest.set_address, ("198.19.255.77", "255.255.255.0")),
            fails,
            (guest.set_address, (OWN, NETMASK)),
            works,
            (guest.reset_card, ()),
            works,
        ]
        said = await do(vm, *steps)
        anew = await run_toolkit(vm.ssh, NEW_CARD)
        assert anew.exit_code == 0, anew
        steps += [(guest.set_address, (OWN, NETMASK)), works]
        said += await do(vm, *steps[-2:])
    for step, answer in zip(steps, said, strict=True):
        if step is works:
            assert answer[0] == "?", (answer, said)
        elif step is fails:
            assert answer[0] in ("TimeoutError", "OSError"), answer
    (_, (named, _), (foreign, _), (six, _), *_) = said
    assert far.host in dns.message.from_wire(bytes.fromhex(named)).to_text()
    assert (foreign, six) == ("ConnectionRefusedError", "PermissionError")
    wanted = Counter(code for _, code in sent.values())
    told = far.told()
    assert {code: told[code] for code in wanted if told[code] < wanted[code]} == {}
    assert all(far.gateway.counts[code] >= count for code, count in wanted.items())
    allowed = [one for one in far.log if one.kind == "open" and one.verdict == "allow"]
    assert {(one.host, one.port) for one in allowed} == {("fine.example", port)}


async def test_without_a_card_there_is_neither(forked_vm: vmlab.LabVM) -> None:
    assert (await forked_vm.sh("ls /sys/class/net")).split() == ["lo"]
    assert (await forked_vm.run("test", "-s", "/etc/resolv.conf")).exit_code != 0
