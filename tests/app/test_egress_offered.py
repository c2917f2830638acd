"""Rules that rows of the log offer, and how they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.egress.session import read_session_egress
from app.errors import AppError
from app.paths import Paths
from app.services.egress_rules import LocalEgress, offered, unoffered
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from pathlib import Path

    from vm.egress.rules import Effect


@pytest.mark.parametrize("host", ["pkgs.example", "a.b.example", "10.0.0.5", "2001:db8::1"])
@pytest.mark.parametrize("effect", ["allow", "deny", None])
def test_what_is_shown_is_what_would_be_read(host: str, effect: Effect | None) -> None:
    for one in offered(host, 8443, effect):
        again = parse_rule(one.rule.text, one.rule.effect)
        assert (again.host, again.ports) == (one.rule.host, one.rule.ports)
        assert one.text.startswith(f"{one.rule.effect} {one.rule.text} in ")
        assert one.wide is (effect is None)
        assert one.scope != "once"


def test_addresses_are_never_widened_and_what_is_no_name_gets_no_rule() -> None:
    assert offered("10.0.0.5", 443, None) == ()
    assert offered("2001:db8::1", 443, None) == ()
    assert offered("\x1b]0;x.example", 443, "allow") == ()
    assert [one.rule.text for one in offered("10.0.0.5", 443, "deny")] == ["10.0.0.5/32"] * 3


def test_no_rule_is_offered_that_would_have_no_effect_and_it_is_said_why() -> None:
    for effect in ("allow", "deny", None):
        assert offered("llm.cloche.internal", 80, effect) == ()
    reason, hint = unoffered("llm.cloche.internal", 80)
    assert "credential broker" in reason
    assert hint.endswith("cloche agents inspect NAME")
    assert offered("10.0.0.5", 5432, "allow") == ()
    reason, hint = unoffered("10.0.0.5", 5432)
    assert "private" in reason
    assert hint.endswith("cloche egress allow 10.0.0.5/32:5432 --project --private")
    assert unoffered("\x1b]0;x.example", 443)[1] == ""
    assert unoffered("pkgs.example", 443) == ("", "")


def test_a_session_that_is_gone_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    folders = (tmp_path / name for name in ("state", "data", "config", "cache", "run"))
    paths = Paths(*folders)
    choice = offered("pkgs.example", 443, "deny")[0]
    with pytest.raises(AppError, match="no session"):
        LocalEgress(paths).write("0123456789", choice)
    assert read_session_egress(paths.session("0123456789")).rules == ()
    assert not paths.config.exists()
