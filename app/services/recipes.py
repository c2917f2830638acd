"""The images that can be built: those that come with Cloche, and the user's own.

`$XDG_CONFIG_HOME/cloche/images/NAME.yaml`:

    description: base with Go
    from: base
    packages: [golang, gopls]

In the place of `packages` can stand `install`, a line of shell that is run in a machine of its own
and puts files into `{prefix}`. An agent that says `from` and `install` is such a recipe by itself.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, Final, cast

from app import config_yaml
from app.config import load_config
from app.errors import AppError
from vm.errors import VMError
from vm.image.recipes import RECIPES, Recipe
from vm.install import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from app.agents import Agent
    from app.config_yaml import Document

FOLDER: Final = "images"
NPM_FETCH: Final = "CLOCHE_NPM_FETCH"
"""The variable that has `npm_fetch.py` while a recipe's line runs."""

_SUFFIX: Final = ".yaml"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_KEYS: Final = ("description", "from", "packages", "install")


def load_recipes(config: Path) -> dict[str, Recipe]:
    """Return every recipe by name. Raises AppError `bad-config` with file, line and column."""
    known = {**RECIPES, **agents_recipes(load_config(config).agents.values())}
    try:
        names = sorted(os.listdir(config / FOLDER))
    except FileNotFoundError:
        return known
    own = (_load(config / FOLDER / name) for name in names if name.endswith(_SUFFIX))
    return {**known, **{recipe.name: recipe for recipe in own}}


def agents_recipes(agents: Iterable[Agent]) -> dict[str, Recipe]:
    """Return the recipes of those agents that can have an image of their own."""
    return {
        agent.name: Recipe(
            agent.name, agent.description, (), agent.below, agent.install, _fetching(agent)
        )
        for agent in agents
        if agent.below
        and agent.stands_on == agent.name
        and PREFIX in agent.install
        and agent.name not in RECIPES
    }


def _fetching(agent: Agent) -> str:
    """Return the line of shell for `fetch`; the script itself is in a variable."""
    return " && ".join(
        f'python3 -c "${NPM_FETCH}" {PREFIX} {shlex.join(one.split())}' for one in agent.fetch
    )


def find_recipe(config: Path, name: str) -> Recipe:
    """Return the recipe called `name`; AppError `not-found` with what there is otherwise."""
    known = load_recipes(config)
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean: cloche image build {near[0]}" if near else ""
    raise AppError(
        "not-found",
        f"There is no recipe for an image called '{name}'.",
        hint or f"Build one of these: {', '.join(known)}",
    )


def _load(path: Path) -> Recipe:
    name = path.name.removesuffix(_SUFFIX)
    document = config_yaml.load(path)
    if document is None:  # it was removed meanwhile
        raise AppError("not-found", f"There is no file {path}.", "Do it again.")
    if not _NAME.match(name) or name in RECIPES:
        why = "is one of Cloche's own" if name in RECIPES else "is no name for an image"
        raise document.error((), f"'{name}' {why}; give the file another name")
    data: Any = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise document.error((), "here must stand a mapping (name: value)")
    return _recipe(document, name, cast("dict[str, Any]", data))


def _recipe(document: Document, name: str, given: dict[str, Any]) -> Recipe:
    for key in given:
        if key not in _KEYS:
            raise document.error((key,), f"unknown key '{key}'", f"Known here: {', '.join(_KEYS)}")
    below = given.get("from", "base")
    if below not in RECIPES:
        raise document.error(("from",), f"'from' must be one of {', '.join(RECIPES)}")
    words = _words(document, given.get("packages", []))
    install = given.get("install", "")
    if not isinstance(install, str) or not install.isprintable() or (install and words):
        raise document.error(("install",), "'install' is one line, in the place of 'packages'")
    try:
        if install:
            return Recipe(name, str(given.get("description") or ""), (), below, install)
        every = tuple(dict.fromkeys((*RECIPES[below].packages, *words)))
        return Recipe(name, str(given.get("description") or ""), every)
    except VMError as error:
        key = "install" if install else "packages"
        raise document.error((key,), error.message.rstrip("."), error.hint) from None


def _words(document: Document, given: Any) -> list[str]:
    items: list[Any] | None = given if isinstance(given, list) else None  # pyright: ignore[reportUnknownVariableType]
    if items is None or not all(isinstance(one, str) for one in items):
        raise document.error(("packages",), "'packages' must be a list of names")
    return items
