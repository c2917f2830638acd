from __future__ import annotations

import pytest

from vm.egress.addresses import Own
from vm.egress.kinds import Request
from vm.egress.policy import Policy, decide
from vm.egress.profiles import NAMES, ProfileName, load, profile, providers_of, tightest
from vm.egress.rules import check_effective


def action(name: ProfileName, host: str, port: int = 443, agent: str = "claude-code") -> str:
    return decide(Request(host, port), Policy(profile(name, providers_of(agent)))).action


@pytest.mark.parametrize(
    ("host", "port", "locked", "standard", "permissive"),
    [
        ("api.anthropic.com", 443, "allow", "allow", "allow"),
        ("console.anthropic.com", 443, "allow", "allow", "allow"),
        ("anthropic.com", 443, "deny", "ask", "allow"),
        ("api.anthropic.com", 80, "deny", "ask", "allow"),
        ("api.openai.com", 443, "deny", "ask", "allow"),
        ("github.com", 443, "deny", "allow", "allow"),
        ("github.com", 22, "deny", "allow", "allow"),
        ("raw.githubusercontent.com", 443, "deny", "allow", "allow"),
        ("registry-1.docker.io", 443, "deny", "allow", "allow"),
        ("unknown.example", 443, "deny", "ask", "allow"),
        ("8.8.8.8", 443, "deny", "deny", "allow"),
        ("10.0.0.1", 443, "deny", "deny", "deny"),
        ("169.254.169.254", 80, "deny", "deny", "deny"),
    ],
)
def test_what_each_profile_lets_through(
    host: str, port: int, locked: str, standard: str, permissive: str
) -> None:
    assert [action(name, host, port) for name in NAMES] == [locked, standard, permissive]


def test_an_agent_reaches_its_own_providers_and_an_unknown_one_all() -> None:
    assert action("locked", "api.openai.com", agent="codex") == "allow"
    assert action("locked", "api.openai.com", agent="gemini") == "deny"
    assert action("locked", "api.openai.com", agent="somebody") == "allow"
    assert set(providers_of("somebody")) == set(load().providers)


def test_every_rule_of_the_data_can_take_effect_and_says_where_it_is_from() -> None:
    for name in NAMES:
        found = profile(name, load().providers)
        for rule in found.rules:
            check_effective(rule, Own(), users=False)
            assert rule.origin.startswith(f"profile {name}, ")
            assert not rule.private


def test_the_agents_of_the_data_have_providers_that_it_has() -> None:
    data = load()
    assert all(set(found) <= set(data.providers) for found in data.agents.values())


def test_a_user_can_have_more_asked_or_less() -> None:
    asking = Policy(profile("locked", (), unlisted="ask"))
    assert decide(Request("unknown.example", 443), asking).action == "ask"


def test_an_agent_without_providers_reaches_none() -> None:
    assert profile("locked", ()).rules == ()


def test_the_tighter_profile_wins() -> None:
    assert tightest("standard", "locked") == "locked"
    assert tightest("standard", "permissive") == "standard"


def test_no_profile_is_wider_than_the_next() -> None:
    rank = {"deny": 0, "ask": 1, "allow": 2}
    for host in ("api.anthropic.com", "github.com", "unknown.example", "8.8.8.8"):
        found = [rank[action(name, host)] for name in NAMES]
        assert found == sorted(found)
