"""Agents as data: those that come with Cloche, what the user changes, and what is started."""

from __future__ import annotations

import json
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from app.agents import builtin
from app.broker.settings import BUILT_IN, BrokerSettings
from app.config import load_config
from app.errors import AppError
from app.main import run
from app.paths import Paths
from app.services.local import LocalFleet
from tests.doubles.images import put_image
from vm.egress.broker import services
from vm.egress.profiles import load
from vm.install import USUAL_PATH

if TYPE_CHECKING:
    from pathlib import Path

WELL_KNOWN = ("claude-code", "codex", "opencode", "gemini", "hermes")


def test_the_known_services_are_the_brokers() -> None:
    assert set(BUILT_IN) == set(services.builtin())


@pytest.mark.parametrize("name", WELL_KNOWN)
def test_what_an_agent_names_exists(name: str) -> None:
    agent = builtin()[name]
    assert set(agent.services) <= set(BUILT_IN)
    assert name in load().agents  # its providers' hosts
    assert (agent.below, agent.stands_on) == ("dev", name)  # it has an image of its own
    assert "{prefix}" in agent.install
    words = " ".join((*agent.argv("s1"), *agent.variables({}).values()))
    assert not any(f"{{{service}}}" in words for service in BUILT_IN)  # every address is filled in
    assert agent.command[0] in agent.argv("s1")


def test_addresses_of_services_are_filled_in() -> None:
    codex = builtin()["codex"].argv("s1", ("--help",))
    assert codex[-1] == "--help"
    assert any('base_url="http://openai.cloche.internal/v1"' in word for word in codex)
    text = builtin()["opencode"].variables({})["OPENCODE_CONFIG_CONTENT"]
    assert '"baseURL": "http://anthropic.cloche.internal/v1"' in text


def test_a_key_that_would_be_asked_about_comes_as_a_token() -> None:
    given = {"ANTHROPIC_API_KEY": "sk-ant-cloche-0"}
    found = builtin()["claude-code"].variables(given)
    assert (found["ANTHROPIC_AUTH_TOKEN"], found["ANTHROPIC_API_KEY"]) == ("sk-ant-cloche-0", "")


@pytest.mark.parametrize("name", WELL_KNOWN)
def test_settings_of_the_first_start_can_be_read(name: str) -> None:
    for path, text in builtin()[name].first_files().items():
        assert path.startswith("/home/agent/")
        assert "{anthropic}" not in text
        assert text
        assert not path.endswith((".json", ".yaml")) or yaml.safe_load(text)  # JSON is YAML
        assert not path.endswith(".json") or json.loads(text)


def test_codex_gets_settings_that_are_toml() -> None:
    words = builtin()["codex"].command
    assert set(words[1::2]) == {"-c"}
    found = tomllib.loads("\n".join(words[2::2]))
    assert found["model_providers"]["cloche"]["supports_websockets"] is False
    assert found["projects"]["/workspace"]["trust_level"] == "trusted"


def test_agents_ring_when_they_have_done_what_was_asked() -> None:
    """By its own settings: a session whose terminal rang waits for its user."""
    known = builtin()

    def settings(agent: str, name: str) -> Any:
        return yaml.safe_load(known[agent].first[f"/home/agent/{name}"])

    claude = settings("claude-code", ".claude/settings.json")
    assert claude["preferredNotifChannel"] == "terminal_bell"
    ((hook,),) = (one["hooks"] for one in claude["hooks"]["Stop"])
    said = subprocess.check_output(["sh", "-c", hook["command"]])
    assert json.loads(said) == {"terminalSequence": "\a"}
    codex = tomllib.loads("\n".join(known["codex"].command[2::2]))["tui"]
    assert codex == {"notification_method": "bel", "notification_condition": "always"}
    assert settings("gemini", ".gemini/settings.json")["general"]["notificationMethod"] == "bell"
    assert settings("hermes", ".hermes/config.yaml")["display"] == {"bell_on_complete": True}
    folder = "/home/agent/.config/opencode"
    plugin = known["opencode"].first[f"{folder}/plugin/ring.js"]
    assert 'writeFileSync("/dev/tty", "\\x07")' in plugin
    # it loads that at once only where nothing is left for it to install
    assert f"{folder}/node_modules/README" in known["opencode"].first
    assert settings("opencode", ".config/opencode/package-lock.json")["packages"][""] == {
        "dependencies": {"@opencode-ai/plugin": "*"}
    }


def test_a_program_that_was_brought_into_the_session_is_found_first() -> None:
    agent = builtin()["claude-code"]
    own = "/home/agent/.local/bin:/programs/bin"
    assert agent.variables({})["PATH"] == f"{own}:{USUAL_PATH}"
    assert agent.variables({"PATH": "/opt/bin"})["PATH"] == f"{own}:/opt/bin"
    assert builtin()["shell"].variables({"PATH": "/opt/bin"}) == {"PATH": "/opt/bin"}


