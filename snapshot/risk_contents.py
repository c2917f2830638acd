"""Files of package managers, judged by what changed in them: scripts, backends, hosts.

A new version number is no risk; a script that runs on install is. What cannot be parsed is judged
by the strictest rule, for nobody can say what is in it.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final, cast

from .risk_locks import is_lock, new_places, places_in_values
from .risk_names import BUILD, HOOK, INSTALLED, NO_RISK, PACKAGE, PYTHON, Risk, words
from .safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

MAX_PARSED: Final = 4 << 20
"""Largest manifest in bytes that is parsed."""

_NAMED: Final = 3
"""Most keys or hosts that one phrase names."""

_LONGEST: Final = 60
"""Characters of a key or host that a phrase shows."""

_LIFECYCLE: Final = words(
    """
    preinstall install postinstall prepublish preprepare prepare postprepare prepublishonly prepack
    postpack dependencies preuninstall uninstall postuninstall pnpm:devpreinstall
    """
)
"""Scripts of package.json that package managers run by themselves."""

_NPM_HOOKS: Final = words(
    """
    husky lint-staged simple-git-hooks pre-commit gitHooks commitlint lefthook
    """
)
_NPM_INSTALL: Final = words(
    """
    gypfile packageManager trustedDependencies onlyBuiltDependencies pnpm corepack devEngines volta
    binary
    """
)
_NPM_DEPENDENCIES: Final = words(
    """
    dependencies devDependencies peerDependencies optionalDependencies bundledDependencies
    bundleDependencies peerDependenciesMeta dependenciesMeta overrides resolutions workspaces
    catalog catalogs
    """
)
_NPM_PLAIN: Final = words(
    """
    name version description keywords license author contributors maintainers homepage bugs
    repository funding private sideEffects files type types typings engines os cpu publishConfig
    $schema displayName
    """
)
_NPM_SHORT: Final = re.compile(r"[\w.-]+/[\w.-]+(#.*)?$")
_PROJECT_INSTALL: Final = ("dependencies", "optional-dependencies", "requires-python", "dynamic")
_PYTHON_TOOLS: Final = ("pytest", "mypy", "pylint", "coverage", "ipython")
_PYTHON_BUILDS: Final = words(
    """
    setuptools hatch poetry pdm flit maturin scikit-build meson-python uv cibuildwheel
    """
)

Table = dict[str, Any]

UNREADABLE: Final = Risk("held", "cannot be parsed, so what it runs is unknown")


def risk_of_contents(name: str, agent: bytes | None, base: bytes | None) -> Risk | None:
    """Return the risk of a file of a package manager; None when `name` is no such file.

    Args:
        name: the file's name as `names.plain_name` gives it.
        agent: the agent's content, None where there is no plain file any more.
        base: the base's content, None where there was none.

    """
    judge = _JUDGES.get(name)
    if judge is None and not is_lock(name):
        return None
    if agent is None:
        return INSTALLED
    if judge is None:
        return _risk_of_lock(name, agent, base)
    after = _parsed(name, agent)
    if after is None:
        return UNREADABLE
    return judge(_parsed(name, base or b"") or {}, after)


def _parsed(name: str, data: bytes) -> Table | None:
    """Return a manifest's top level; None when it is none. Nothing at all is an empty one."""
    if len(data) > MAX_PARSED:
        return None
    try:
        if name.endswith(".toml"):
            return tomllib.loads(data.decode("utf-8-sig"))
        found = json.loads(data.decode("utf-8-sig") if data.strip() else "{}")
    except (ValueError, RecursionError):
        return None
    return cast("Table", found) if isinstance(found, dict) else None


def _risk_of_lock(name: str, agent: bytes, base: bytes | None) -> Risk:
    """Judge a lock file by where it fetches from."""
    added = new_places(name, agent, base or b"")
    if added is None:
        return Risk("held", "is a lock file that cannot be parsed, so its hosts are unknown")
    if added:
        return Risk("held", f"fetches packages from a host new to it: {_listed(added)}")
    return NO_RISK


