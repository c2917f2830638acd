from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress.addresses import (
    METADATA,
    PRIVATE,
    WORDS,
    Own,
    blocked,
    check,
    check_all,
    literal,
    never_reachable,
)
from vm.egress.own import parse_fib_trie, parse_if_inet6, read_own

if TYPE_CHECKING:
    from pathlib import Path

LINK = Own()
V4 = st.ip_addresses(v=4)
V6 = st.ip_addresses(v=6)


def code(text: str, own: Own = LINK) -> str | None:
    found = blocked(ipaddress.ip_address(text), own)
    return None if found is None else found.code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0.0.0", "reserved-address"),
        ("0.255.255.255", "reserved-address"),
        ("1.0.0.0", None),
        ("9.255.255.255", None),
        ("10.0.0.0", "private-address"),
        ("10.255.255.255", "private-address"),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("100.64.0.0", "cgnat-address"),
        ("100.127.255.255", "cgnat-address"),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("127.0.0.0", "loopback-address"),
        ("127.255.255.255", "loopback-address"),
        ("128.0.0.0", None),
        ("169.253.255.255", None),
        ("169.254.0.0", "link-local-address"),
        ("169.254.255.255", "link-local-address"),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("172.16.0.0", "private-address"),
        ("172.31.255.255", "private-address"),
        ("172.32.0.0", None),
        ("192.0.0.1", "reserved-address"),
        ("192.0.1.0", None),
        ("192.0.2.1", "documentation-address"),
        ("192.0.3.0", None),
        ("192.88.99.1", "reserved-address"),
        ("192.167.255.255", None),
        ("192.168.0.0", "private-address"),
        ("192.168.255.255", "private-address"),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.18.0.0", "gateway-address"),
        ("198.19.255.255", "gateway-address"),
        ("198.20.0.0", None),
        ("198.51.100.7", "documentation-address"),
        ("203.0.113.7", "documentation-address"),
        ("223.255.255.255", None),
        ("224.0.0.0", "multicast-address"),
        ("239.255.255.255", "multicast-address"),
        ("240.0.0.0", "reserved-address"),
        ("255.255.255.255", "reserved-address"),
    ],
)
def test_each_border_of_the_ipv4_table(text: str, expected: str | None) -> None:
    assert code(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::", "reserved-address"),
        ("::1", "loopback-address"),
        ("::2", "transition-address"),
        ("::127.0.0.1", "transition-address"),
        ("::ffff:8.8.8.8", "transition-address"),
        ("::ffff:10.0.0.1", "transition-address"),
        ("::ffff:0:8.8.8.8", "transition-address"),
        ("64:ff9b::8.8.8.8", None),
        ("64:ff9b::a9fe:a9fe", "metadata-address"),
        ("64:ff9b::127.0.0.1", "loopback-address"),
        ("64:ff9b::10.0.0.1", "private-address"),
        ("64:ff9b::198.18.0.1", "gateway-address"),
        ("64:ff9b:1::8.8.8.8", "transition-address"),
        ("100::1", "reserved-address"),
        ("2001::1", "transition-address"),
        ("2001:2::1", "reserved-address"),
        ("2001:10::1", "reserved-address"),
        ("2001:db8::1", "documentation-address"),
        ("2001:4860:4860::8888", None),
        ("2001:4860::5efe:10.0.0.1", "transition-address"),
        ("2001:4860::200:5efe:8.8.8.8", "transition-address"),
        ("2002:7f00::", "transition-address"),
        ("2002:808:808::1", "transition-address"),
        ("2606:4700::1111", None),
        ("3fff::1", "documentation-address"),
        ("5f00::1", "reserved-address"),
        ("fc00::1", "private-address"),
        ("fd12:3456::1", "private-address"),
        ("fd00:ec2::254", "metadata-address"),
        ("fe80::1", "link-local-address"),
        ("fe80::1%eth0", "link-local-address"),
        ("febf::1", "link-local-address"),
        ("fec0::1", "private-address"),
        ("ff02::1", "multicast-address"),
        ("ff0e::1", "multicast-address"),
    ],
)
def test_each_kind_of_the_ipv6_table(text: str, expected: str | None) -> None:
    assert code(text) == expected


def test_metadata_is_absolute_even_where_its_number_looks_private_or_public() -> None:
    for address in METADATA:
        found = blocked(address, LINK)
        assert found is not None
        assert found.code == "metadata-address"
        assert check(address, private=True, own=LINK) == found


