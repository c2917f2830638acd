from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.config import Defaults, load_config, tighten
from app.errors import AppError

if TYPE_CHECKING:
    from pathlib import Path


def configured(folder: Path, text: str) -> Path:
    (folder / "config.yaml").write_text(text)
    return folder


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config.defaults == Defaults()
    assert {"shell", "demo", "claude-code"} <= set(config.agents)


def test_agents_and_defaults_are_read(tmp_path: Path) -> None:
    config = load_config(
        configured(
            tmp_path,
            "defaults: {memory: 4096, git: none, exclude: ['*.bin']}\n"
            "agents:\n  mine:\n    command: [run-me, --fast]\n    env: {A: 'x'}\n"
            "    stalled_s: 60\n",
        )
    )
    assert config.defaults == Defaults(memory=4096, git="none", exclude=("*.bin",))
    assert config.agents["mine"].command == ("run-me", "--fast")
    assert config.agents["mine"].env == {"A": "x"}
    assert config.agents["mine"].stalled_s == 60


@pytest.mark.parametrize("word", ["mark", "sound", "off", "'off'"])
def test_what_a_bell_does_is_the_users_to_say(tmp_path: Path, word: str) -> None:
    assert load_config(tmp_path).ui.bell == "mark"
    config = load_config(configured(tmp_path, f"ui: {{bell: {word}}}\n"))
    assert config.ui.bell == word.strip("'")


def test_a_project_has_no_say_in_the_bell(tmp_path: Path) -> None:
    (tmp_path / ".cloche.yaml").write_text("ui: {bell: sound}\n")
    with pytest.raises(AppError, match="unknown key 'ui'"):
        tighten(Defaults(), tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("default: {}\n", 1, "unknown key 'default'"),
        ("defaults:\n  memry: 1\n", 2, "unknown key 'memry'"),
        ("defaults:\n  memory: lots\n", 2, "whole number from 256"),
        ("defaults:\n  vcpus: 0\n", 2, "whole number from 1"),
        ("defaults:\n  vcpus: true\n", 2, "whole number"),
        ("defaults:\n  accel: magic\n", 2, "one of auto, kvm, tcg"),
        ("defaults:\n  exclude: '*.o'\n", 2, "must be a list"),
        ("defaults:\n  exclude:\n  - 3\n", 3, "text of one line"),
        ("agents:\n  Bad Name:\n    command: [a]\n", 2, "small letters"),
        ("agents:\n  mine: {}\n", 2, "needs a command"),
        ("agents:\n  mine: {command: x}\n", 2, "must be a list"),
        ("agents:\n  mine: {command: []}\n", 2, "needs a command"),
        ("agents:\n  mine:\n    command: [a]\n    env: {'1A': b}\n", 4, "not a name of a variable"),
        ("agents:\n  mine:\n    command: [a]\n    env: {A: 1}\n", 4, "must be a text"),
        ("agents:\n  mine:\n    command: [a]\n    stalled_s: -1\n", 4, "whole number from 0"),
        ("ui: {bell: loud}\n", 1, "one of mark, sound, off"),
        ("ui: {ring: off}\n", 1, "unknown key 'ring'"),
        ("machine: {jail: maybe}\n", 1, "one of auto, on, off"),
        ("machine: {cell: on}\n", 1, "unknown key 'cell'"),
        ("machine: {guest: lax}\n", 1, "one of debug, standard, strict"),
        ("- a\n", 1, "must stand a mapping"),
    ],
)
def test_faults_name_their_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(AppError) as caught:
        load_config(configured(tmp_path, text))
    assert f"config.yaml:{line}:" in caught.value.message
    assert words in caught.value.message
    assert caught.value.hint


def test_a_near_miss_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        load_config(configured(tmp_path, "defaults: {memroy: 512}\n"))
    assert caught.value.hint == "Did you mean: memory"


def test_a_project_may_tighten(tmp_path: Path) -> None:
    (tmp_path / ".cloche.yaml").write_text("memory: 512\ngit: none\nexclude: [secret/]\n")
    tight = tighten(Defaults(exclude=("*.bin",)), tmp_path)
    assert (tight.memory, tight.git, tight.vcpus) == (512, "none", 2)
    assert tight.exclude == ("*.bin", "secret/")


@pytest.mark.parametrize(
    ("text", "jail"),
    [("machine: {jail: on}", "on"), ("machine: {jail: 'off'}", "off"), ("machine: {}", "auto")],
)
def test_the_jail_is_wanted_left_out_or_left_to_the_host(
    tmp_path: Path, text: str, jail: str
) -> None:
    assert load_config(configured(tmp_path, text)).defaults.jail == jail


@pytest.mark.parametrize("now", ["auto", "on", "off"])
def test_a_project_may_demand_the_jail(tmp_path: Path, now: str) -> None:
    (tmp_path / ".cloche.yaml").write_text("machine: {jail: on}\n")
    assert tighten(Defaults(jail=now), tmp_path).jail == "on"
    (tmp_path / ".cloche.yaml").write_text("memory: 512\n")
    assert tighten(Defaults(jail=now), tmp_path).jail == now


def test_a_guest_is_as_strict_as_the_user_or_the_project_wants(tmp_path: Path) -> None:
    assert load_config(tmp_path).defaults.guest == "standard"
    config = load_config(configured(tmp_path, "machine: {guest: debug}\n"))
    assert config.defaults.guest == "debug"
    (tmp_path / ".cloche.yaml").write_text("machine: {guest: strict}\n")
    tight = tighten(config.defaults, tmp_path)
    assert (tight.guest, tight.jail) == ("strict", "auto")
    (tmp_path / ".cloche.yaml").write_text("machine: {jail: on}\n")
    assert tighten(config.defaults, tmp_path).guest == "debug"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("memory: 8192\n", "only lower 'memory'"),
        ("git: full\n", "not widen 'git'"),
        ("agents: {evil: {command: [a]}}\n", "unknown key 'agents'"),
        ("accel: kvm\n", "unknown key 'accel'"),
        ("env: {A: b}\n", "unknown key 'env'"),
        ("machine: {jail: off}\n", "only set 'jail: on'"),
        ("machine: {cell: on}\n", "unknown key 'cell'"),
        ("machine: {guest: debug}\n", "only make 'guest' stricter (now standard)"),
    ],
)
def test_a_project_may_do_nothing_else(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / ".cloche.yaml").write_text(text)
    with pytest.raises(AppError) as caught:
        tighten(Defaults(git="none"), tmp_path)
    assert ".cloche.yaml:1:" in caught.value.message
    assert words in caught.value.message


def test_a_command_may_hold_a_script_of_several_lines(tmp_path: Path) -> None:
    text = "agents:\n  mine:\n    command:\n    - sh\n    - -c\n    - |\n      cd src\n      make\n"
    (tmp_path / "config.yaml").write_text(text)
    assert load_config(tmp_path).agents["mine"].command == ("sh", "-c", "cd src\nmake\n")
