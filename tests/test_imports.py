"""What runs without a screen never loads one: looked at in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cloche

CHECKOUT = Path(cloche.__file__).resolve().parent


def modules_of(folder: str) -> list[str]:
    """Every module below `folder`, as an import name."""
    found = (path.relative_to(CHECKOUT) for path in sorted((CHECKOUT / folder).rglob("*.py")))
    return [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in found]


def loaded_after(imports: list[str]) -> set[str]:
    program = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\n"
    program += "".join(f"import {name}\n" for name in imports)
    program += "print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("folder", ["vm", "snapshot", "app/keeper", "app/cli", "app/client"])
def test_no_screen_is_loaded(folder: str) -> None:
    modules = modules_of(folder)
    assert modules
    assert not loaded_after(modules) & {"textual", "rich", "pydantic"}


@pytest.mark.parametrize("folder", ["widgets", "themes"])
def test_no_machine_is_loaded(folder: str) -> None:
    modules = modules_of(folder)
    assert modules
    assert not loaded_after(modules) & {"asyncssh", "qemu", "dulwich", "vm", "snapshot"}


def test_an_idle_keeper_has_not_loaded_what_few_sessions_ask_for() -> None:
    """Git's objects, and files that keep comments and order: megabytes for each session."""
    assert not loaded_after(["app.keeper.house"]) & {"dulwich", "ruamel"}