def test_this_machine_is_never_reachable_in_any_form() -> None:
    own = Own(frozenset((IPv4Address("10.1.2.3"), IPv6Address("2606:4700::5"))))
    assert code("10.1.2.3", own) == "own-address"
    assert code("64:ff9b::10.1.2.3", own) == "own-address"
    assert code("2606:4700::5", own) == "own-address"
    assert code("10.1.2.4", own) == "private-address"


def test_private_opens_to_a_rule_and_absolute_does_not() -> None:
    for text in ("10.0.0.1", "100.64.0.1", "fd00::1", "192.0.2.9"):
        assert check(ipaddress.ip_address(text), private=True, own=LINK) is None
        assert check(ipaddress.ip_address(text), private=False, own=LINK) is not None
    for text in ("127.0.0.1", "169.254.1.1", "::ffff:10.0.0.1", "224.0.0.1"):
        assert check(ipaddress.ip_address(text), private=True, own=LINK) is not None


def test_one_forbidden_address_refuses_the_whole_name() -> None:
    mixed = [IPv4Address("8.8.8.8"), IPv4Address("10.0.0.1"), IPv4Address("127.0.0.1")]
    found = check_all(mixed, private=False, own=LINK)
    assert found is not None
    assert found.code == "loopback-address"
    assert check_all(mixed[:1], private=False, own=LINK) is None
    assert check_all(mixed[:2], private=True, own=LINK) is None


@given(st.one_of(V4, V6))
def test_what_is_not_global_is_never_let_through(address: IPv4Address | IPv6Address) -> None:
    found = blocked(address, LINK)
    if found is None:
        assert address.is_global or address in ipaddress.ip_network("64:ff9b::/96")
        assert not address.is_multicast
        assert not address.is_loopback
        assert not address.is_link_local
    else:
        assert found.code in WORDS
        assert found.reason.isprintable()


@given(V4, st.sampled_from(("::ffff:0:0", "64:ff9b::", "2002::", "::")), st.booleans())
def test_no_ipv6_form_opens_what_its_ipv4_address_does_not(
    address: IPv4Address, prefix: str, private: bool
) -> None:
    number = int(address) << 80 if prefix == "2002::" else int(address)
    form = IPv6Address(int(IPv6Address(prefix)) | number)
    if check(form, private, LINK) is None:
        assert check(address, private, LINK) is None


@given(V4, st.integers(8, 32))
def test_a_network_that_is_never_reachable_holds_no_address_that_is(
    address: IPv4Address, length: int
) -> None:
    network = ipaddress.IPv4Network((int(address) >> (32 - length) << (32 - length), length))
    found = never_reachable(network, LINK)
    if found is not None:
        inside = check(address, found.code not in PRIVATE, LINK)
        assert inside is not None


def test_a_network_that_is_partly_public_may_stand_in_a_rule() -> None:
    assert never_reachable(ipaddress.ip_network("0.0.0.0/0"), LINK) is None
    assert never_reachable(ipaddress.ip_network("8.8.8.0/24"), LINK) is None
    found = never_reachable(ipaddress.ip_network("168.63.129.16/32"), LINK)
    assert found is not None
    assert found.code == "metadata-address"


def test_the_kernels_tables_name_this_machines_addresses(tmp_path: Path) -> None:
    trie = (
        "  +-- 10.0.0.0/8\n     |-- 10.0.0.0\n        /8 link UNICAST\n"
        "     |-- 10.1.2.3\n        /32 host LOCAL\n"
    )
    table = "fe80000000000000021122fffe334455 02 40 20 80 eth0\nnonsense\n"
    assert parse_fib_trie(trie) == {IPv4Address("10.1.2.3")}
    assert parse_if_inet6(table) == {IPv6Address("fe80::211:22ff:fe33:4455")}
    (tmp_path / "trie").write_text(trie)
    assert read_own(tmp_path / "trie", tmp_path / "none").host == {IPv4Address("10.1.2.3")}
    with pytest.raises(FileNotFoundError):
        read_own(tmp_path / "none", tmp_path / "none")


def test_this_hosts_own_loopback_is_among_its_addresses() -> None:
    assert IPv4Address("127.0.0.1") in read_own().host


def test_an_address_is_read_in_its_usual_notation_only() -> None:
    assert literal("1.2.3.4") == IPv4Address("1.2.3.4")
    assert literal("[::1]") == IPv6Address("::1")
    assert literal("::1") == IPv6Address("::1")
    assert literal("127.1") is None
    assert literal("x.example") is None
