"""A machine with a network card has its address, one way out, and one name server: the gateway."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest

from tests.e2e import vmlab
from vm.egress.ipv6 import GATEWAY_IP
from vm.egress.kinds import GATEWAY, GUEST

if TYPE_CHECKING:
    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm


async def test_the_card_is_up_and_leads_to_the_gateway_alone(guest_image: ImageSet) -> None:
    async with vmlab.cold_vm(guest_image, network=True) as vm:
        assert await vm.sh("cat /etc/resolv.conf") == f"nameserver {IPv4Address(GATEWAY.ip)}\n"
        routes = [line.split() for line in (await vm.sh("cat /proc/net/route")).splitlines()[1:]]
        way_out = [row for row in routes if row[1] == "00000000"]
        assert [row[0] for row in way_out] == ["eth0"]
        assert bytes.fromhex(way_out[0][2])[::-1] == IPv4Address(GATEWAY.ip).packed
        local = await vm.sh("cat /proc/net/fib_trie")
        assert str(IPv4Address(GUEST.ip)) in local
        six = [line.split() for line in (await vm.sh("cat /proc/net/ipv6_route")).splitlines()]
        (out,) = [row for row in six if row[1] == "00" and row[-1] == "eth0"]
        assert bytes.fromhex(out[4]) == GATEWAY_IP


async def test_without_a_card_there_is_neither(forked_vm: vmlab.LabVM) -> None:
    assert (await forked_vm.sh("ls /sys/class/net")).split() == ["lo"]
    assert (await forked_vm.run("test", "-s", "/etc/resolv.conf")).exit_code != 0
