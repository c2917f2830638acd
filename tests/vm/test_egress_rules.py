from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress.addresses import Own
from vm.egress.kinds import Request
from vm.egress.rules import BadRule, Rule, check_effective, deciding, parse_rule

LINK = Own()


@pytest.mark.parametrize(
    ("text", "host", "ports", "again"),
    [
        ("Pkgs.Example", "pkgs.example", (80, 443), "pkgs.example"),
        ("pkgs.example.:443", "pkgs.example", (443,), "pkgs.example:443"),
        (" git.example:443,22 ", "git.example", (22, 443), "git.example:22,443"),
        ("*.pkgs.example:80,443", "*.pkgs.example", (80, 443), "*.pkgs.example"),
        ("203.0.113.7", "203.0.113.7/32", (80, 443), "203.0.113.7/32"),
        ("203.0.113.0/24:5432", "203.0.113.0/24", (5432,), "203.0.113.0/24:5432"),
        ("2001:db8::/32", "2001:db8::/32", (80, 443), "[2001:db8::/32]"),
        ("[2001:db8::1]:443", "2001:db8::1/128", (443,), "[2001:db8::1/128]:443"),
    ],
)
def test_an_allow_has_one_form(text: str, host: str, ports: tuple[int, ...], again: str) -> None:
    rule = parse_rule(text, "allow")
    assert (rule.host, rule.ports, rule.text) == (host, ports, again)
    assert parse_rule(rule.text, "allow") == rule


def test_a_deny_without_a_port_means_every_port() -> None:
    rule = parse_rule("x.example", "deny")
    assert rule.ports == ()
    assert rule.text == "x.example"
    assert parse_rule("x.example:80,443", "deny").text == "x.example:80,443"
    assert rule.matches(Request("x.example", 22))


def test_a_port_can_be_marked_as_tls() -> None:
    rule = parse_rule("db.example:8443/tls,22", "allow")
    assert (rule.ports, rule.tls) == ((22, 8443), (8443,))
    assert rule.text == "db.example:22,8443/tls"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad-name"),
        (":443", "bad-name"),
        ("x.example:", "bad-port"),
        ("x.example:0", "bad-port"),
        ("x.example:65536", "bad-port"),
        ("x.example:-1", "bad-port"),
        ("x.example:+80", "bad-port"),
        ("x.example:4_4", "bad-port"),
        ("x.example:٤٤", "bad-port"),
        ("x.example:443,", "bad-port"),
        ("x.example:" + ",".join(map(str, range(1, 18))), "bad-port"),
        ("*", "bad-wildcard"),
        ("a.*.example", "bad-wildcard"),
        ("*.*.example", "bad-wildcard"),
        ("https://x.example", "bad-rule"),
        ("127.1", "bad-address"),
        ("0x7f.1:80", "bad-address"),
        ("10.0.0.1/8", "bad-address"),
        ("10.0.0.0/33", "bad-address"),
        ("x.example/24", "bad-address"),
        ("[::1", "bad-rule"),
        ("[::1]443", "bad-rule"),
        ("x" * 1000, "rule-too-long"),
        ("a\0b.example", "bad-name"),
    ],
)
def test_a_bad_rule_is_refused_with_a_printable_reason(text: str, code: str) -> None:
    with pytest.raises(BadRule) as caught:
        parse_rule(text, "allow")
    assert caught.value.code == code
    assert caught.value.reason.isascii()
    assert caught.value.reason.isprintable()


def test_a_network_with_host_bits_is_told_what_was_meant() -> None:
    with pytest.raises(BadRule, match=r"did you mean 10\.0\.0\.0/8\?"):
        parse_rule("10.0.0.1/8", "deny")


@pytest.mark.parametrize(
    ("text", "private", "users", "code"),
    [
        ("10.0.0.0/8:5432", False, True, "needs-private"),
        ("10.0.0.0/8:5432", True, False, "not-effective"),
        ("100.64.0.0/10", False, True, "needs-private"),
        ("127.0.0.1:8080", True, True, "not-effective"),
        ("169.254.169.254", True, True, "not-effective"),
        ("198.18.0.1", True, True, "not-effective"),
        ("224.0.0.0/4", True, True, "not-effective"),
        ("[2001:4860::/32]", False, True, "not-effective"),
        ("localhost", False, True, "not-effective"),
        ("printer.local", False, True, "not-effective"),
        ("*.localhost", False, True, "not-effective"),
        ("llm.cloche.internal", False, True, "internal-name"),
        ("*.com", False, True, "too-wide"),
    ],
)
def test_an_allow_that_never_takes_effect_is_refused(
    text: str, private: bool, users: bool, code: str
) -> None:
    rule = parse_rule(text, "allow", private=private)
    with pytest.raises(BadRule) as caught:
        check_effective(rule, LINK, users=users)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "private"),
    [("10.0.0.0/8:5432", True), ("8.8.8.0/24", False), ("0.0.0.0/0", False), ("*.lan", False)],
)
def test_an_allow_that_can_take_effect_is_taken(text: str, private: bool) -> None:
    check_effective(parse_rule(text, "allow", private=private), LINK, users=True)


@pytest.mark.parametrize("text", ["*.cloche.internal", "llm.cloche.internal:80", "cloche.internal"])
def test_a_deny_of_cloches_own_services_is_refused_for_it_would_deny_nothing(text: str) -> None:
    with pytest.raises(BadRule, match="services of Cloche's credential broker") as caught:
        check_effective(parse_rule(text, "deny"), LINK, users=True)
    assert caught.value.code == "internal-name"


def test_every_other_deny_is_taken() -> None:
    for text in ("127.0.0.1", "*.com", "localhost", "[2001:db8::/32]", "*.internal"):
        check_effective(parse_rule(text, "deny"), LINK, users=False)


def test_a_dns_question_is_allowed_by_any_port_and_denied_only_by_all() -> None:
    question = Request("x.example")
    assert parse_rule("x.example:22", "allow").matches(question)
    assert not parse_rule("x.example:22", "deny").matches(question)
    assert parse_rule("x.example", "deny").matches(question)


def test_in_a_level_a_deny_wins_and_then_the_longer_name() -> None:
    rules = [parse_rule(text, "allow") for text in ("*.example", "a.b.example", "*.b.example")]
    found = deciding(rules, Request("a.b.example", 443), 0)
    assert found is not None
    assert found.host == "a.b.example"
    deny = parse_rule("*.example:443", "deny")
    assert deciding([*rules, deny], Request("a.b.example", 443), 0) == deny
    assert deciding([*rules, deny], Request("a.b.example", 80), 0) == found


def test_a_rule_with_an_end_ends() -> None:
    rule = Rule("allow", "x.example", (443,), until=60.0)
    assert deciding([rule], Request("x.example", 443), 59.9) == rule
    assert deciding([rule], Request("x.example", 443), 60.0) is None


@given(st.text(max_size=60), st.booleans())
def test_any_text_is_a_rule_or_refused(text: str, allow: bool) -> None:
    try:
        rule = parse_rule(text, "allow" if allow else "deny")
    except BadRule:
        return
    assert parse_rule(rule.text, rule.effect) == rule
