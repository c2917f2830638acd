"""The order of the levels, as properties over a small world of names in which rules collide."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vm.egress.addresses import Own
from vm.egress.kinds import Request, Verdict
from vm.egress.policy import Policy, Profile, RuleLevel, decide, shadow
from vm.egress.rules import Rule, deciding, parse_rule

PUBLIC = IPv4Address("8.8.8.8")
STANDARD = Profile("standard", (parse_rule("git.example", "allow", origin="profile"),), "ask")
LOCKED = replace(STANDARD, name="locked", unlisted="deny", hidden=False)
OPEN = replace(STANDARD, name="permissive", unlisted="allow")

HOSTS = ("a.x.example", "b.x.example", "x.example", "c.a.x.example", "git.example", "8.8.8.8")
PATTERNS = ("a.x.example", "*.x.example", "x.example", "*.a.x.example", "*.example", "8.8.8.0/24")
PORTS = (443, 80, 22)
LEVELS: tuple[RuleLevel, ...] = ("always", "workspace", "session", "project", "user")
RANK = {"deny": 0, "ask": 1, "allow": 2}


def allow(text: str, private: bool = False) -> Rule:
    return parse_rule(text, "allow", private=private)


def deny(text: str) -> Rule:
    return parse_rule(text, "deny")


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    ports = draw(st.sampled_from(("", ":443", ":22", ":80,22")))
    text = draw(st.sampled_from(PATTERNS)) + ports
    if draw(st.booleans()):
        return deny(text)
    return allow(text, private=draw(st.booleans()))


SOME_RULES = st.lists(rules(), max_size=3).map(tuple)
DENIES = SOME_RULES.map(lambda found: tuple(rule for rule in found if rule.effect == "deny"))
PROFILES = st.sampled_from((STANDARD, LOCKED, OPEN))
POLICIES = st.builds(
    Policy, PROFILES, always=DENIES, workspace=DENIES, session=SOME_RULES, project=DENIES,
    user=SOME_RULES, ask=st.booleans(),
)  # fmt: skip
ADDRESSES = st.sampled_from(
    ((), (PUBLIC,), (IPv4Address("10.0.0.1"),), (PUBLIC, IPv4Address("127.0.0.1")))
)
REQUESTS = st.builds(Request, st.sampled_from(HOSTS), st.sampled_from((*PORTS, None)), st.just(()))


def added(policy: Policy, level: RuleLevel, rule: Rule) -> Policy:
    """Return the policy with one more rule in a level of rules."""
    match level:
        case "always":
            return replace(policy, always=(*policy.always, rule))
        case "workspace":
            return replace(policy, workspace=(*policy.workspace, rule))
        case "session":
            return replace(policy, session=(*policy.session, rule))
        case "project":
            return replace(policy, project=(*policy.project, rule))
        case _:
            return replace(policy, user=(*policy.user, rule))


def named(host: str, port: int | None = 443, *addresses: str) -> Request:
    return Request(host, port, tuple(ipaddress.ip_address(one) for one in addresses))


@given(REQUESTS, POLICIES)
def test_the_first_level_with_a_match_decides(request: Request, policy: Policy) -> None:
    verdict = decide(request, policy)
    full = replace(request, addresses=(PUBLIC,)) if request.host == "8.8.8.8" else request
    earlier: list[Rule] = []
    for level, found in policy.levels():
        rule = deciding(found, full, 0, earlier)
        earlier += found
        if rule is not None:
            assert (verdict.level, verdict.rule) == (level, rule.text)
            assert verdict.action == rule.effect
            return
    assert verdict.level == "default"


@given(REQUESTS, POLICIES, rules(), st.sampled_from(LEVELS))
def test_one_more_deny_never_allows_more(
    request: Request, policy: Policy, rule: Rule, level: RuleLevel
) -> None:
    tighter = added(policy, level, replace(rule, effect="deny"))
    assert RANK[decide(request, tighter).action] <= RANK[decide(request, policy).action]


@given(REQUESTS, POLICIES, SOME_RULES)
def test_a_project_only_tightens_whatever_it_says(
    request: Request, policy: Policy, found: tuple[Rule, ...]
) -> None:
    without = decide(request, replace(policy, project=()))
    assert RANK[decide(request, replace(policy, project=found)).action] <= RANK[without.action]


@given(REQUESTS, POLICIES, rules(), st.sampled_from(("always", "workspace")))
def test_what_the_user_denies_for_good_beats_every_answer(
    request: Request, policy: Policy, rule: Rule, level: RuleLevel
) -> None:
    denied = replace(rule, effect="deny")
    full = replace(request, addresses=(PUBLIC,)) if request.host == "8.8.8.8" else request
    if denied.matches(full):
        only = replace(policy, always=(), workspace=())
        verdict = decide(request, added(only, level, denied))
        assert (verdict.action, verdict.level) == ("deny", level)


@given(REQUESTS, POLICIES)
def test_a_name_that_dns_denies_is_denied_on_every_port(request: Request, policy: Policy) -> None:
    if decide(replace(request, port=None), policy).action == "deny":
        for port in PORTS:
            assert decide(replace(request, port=port), policy).action == "deny"


@given(REQUESTS, POLICIES)
def test_a_connection_that_is_let_through_had_an_answer_of_dns(
    request: Request, policy: Policy
) -> None:
    if decide(request, policy).action != "deny":
        assert decide(replace(request, port=None), policy).action != "deny"


@given(REQUESTS, POLICIES, ADDRESSES)
def test_what_a_name_leads_to_only_tightens(
    request: Request, policy: Policy, addresses: tuple[IPv4Address, ...]
) -> None:
    before = decide(request, policy)
    after = decide(replace(request, addresses=addresses), policy)
    if request.host != "8.8.8.8":
        assert RANK[after.action] <= RANK[before.action]
    if IPv4Address("127.0.0.1") in addresses:
        assert (after.action, after.level) == ("deny", "absolute")


@given(REQUESTS, POLICIES)
def test_where_nobody_can_be_asked_nothing_asks_and_nothing_else_changes(
    request: Request, policy: Policy
) -> None:
    asking = decide(request, replace(policy, ask=True))
    silent = decide(request, replace(policy, ask=False))
    assert silent.action == ("deny" if asking.action == "ask" else asking.action)


@given(REQUESTS, POLICIES)
def test_a_closed_session_reaches_nothing(request: Request, policy: Policy) -> None:
    assert decide(request, replace(policy, closed=True)).action == "deny"


@given(REQUESTS, POLICIES)
def test_every_verdict_says_why_in_one_printable_sentence(request: Request, policy: Policy) -> None:
    verdict = decide(request, policy)
    assert verdict.reason.isprintable()
    assert verdict.reason.endswith(".")
    assert verdict.code


HIDDEN = parse_rule("x.example:443", "allow")
NO_PORT = Request("x.example", None)


@given(rules(), POLICIES, st.sampled_from(("session", "user")), REQUESTS)
@example(HIDDEN, Policy(STANDARD, session=(deny("x.example:443"),)), "session", NO_PORT)
@example(HIDDEN, Policy(STANDARD, always=(deny("*.example:443"),)), "user", NO_PORT)
def test_a_rule_in_the_shadow_of_another_never_decides(
    rule: Rule, policy: Policy, level: RuleLevel, request: Request
) -> None:
    mine = replace(rule, origin="mine")
    if shadow(mine, level, policy) is not None:
        assert decide(request, added(policy, level, mine)).origin != "mine"


def test_a_name_is_answered_by_an_allow_only_while_one_of_its_ports_is_open() -> None:
    both = allow("x.example:80,22")
    one, other = deny("x.example:80"), deny("*.example:22")
    assert decide(NO_PORT, Policy(LOCKED, session=(both, one))).action == "allow"
    assert decide(NO_PORT, Policy(LOCKED, session=(both, one, other))).action == "deny"
    assert decide(NO_PORT, Policy(LOCKED, (other,), session=(one,), user=(both,))).action == "deny"
    assert decide(NO_PORT, Policy(STANDARD, session=(both, one, other))).action == "ask"
    ended = replace(other, until=1.0)
    assert decide(NO_PORT, Policy(LOCKED, (ended,), session=(both, one)), now=1.0).action == "allow"


def test_no_rule_at_all_allows_nothing() -> None:
    nothing = Policy(Profile("locked", (), "deny"))
    for host in HOSTS:
        assert decide(named(host), nothing).action == "deny"
    assert decide(named("x.example", None), nothing).action == "deny"


def verdict(
    request: Request, user: tuple[Rule, ...] = (), session: tuple[Rule, ...] = ()
) -> Verdict:
    return decide(request, Policy(STANDARD, user=user, session=session))


def test_a_private_address_needs_a_rule_of_the_user_that_says_so() -> None:
    request = named("db.example", 5432, "10.0.0.5")
    plain, private = allow("db.example:5432"), allow("db.example:5432", private=True)
    assert verdict(request, user=(plain,)).code == "private-address"
    assert verdict(request, user=(private,)).action == "allow"
    assert verdict(request, session=(private,)).code == "private-address"
    assert verdict(request, user=(private,), session=(plain,)).action == "deny"


def test_the_longer_name_can_take_private_back() -> None:
    user = (allow("*.corp.example", private=True), allow("out.corp.example"))
    assert verdict(named("in.corp.example", 443, "10.0.0.5"), user=user).action == "allow"
    assert verdict(named("out.corp.example", 443, "10.0.0.5"), user=user).action == "deny"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("127.0.0.1", "loopback-address"),
        ("169.254.169.254", "metadata-address"),
        ("::ffff:10.0.0.1", "transition-address"),
        ("64:ff9b::a9fe:a9fe", "metadata-address"),
        ("2002:7f00::", "transition-address"),
        ("224.0.0.1", "multicast-address"),
        ("198.18.0.5", "gateway-address"),
    ],
)
def test_an_allowed_name_that_leads_to_a_forbidden_address_is_refused(
    address: str, code: str
) -> None:
    private = allow("git.example", private=True)
    found = verdict(named("git.example", 443, "8.8.8.8", address), user=(private,))
    assert (found.action, found.level, found.code) == ("deny", "absolute", code)
    assert address.split("::")[0] in found.reason


def test_this_machines_own_address_is_refused_by_name_and_by_number() -> None:
    own = Own(frozenset((PUBLIC,)))
    policy = Policy(OPEN, user=(allow("8.8.8.0/24", private=True),))
    assert decide(named("8.8.8.8"), policy, own).code == "own-address"
    assert decide(named("x.example", 443, "8.8.8.8"), policy, own).code == "own-address"


def test_a_bare_address_is_never_asked_about() -> None:
    assert verdict(named("8.8.8.8")).code == "literal-address"
    assert verdict(named("8.8.8.8"), session=(allow("8.8.8.0/24"),)).action == "allow"
    assert verdict(named("10.0.0.5", 5432)).code == "private-address"
    assert verdict(named("[::1]")).code == "loopback-address"
    assert verdict(named("2001:4860::1")).code == "literal-address"


def test_a_name_is_not_allowed_by_a_network_but_is_denied_by_one() -> None:
    request = named("x.example", 443, "8.8.8.8")
    assert verdict(request, session=(allow("8.8.8.0/24"),)).action == "ask"
    assert verdict(request, session=(deny("8.8.8.0/24"),)).action == "deny"
    assert verdict(named("git.example", 443, "8.8.8.8"), user=(deny("8.8.8.8"),)).action == "deny"


@pytest.mark.parametrize("host", ["localhost", "db.localhost", "printer.local", "1.in-addr.arpa"])
def test_names_of_what_is_near_are_refused_and_not_asked_about(host: str) -> None:
    found = verdict(named(host), session=(allow("*.localhost"),))
    assert (found.action, found.level, found.code) == ("deny", "absolute", "local-name")


def test_an_internal_name_is_no_host() -> None:
    found = decide(named("llm.cloche.internal"), Policy(OPEN))
    assert (found.action, found.code) == ("deny", "internal-name")


@pytest.mark.parametrize(
    ("rule", "port", "profile", "ask", "words"),
    [
        ("x.example", 8443, STANDARD, True, "ports 80 and 443 alone; no rule allows x.example on"),
        ("x.example:22", 443, STANDARD, False, "port 22 alone; no rule allows x.example on"),
        ("*.example:22", 443, LOCKED, True, "port 22 alone; no rule allows x.example on port 443"),
        ("x.example", 8443, OPEN, True, "ports 80 and 443 alone; no rule is about x.example on"),
        ("8.8.8.8", 53053, STANDARD, True, "alone; no rule is about 8.8.8.8 on port 53053, which"),
        ("y.example", 8443, STANDARD, True, "No rule allows x.example (profile"),
    ],
)
def test_a_rule_of_the_host_for_other_ports_is_named(
    rule: str, port: int, profile: Profile, ask: bool, words: str
) -> None:
    mine = parse_rule(rule, "allow", origin="rules.yaml:3")
    host = "8.8.8.8" if rule == "8.8.8.8" else "x.example"
    found = decide(Request(host, port), Policy(profile, user=(mine,), ask=ask))
    assert words in found.reason
    assert ("(rules.yaml:3)" in found.reason) is (rule != "y.example")


@pytest.mark.parametrize("port", [53, 853])
@pytest.mark.parametrize("profile", [STANDARD, OPEN])
def test_the_dns_of_others_needs_a_rule_that_names_its_port(port: int, profile: Profile) -> None:
    # another's server is not asked, allowed name or not: the guest's own questions are answered
    for host in ("x.example", "git.example", "8.8.8.8"):
        found = decide(named(host, port), Policy(profile))
        assert (found.action, found.code) == ("deny", "foreign-dns")
        assert found.reason == f"Port {port} is another DNS server's; names are answered here."
    rule = allow(f"x.example:{port}")
    assert decide(named("x.example", port), Policy(profile, session=(rule,))).action == "allow"


def test_what_must_be_seen_depends_on_the_port() -> None:
    user = (allow("x.example:80,443,8443/tls,22"), allow("8.8.8.8:443,80"))
    seen = {port: verdict(named("x.example", port), user=user).inspect for port in (80, 443, 8443)}
    assert seen == {80: "http", 443: "tls", 8443: "tls"}
    assert verdict(named("x.example", 22), user=user).inspect == "none"
    assert verdict(named("8.8.8.8", 443), user=user).inspect == "none"


def test_only_the_locked_profile_refuses_a_hidden_name() -> None:
    assert decide(named("git.example"), Policy(LOCKED)).hidden is False
    assert decide(named("git.example"), Policy(STANDARD)).hidden is True


def test_once_ends_after_its_time() -> None:
    once = replace(allow("x.example:443"), until=60.0)
    policy = Policy(STANDARD, session=(once,))
    assert decide(named("x.example"), policy, now=59.0).action == "allow"
    assert decide(named("x.example"), policy, now=60.0).action == "ask"


def test_a_shadow_names_the_rule_that_is_in_the_way() -> None:
    policy = Policy(STANDARD, always=(deny("*.x.example"),), project=(deny("y.example"),))
    assert shadow(allow("a.x.example"), "user", policy) == ("always", deny("*.x.example"))
    assert shadow(allow("y.example"), "user", policy) == ("project", deny("y.example"))
    assert shadow(allow("y.example"), "session", policy) is None
    assert shadow(allow("*.example"), "user", policy) is None


def test_the_sessions_own_services_are_let_through_and_no_other_internal_name() -> None:
    policy = Policy(Profile("locked", (), "deny"), internal=("lab.cloche.internal",))
    for port in (None, 80):
        verdict = decide(Request("lab.cloche.internal", port), policy)
        assert (verdict.action, verdict.level, verdict.origin) == ("allow", "session", "broker")
        assert verdict.inspect == "none"  # the broker reads every request itself
    for host, port in (
        ("lab.cloche.internal", 443),
        ("a.lab.cloche.internal", 80),
        ("other.cloche.internal", 80),
        ("cloche.internal", 80),
    ):
        verdict = decide(Request(host, port), policy)
        assert (verdict.action, verdict.level) == ("deny", "absolute")
        assert "is no service of this session" in verdict.reason
    closed = replace(policy, closed=True)
    assert decide(Request("lab.cloche.internal", 80), closed).code == "closed"
