"""The scripts that set a machine up: what they ask for, what they leave alone, which index."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parent.parent / ".ci"


def pip_index(home: Path, **variables: str) -> str:
    environment = {"HOME": str(home), "XDG_CONFIG_DIRS": str(home / "xdg"), **variables}
    done = subprocess.run([sys.executable, "-I", str(CI / "pip_index.py")], env=environment,
                          capture_output=True, text=True, timeout=30, check=True)  # fmt: skip
    return done.stdout


def configure(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_index_of_pip_is_found_in_its_order(tmp_path: Path) -> None:
    nothing = configure(tmp_path / "nothing.conf", "")
    assert pip_index(tmp_path, PIP_CONFIG_FILE=os.devnull) == ""
    configure(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = scheme://site/%41\n")
    assert pip_index(tmp_path, PIP_CONFIG_FILE=str(nothing)) == "scheme://site/%41"
    configure(tmp_path / ".config/pip/pip.conf", "[install]\nindex-url = scheme://own\n")
    assert pip_index(tmp_path) == "scheme://own"
    assert pip_index(tmp_path, PIP_CONFIG_FILE=os.devnull) == ""
    assert pip_index(tmp_path, PIP_INDEX_URL="scheme://given") == "scheme://given"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the scripts and what they read; steps that would change this machine say so."""
    shutil.copytree(CI, tmp_path / ".ci")
    for name in ("uv.lock", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    return tmp_path


STUBS = """
as_root() { echo "root: $1"; }
find_uv() { :; }
fill_environment() {
    echo "environment for $1"
    install -D /dev/null "$here/.venv/bin/cloche"
}
"""


def sourced(checkout: Path, script: str) -> subprocess.CompletedProcess[str]:
    text = f". {checkout}/.ci/setup.sh\n{STUBS}\n{script}"
    return subprocess.run(
        ["bash", "-c", text], capture_output=True, text=True, timeout=30, check=False
    )


def as_root(command: str) -> subprocess.CompletedProcess[str]:
    """Let the script itself run a command as root, which a sudo of the test's own takes us for."""
    sudo = 'sudo() { "$@"; }; id() { echo 1; }'
    text = f". {CI}/setup.sh\n{sudo}\nas_root {shlex.quote(command)}; echo went on"
    return subprocess.run(
        ["bash", "-c", text], capture_output=True, text=True, timeout=30, check=False
    )


def test_what_installs_says_nothing_unless_it_fails(tmp_path: Path) -> None:
    done = as_root(f"echo Setting up libc; echo hm >&2; echo done > {tmp_path}/it")
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")
    assert (tmp_path / "it").read_text() == "done\n"
    failed = as_root("echo Reading lists; echo 'E: no such package' >&2; exit 100")
    assert (failed.returncode, failed.stdout) == (5, "")
    assert failed.stderr.startswith("Reading lists\nE: no such package\ncloche set-up: that did")


def test_another_distribution_gets_the_names_and_nothing_else(checkout: Path) -> None:
    stubs = "supported_system() { false; }; missing_packages() { echo ' one two'; }"
    done = sourced(checkout, f"{stubs}; install_packages run")
    assert done.returncode == 5
    assert done.stderr.endswith("call it again: one two\n")
    assert "root:" not in done.stdout


def test_missing_programs_and_files_are_named_by_package(checkout: Path) -> None:
    done = sourced(
        checkout,
        "usable_uv() { :; }; missing_packages 'sh:a not-there:b /etc/passwd:c /not/there:d'",
    )
    assert done.stdout.split() == ["b", "d"]


def test_an_environment_is_made_once_and_tests_contain_what_run_needs(checkout: Path) -> None:
    done = sourced(checkout, "for level in run run test test run; do make_environment $level; done")
    assert done.stdout.splitlines() == ["environment for run", "environment for test"]
    (checkout / "uv.lock").write_text("another")
    done = sourced(checkout, "make_environment run; make_environment test")
    assert done.stdout.splitlines() == ["environment for test"]


def test_a_moved_checkout_gets_its_environment_anew(checkout: Path, tmp_path: Path) -> None:
    """The scripts of an environment name its place."""
    assert sourced(checkout, "make_environment run").stdout == "environment for run\n"
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in (".ci", ".venv", "uv.lock", "pyproject.toml"):
        (checkout / name).rename(moved / name)
    assert sourced(moved, "make_environment run").stdout == "environment for run\n"


def test_a_failed_environment_is_tried_again(checkout: Path) -> None:
    done = sourced(checkout, "fill_environment() { false; }; make_environment run || echo failed")
    assert done.stdout == "failed\n"
    assert sourced(checkout, "make_environment run").stdout == "environment for run\n"


@pytest.mark.parametrize("sessions", ["[]", '[{"id": "a"}]'])
def test_run_says_what_takes_long_before_it_begins(checkout: Path, sessions: str) -> None:
    shutil.copy(CI.parent / "run", checkout / "run")
    with (checkout / ".ci/setup.sh").open("a") as script:
        script.write("set_up() { :; }\n")
    cloche = checkout / ".venv/bin/cloche"
    cloche.parent.mkdir(parents=True)
    answer = f"""{{"ok": true, "sessions": {sessions}}}"""
    cloche.write_text(f"#!/bin/sh\necho \"called: $*\" >&2\necho '{answer}'\n")
    cloche.chmod(0o755)
    done = subprocess.run(
        ["bash", str(checkout / "run")], capture_output=True, text=True, timeout=30, check=True
    )
    words = done.stderr.splitlines()
    demo = (
        ["starting a demo session", "called: run demo --detach", '"ok"'] if sessions == "[]" else []
    )
    expected = ["called: ps --json", *demo, "opening the workstation", "called: "]
    assert len(words) == len(expected)
    assert [begin in word for begin, word in zip(expected, words, strict=True)] == [True] * len(
        words
    )
