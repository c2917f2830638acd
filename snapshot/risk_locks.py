"""From which hosts a lock file fetches: only a host that the base did not name is news.

Texts of JSON are walked value by value; in other formats every address counts, wherever it stands.
A host too many makes a question, a host too few would be a hole.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from .risk_names import words

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LOCK: Final = 32 << 20
"""Largest lock file in bytes that is looked through."""

_JSON: Final = words(
    """
    package-lock.json npm-shrinkwrap.json .package-lock.json pipfile.lock composer.lock deno.lock
    flake.lock packages.lock.json package.resolved
    """
)
_GO: Final = frozenset(("go.sum", "go.work.sum"))
_TEXT: Final = words(
    """
    yarn.lock pnpm-lock.yaml bun.lock uv.lock poetry.lock pdm.lock pylock.toml pixi.lock
    conda-lock.yml cargo.lock gemfile.lock gems.locked mix.lock podfile.lock pubspec.lock shard.lock
    constraints.txt
    """
)
_REQUIREMENTS: Final = re.compile(r"^(.*[-_.])?requirements([-_.].*)?\.(txt|in)$|^pylock\..*toml$")

_TOLD: Final = words(
    """
    funding license licenses author authors bugs homepage deprecated description keywords support
    source-url notification-url engines
    """
)
"""Keys below which an address is for people."""

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}):[\\/]{2}([^\s/?#\"'<>,)\]}]+)")
_SHORT: Final = re.compile(r"(?<![\w./])(?:(github|gitlab|bitbucket|gist|sourcehut)):[\w.~-]+/?")
_SCP: Final = re.compile(r"(?<![\w.-])git@([\w.-]+):")
_ESCAPES: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|/)")
_SHORT_HOSTS: Final = {
    "github": "github.com",
    "gist": "gist.github.com",
    "gitlab": "gitlab.com",
    "bitbucket": "bitbucket.org",
    "sourcehut": "git.sr.ht",
}


def is_lock(name: str) -> bool:
    """Return whether a name (in the form of `names.plain_name`) is that of a lock file."""
    return name in _JSON | _GO | _TEXT or _REQUIREMENTS.search(name) is not None


def new_places(name: str, agent: bytes, base: bytes) -> set[str] | None:
    """Return the hosts that only the agent's version names; None when it cannot be parsed."""
    after = _places(name, agent)
    if after is None:
        return None
    return after - (_places(name, base) or set())


def _places(name: str, data: bytes) -> set[str] | None:
    if len(data) > MAX_LOCK:
        return None
    text = data.decode("utf-8", "surrogateescape")
    if name in _GO:
        return {
            line.split("/", 1)[0].split()[0].casefold() for line in text.split("\n") if line.strip()
        }
    if name not in _JSON:
        return set(places_in(_ESCAPES.sub(_unescaped, text)))
    try:
        return places_in_values(json.loads(text.removeprefix("\ufeff") or "{}", **_PAIRS))
    except (ValueError, RecursionError):
        return None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with every key it has, twins as well: parsers differ in which they obey."""


_PAIRS: Final[dict[str, Any]] = {"object_pairs_hook": _Pairs}


def _unescaped(found: re.Match[str]) -> str:
    """Return what an escape of TOML, YAML or JSON stands for."""
    code = found[1] or found[2] or found[3]
    if code is None:
        return "/"
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else ""


def places_in_values(value: object) -> set[str]:
    """Return the hosts in all texts of a parsed document, its keys included."""
    found: set[str] = set()
    open_values = [value]
    while open_values:
        item = open_values.pop()
        if isinstance(item, str):
            found.update(places_in(item))
        elif isinstance(item, _Pairs):
            open_values += _below(item)
        elif isinstance(item, dict):
            open_values += _below(cast("dict[str, Any]", item).items())
        elif isinstance(item, list):
            open_values.extend(cast("list[object]", item))
    return found


def _below(pairs: Any) -> Iterator[object]:
    for key, value in pairs:
        if str(key).casefold() not in _TOLD:
            yield str(key)
            # Some name host and kind of place apart from the path.
            yield f"https://{value}" if key == "host" and isinstance(value, str) else value
            if key == "type" and isinstance(value, str) and value in _SHORT_HOSTS:
                yield f"{value}:x/"


def places_in(text: str) -> Iterator[str]:
    """Yield the host of every address in a text; one without encryption is named as such."""
    for found in _ADDRESS.finditer(text):
        yield from _host(found[1].casefold(), found[2])
    for found in _SHORT.finditer(text):
        yield _SHORT_HOSTS[found[1]]
    for found in _SCP.finditer(text):
        yield found[1].casefold().rstrip(".")


def _host(scheme: str, authority: str) -> Iterator[str]:
    if scheme.rpartition("+")[2] == "file":
        return
    plain = scheme.rpartition("+")[2] in ("http", "git", "ftp")
    # A backslash before the `@` is read otherwise by every second parser: then the whole counts.
    host = authority if "\\" in authority else authority.rpartition("@")[2]
    name = host.casefold().rstrip(".:")
    if name:
        yield f"{name} without encryption" if plain else name
