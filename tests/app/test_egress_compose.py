from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.egress.compose import About, compose
from app.egress.registries.gather import Host
from app.egress.session import (
    SessionEgress,
    add_session_rule,
    read_session_egress,
    started_with,
    write_session_egress,
)
from app.errors import AppError
from app.paths import Paths
from vm.egress.kinds import Request
from vm.egress.policy import decide
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from pathlib import Path

    from app.egress.session import Profile


def here(root: Path) -> tuple[Paths, Path, Host]:
    """Make a user with a registry, a rule for always and one for a workspace that denies a name."""
    paths = Paths(*(root / name for name in ("state", "data", "config", "cache", "run")))
    workspace = root / "work"
    for folder in (paths.config, workspace, root / "home"):
        folder.mkdir(parents=True)
    (root / "home" / ".npmrc").write_text("registry=https://npm.example/\n")
    (paths.config / "rules.yaml").write_text(
        "always: {allow: [a.example], deny: [spy.example]}\n"
        f"projects:\n  {workspace}: {{allow: [p.example]}}\n"
    )
    (workspace / ".cloche.yaml").write_text("egress: {deny: [a.example]}\n")
    return paths, workspace, Host(root, root / "home", {})


def said(root: Path, host: str, egress: SessionEgress | None = None) -> tuple[str, str]:
    paths, workspace, tools = here(root)
    about = About("shell", workspace, egress or SessionEgress())
    verdict = decide(Request(host, 443), compose(paths, about, tools).policy)
    return verdict.action, verdict.level


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("a.example", ("deny", "project")),
        ("p.example", ("allow", "user")),
        ("spy.example", ("deny", "always")),
        ("npm.example", ("allow", "user")),
        ("s.example", ("allow", "session")),
        ("api.anthropic.com", ("allow", "profile")),
        ("other.example", ("ask", "default")),
    ],
)
def test_every_file_has_its_say(tmp_path: Path, host: str, expected: tuple[str, str]) -> None:
    assert said(tmp_path, host, started_with("", ["s.example"], [])) == expected


def test_the_locked_profile_takes_no_registry(tmp_path: Path) -> None:
    assert said(tmp_path, "npm.example", started_with("locked", [], [])) == ("deny", "default")


@pytest.mark.parametrize("empty", ["[]", ""])
@pytest.mark.parametrize("profile", ["locked", "standard"])
def test_an_empty_list_allows_nothing(tmp_path: Path, empty: str, profile: Profile) -> None:
    paths, workspace, tools = here(tmp_path)
    (paths.config / "rules.yaml").write_text(f"always: {{allow: {empty}}}\n")
    about = About("shell", workspace, started_with(profile, [], []))
    with_lists = compose(paths, about, tools).policy
    (paths.config / "rules.yaml").unlink()
    without = compose(paths, about, tools).policy
    for host in ("p.example", "other.example", "npm.example", "203.0.113.9"):
        verdict = decide(Request(host, 443), with_lists)
        assert verdict == decide(Request(host, 443), without)
        assert (verdict.action == "allow") == ((host, profile) == ("npm.example", "standard"))


@pytest.mark.parametrize("options", [{"closed": True}, {"network": False}])
def test_a_closed_session_reaches_nothing(tmp_path: Path, options: dict[str, bool]) -> None:
    assert said(tmp_path, "p.example", started_with("", [], [], **options)) == ("deny", "session")


def test_a_sessions_rules_come_back_and_contradict_each_other_no_more(tmp_path: Path) -> None:
    write_session_egress(tmp_path, started_with("locked", ["x.example"], ["8.8.8.0/24:53"]))
    change = add_session_rule(tmp_path, parse_rule("*.example", "deny", origin="cli"))
    assert [one.text for one in change.removed] == ["x.example"]
    with pytest.raises(AppError, match="would never take effect"):
        add_session_rule(tmp_path, parse_rule("y.example", "allow"))
    found = read_session_egress(tmp_path)
    assert [(one.effect, one.rule) for one in found.rules] == [
        ("allow", "8.8.8.0/24:53"),
        ("deny", "*.example"),
    ]
    assert found.profile == "locked"


@pytest.mark.parametrize(
    ("names", "networks", "closed", "words"),
    [
        (["10.0.0.5"], [], False, "an address, not a name"),
        ([], ["x.example"], False, "a name, not an address"),
        ([], ["10.0.0.5:80"], False, "private addresses need"),
        (["*.com"], [], False, "top-level"),
        (["x.example"], [], True, "lets nothing through"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    names: list[str], networks: list[str], closed: bool, words: str
) -> None:
    with pytest.raises(AppError, match=words):
        started_with("", names, networks, closed=closed)


def test_a_damaged_file_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "egress.json").write_text('{"rules": [{"effect":"allow","rule":"..","origin":""}]}')
    with pytest.raises(AppError, match="does not hold"):
        read_session_egress(tmp_path)