def _judge_npm(before: Table, after: Table) -> Risk:
    """Judge `package.json` by the keys that changed."""
    changed = _changed(before, after)
    scripts = _changed(_table(before, "scripts"), _table(after, "scripts"))
    own = {script for script in scripts if script.casefold() in _LIFECYCLE}
    added = _npm_places(after) - _npm_places(before)
    if own:
        return Risk("held", f"changes scripts that run on install: {_listed(own)}")
    if changed & _NPM_HOOKS:
        return HOOK
    if changed & _NPM_INSTALL:
        return PACKAGE
    if changed & _NPM_DEPENDENCIES and added:
        return Risk("held", f"fetches packages from a host new to it: {_listed(added)}")
    if scripts:
        return Risk("warned", f"changes scripts of the project: {_listed(scripts)}")
    if changed & _NPM_DEPENDENCIES:
        return INSTALLED
    return BUILD if changed - _NPM_PLAIN else NO_RISK


def _npm_places(manifest: Table) -> set[str]:
    """Return the hosts that dependencies name; `owner/name` alone is one at GitHub."""
    tables = [manifest[key] for key in _NPM_DEPENDENCIES if key in manifest]
    found = places_in_values(tables)
    values = [value for key in _NPM_DEPENDENCIES for value in _table(manifest, key).values()]
    if any(isinstance(value, str) and _NPM_SHORT.match(value) for value in values):
        found.add("github.com")
    return found


def _judge_composer(before: Table, after: Table) -> Risk:
    """Judge `composer.json` by the keys that changed."""
    changed = _changed(before, after)
    if changed & {"scripts", "config", "repositories", "autoload", "autoload-dev"}:
        return PACKAGE
    return INSTALLED if changed else NO_RISK


def _judge_python(before: Table, after: Table) -> Risk:
    """Judge `pyproject.toml` by the tables that changed."""
    changed = _changed(before, after)
    tools = _changed(_table(before, "tool"), _table(after, "tool"))
    project = _changed(_table(before, "project"), _table(after, "project"))
    added = places_in_values(_sources(after)) - places_in_values(_sources(before))
    if "build-system" in changed:
        return Risk("held", "changes the build backend, which runs on install")
    if tools & set(_PYTHON_TOOLS):
        return PYTHON
    if added:
        return Risk("held", f"fetches packages from a host new to it: {_listed(added)}")
    if tools & _PYTHON_BUILDS:
        return BUILD
    if project & set(_PROJECT_INSTALL) or "dependency-groups" in changed:
        return INSTALLED
    return BUILD if tools or changed - {"project"} else NO_RISK


def _sources(table: Table) -> Table:
    """Return what of a `pyproject.toml` can name places to fetch from."""
    project = _table(table, "project")
    kept = {key: project[key] for key in _PROJECT_INSTALL if key in project}
    groups = table.get("dependency-groups", {})
    return {"project": kept, "groups": groups, "tool": _table(table, "tool")}


def _table(table: Table, key: str) -> Table:
    found = table.get(key)
    return cast("Table", found) if isinstance(found, dict) else {}


def _changed(before: Table, after: Table) -> Set[str]:
    """Return the keys whose values differ; a key that came or went differs as well."""
    missing = object()
    keys = before.keys() | after.keys()
    return {key for key in keys if before.get(key, missing) != after.get(key, missing)}


def _listed(names: Iterable[str]) -> str:
    """Name some of them in order."""
    known = [safe_name(name[:_LONGEST]).text for name in sorted(names)]
    more = len(known) - _NAMED
    return ", ".join(known[:_NAMED]) + (f" and {more} more" if more > 0 else "")


_JUDGES: Final[dict[str, Callable[[Table, Table], Risk]]] = {
    "package.json": _judge_npm,
    "composer.json": _judge_composer,
    "pyproject.toml": _judge_python,
}