def test_a_program_that_is_missing_says_how_to_bring_it(tmp_path: Path) -> None:
    agent = builtin()["claude-code"]
    done = subprocess.run(
        agent.argv("s1"), env={"PATH": "/bin:/usr/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 127
    assert "claude is not in this machine" in done.stderr
    line = agent.install.replace("{prefix}", "/home/agent/.local")
    assert f"cloche exec s1 -- sh -c '{line}'" in done.stderr
    assert "cloche image build claude-code" in done.stderr
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n')
    program.chmod(0o755)
    done = subprocess.run(
        agent.argv("s1", ("a b", "$HOME")),
        env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b|$HOME|", "")


def test_an_agent_without_its_image_is_offered_as_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = Paths.from_environment()
    put_image(paths.store / "images")

    def offered(name: str) -> tuple[str, bool]:
        (agent,) = (agent for agent in LocalFleet(paths).agents() if agent.name == name)
        return agent.description, agent.has_image

    assert offered("shell") == (builtin()["shell"].description, True)
    assert offered("codex") == ("OpenAI's Codex", False)
    assert run(["agents", "inspect", "codex"]) == 0
    assert "codex (not there yet)\n" in capsys.readouterr().out
    put_image(paths.store / "images", "other", "codex")
    assert offered("codex") == ("OpenAI's Codex", True)
    assert run(["agents", "inspect", "codex", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agent"]["image_built"]


def config(folder: Path, text: str) -> None:
    (folder / "config.yaml").write_text(text)


def test_the_user_changes_one_setting_of_a_known_agent(tmp_path: Path) -> None:
    config(
        tmp_path,
        "agents:\n  claude-code: {services: {anthropic: optional}, env: {A: b}}\n"
        "  mine: {command: [m], services: {lab: required}, image: my, install: 'echo it'}\n"
        "broker:\n  services:\n    lab: {upstream: 'https://l.example', credential: 'env:L',\n"
        "      add: bearer, accept: [bearer], allow: ['GET /**']}\n  cap: {usd: 5, tokens: 10}\n",
    )
    found = load_config(tmp_path)
    claude = found.agents["claude-code"]
    assert claude.command == ("claude",)
    assert claude.services == {"anthropic": "optional"}
    assert claude.env == {**builtin()["claude-code"].env, "A": "b"}
    assert claude.source == str(tmp_path / "config.yaml")
    mine = found.agents["mine"]
    assert (mine.services, mine.image, mine.install) == ({"lab": "required"}, "my", "echo it")
    assert (claude.stands_on, mine.stands_on) == ("claude-code", "my")
    assert (found.broker.usd, found.broker.tokens) == (5.0, 10)
    assert found.broker.known() == (*BUILT_IN, "lab")


def test_another_way_to_start_a_known_program_keeps_how_it_is_installed(tmp_path: Path) -> None:
    config(tmp_path, "agents:\n  gemini: {command: [gemini]}\n  codex: {command: [my-codex]}\n")
    found = load_config(tmp_path).agents
    assert (found["gemini"].command, found["gemini"].stands_on) == (("gemini",), "gemini")
    assert found["gemini"].install == builtin()["gemini"].install
    assert (found["codex"].install, found["codex"].stands_on) == ("", "base")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("agents:\n  codex: {services: {opneai: required}}\n", 2, "unknown key 'opneai'"),
        ("agents:\n  codex: {services: {openai: maybe}}\n", 2, "required, optional"),
        ("agents:\n  codex: {install: [a]}\n", 2, "a text of one line"),
        ("agents:\n  codex: {from: fedora}\n", 2, "one of base, dev"),
        ("broker: {cap: {usd: 0}}\n", 1, "above 0"),
        ("broker: {cap: {tokens: 1.5}}\n", 1, "whole number"),
        ("broker: {caps: {}}\n", 1, "unknown key"),
        ("broker:\n  services:\n    a b: {}\n", 3, "name is wrong"),
        ("broker:\n  services:\n    lab: {upstream: 'http://l'}\n", 3, "upstream is wrong"),
        ("broker:\n  services:\n    anthropic: {credential: sk-1}\n", 3, "by a reference"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    config(tmp_path, text)
    with pytest.raises(AppError) as caught:
        load_config(tmp_path)
    assert f"config.yaml:{line}:" in caught.value.message
    assert words in caught.value.message
    assert "sk-1" not in caught.value.message + caught.value.hint


def test_without_a_word_of_the_user_there_is_no_cap(tmp_path: Path) -> None:
    assert load_config(tmp_path).broker == BrokerSettings()


def test_inspect_shows_references_and_never_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-CANARY-value")
    assert run(["agents", "inspect", "claude-code"]) == 0
    said = capsys.readouterr().out
    assert "required, api.anthropic.com:443, key: env:ANTHROPIC_API_KEY" in said
    assert "CANARY" not in said
    assert run(["agents", "inspect", "claud-code", "--json"]) != 0
    said = capsys.readouterr().out
    assert '"code": "not-found"' in said
    assert "cloche run claude-code" in said
    assert run(["agents", "inspect", "zzz", "--json"]) != 0
    assert "cloche agents list" in capsys.readouterr().out
