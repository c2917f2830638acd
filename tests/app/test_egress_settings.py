from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.config import Defaults, load_config, load_project, tighten
from app.egress.settings import AgentSettings, Project, Settings
from app.errors import AppError

if TYPE_CHECKING:
    from pathlib import Path


def configured(folder: Path, text: str) -> Path:
    (folder / "config.yaml").write_text(text)
    return folder


def project(folder: Path, text: str) -> Path:
    (folder / ".cloche.yaml").write_text(text)
    return folder


def test_the_default_is_standard_with_ask_and_not_permissive(tmp_path: Path) -> None:
    assert load_config(tmp_path).egress == Settings("standard", "", 60, {})


def test_options_are_read_for_all_and_for_an_agent(tmp_path: Path) -> None:
    text = "egress: {profile: locked, unlisted: ask, wait: 30}\n"
    text += "agents: {mine: {command: [x], egress: {profile: standard, providers: [openai]}}}\n"
    config = load_config(configured(tmp_path, text))
    expected = {"mine": AgentSettings("standard", ("openai",))}
    assert config.egress == Settings("locked", "ask", 30, expected)
    assert config.agents["mine"].command == ("x",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("egress: {profil: locked}\n", 1, "unknown key 'profil'"),
        ("egress:\n  profile: open\n", 2, "one of locked, standard, permissive"),
        ("egress:\n  unlisted: allow\n", 2, "one of ask, deny"),
        ("egress:\n  wait: 1\n", 2, "from 5 to 600"),
        ("agents:\n  a:\n    command: [x]\n    egress: {providers: [openia]}\n", 4, "no provider"),
        ("agents:\n  a:\n    command: [x]\n    egress: [x]\n", 4, "a mapping"),
    ],
)
def test_a_wrong_option_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(AppError, match=words) as caught:
        load_config(configured(tmp_path, text))
    assert f"config.yaml:{line}:" in caught.value.message


def test_a_project_tightens_and_never_widens(tmp_path: Path) -> None:
    found = load_project(project(tmp_path, "egress: {profile: locked, deny: ['*.ads.example']}\n"))
    assert found.tightened("standard", "ask") == ("locked", "ask")
    assert [(one.text, one.origin) for one in found.deny] == [("*.ads.example", ".cloche.yaml:1")]
    wide = load_project(project(tmp_path, "egress: {profile: permissive, unlisted: deny}\n"))
    assert wide.tightened("locked", "ask") == ("locked", "deny")
    assert Project().tightened("permissive", "") == ("permissive", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("egress: {allow: [x.example]}\n", "unknown key 'allow'"),
        ("egress: {unlisted: ask}\n", "may only set 'unlisted: deny'"),
        ("egress: {wait: 600}\n", "unknown key 'wait'"),
        ("egress:\n  deny:\n    - x..example\n", "is no host name"),
        ("egress: {deny: ['*.cloche.internal']}\n", "credential broker"),
        ("egress: {deny: x.example}\n", "must be a list"),
    ],
)
def test_a_project_that_would_allow_or_is_wrong_is_refused_before_anything_starts(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(AppError, match=words):
        load_project(project(tmp_path, text))
    with pytest.raises(AppError, match=words):
        tighten(Defaults(), tmp_path)


def test_a_project_without_a_word_about_the_network_changes_nothing(tmp_path: Path) -> None:
    assert load_project(tmp_path) == Project()
    assert load_project(project(tmp_path, "exclude: ['*.bin']\n")) == Project()
