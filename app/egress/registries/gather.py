"""Finds the registries that this host uses: files and variables first, the tools themselves last.

Nothing of a workspace is read: a repository must not choose what its agent may reach.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.egress.registries import parsers
from app.egress.registries.sources import Registry, registries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Ask = Callable[..., str]

MAX_FILE: Final = 1 << 20
MAX_FILES: Final = 200
"""Most files of one folder that are read."""

_CARGO_INDEX: Final = re.compile(r"(.+)-[0-9a-f]{16}\Z")
_PIP_PLACE: Final = re.compile(r"\Apip \S+ from (.+) \(python ")


def _ask_nobody(*_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Host:
    """Where to look: a root, a home, variables, and a way to ask a tool."""

    root: Path = Path("/")
    home: Path = field(default_factory=Path.home)
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    ask: Ask = _ask_nobody

    def text(self, path: Path) -> str | None:
        """Return a file's text, at most MAX_FILE bytes; None where there is none to be read."""
        try:
            with path.open("rb") as file:
                return file.read(MAX_FILE).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None  # absent, or not for this user: then the tools do not use it either

    def etc(self, *parts: str) -> Path:
        """Return a path of the system's configuration."""
        return self.root.joinpath("etc", *parts)

    @property
    def config(self) -> Path:
        """The user's configuration folder."""
        given = self.variables.get("XDG_CONFIG_HOME", "")
        return Path(given) if given.startswith("/") else self.home / ".config"

    def go_file(self) -> Mapping[str, str]:
        """Return what go's own file (`go env -w` writes it) sets."""
        file = self.variables.get("GOENV", "") or str(self.config / "go" / "env")
        return {} if file == "off" else parsers.go_env(self.text(Path(file)) or "")


def gather(host: Host) -> tuple[Registry, ...]:
    """Return every registry that the tools of this host use, each once for each tool."""
    tools = (_pip, _npm, _apt, _cargo, _go)
    return tuple(dict.fromkeys(one for tool in tools for one in tool(host)))


def _files(host: Host, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each file that is there, with its text."""
    for path in dict.fromkeys(paths):
        text = host.text(path)
        if text is not None:
            yield path, text


def pip_files(host: Host) -> Iterator[tuple[Path, str]]:
    """Yield the files that pip reads on this host, the one that wins last."""
    given = host.variables.get("PIP_CONFIG_FILE", "")
    paths = [
        host.etc("xdg", "pip", "pip.conf"),
        host.etc("pip.conf"),
        host.home / ".pip" / "pip.conf",
        host.config / "pip" / "pip.conf",
    ]
    if given.startswith("/"):
        paths = [] if given == os.devnull else [*paths, Path(given)]
    return _files(host, paths)


def _pip(host: Host) -> Iterator[Registry]:
    built_in = not host.variables.get("PIP_INDEX_URL")
    for path, text in pip_files(host):
        yield from registries(parsers.pip_conf(text), "pip", path.name)
        built_in = built_in and not parsers.pip_sets_index(text)
    yield from registries(parsers.pip_environment(host.variables), "pip", "pip's variables")
    if built_in:
        yield from registries(_pip_built_in(host), "pip", "pip itself")


def _pip_built_in(host: Host) -> tuple[str, ...]:
    """Learn pip's default out of its own source, wherever it says that it lies."""
    for name in ("pip", "pip3"):
        place = _PIP_PLACE.match(host.ask(name, "--version"))
        if place is not None:
            source = host.text(Path(place[1]) / "_internal" / "models" / "index.py")
            return parsers.pip_builtin(source or "")
    return ()


def npm_files(host: Host) -> Iterator[tuple[Path, str]]:
    """Yield the files that npm reads on this host, the one that wins last."""
    variables = {name.lower(): value for name, value in host.variables.items()}
    paths = [
        Path(variables.get("npm_config_globalconfig", "") or host.etc("npmrc")),
        host.root / "usr" / "etc" / "npmrc",
        host.root / "usr" / "local" / "etc" / "npmrc",
        Path(variables.get("npm_config_userconfig", "") or host.home / ".npmrc"),
    ]
    return _files(host, paths)


def _npm(host: Host) -> Iterator[Registry]:
    in_variables = parsers.npm_environment(host.variables)
    built_in = not in_variables
    for path, text in npm_files(host):
        yield from registries(parsers.npmrc(text, host.variables), "npm", path.name)
        built_in = built_in and not parsers.npm_sets_registry(text)
    yield from registries(in_variables, "npm", "npm's variables")
    if built_in:
        yield from registries([host.ask("npm", "config", "get", "registry")], "npm", "npm itself")


def _apt(host: Host) -> Iterator[Registry]:
    sources = host.etc("apt", "sources.list.d")
    lists = [host.etc("apt", "sources.list"), *_listed(sources, ".list")]
    for path, text in _files(host, lists):
        yield from registries(parsers.apt_list(text), "apt", path.name)
    for path, text in _files(host, _listed(sources, ".sources")):
        yield from registries(parsers.apt_deb822(text), "apt", path.name)
    options = [host.etc("apt", "apt.conf"), *_listed(host.etc("apt", "apt.conf.d"), "")]
    for path, text in _files(host, options):
        yield from registries(parsers.apt_conf(text), "apt", path.name)


def _cargo(host: Host) -> Iterator[Registry]:
    home = Path(host.variables.get("CARGO_HOME", "") or host.home / ".cargo")
    built_in = True
    for path, text in _files(host, [home / "config.toml", home / "config"]):
        yield from registries(parsers.cargo_toml(text), "cargo", f"cargo's {path.name}")
        built_in = built_in and not parsers.cargo_replaces_default(text)
    in_variables = [
        value.removeprefix("sparse+")
        for name, value in host.variables.items()
        if name.startswith("CARGO_REGISTRIES_") and name.endswith("_INDEX")
    ]
    yield from registries(in_variables, "cargo", "cargo's variables")
    if built_in:
        yield from registries(_cargo_used(host, home), "cargo", "cargo's registry folder")


def _cargo_used(host: Host, home: Path) -> list[str]:
    """Return the indexes that cargo has used: it cannot be asked for the one built into it."""
    found: list[str] = []
    for folder in _listed(home / "registry" / "index", ""):
        name = _CARGO_INDEX.match(folder.name)
        if name is not None:
            found.append(f"https://{name[1]}/")
            found.extend(parsers.cargo_index_config(host.text(folder / "config.json") or ""))
    return found


def _go(host: Host) -> Iterator[Registry]:
    written = host.go_file()
    for name, read in (("GOPROXY", parsers.go_proxy), ("GOSUMDB", parsers.go_sumdb)):
        given, origin = host.variables.get(name, ""), name
        if not given:
            given, origin = written.get(name, ""), "go/env"
        if not given:
            given, origin = host.ask("go", "env", name).strip(), "go itself"
        yield from registries(read(given), "go", origin)


def _listed(folder: Path, suffix: str) -> list[Path]:
    """Return what lies in a folder, by name."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []  # absent, or not for this user
    return [folder / name for name in names if name.endswith(suffix)][:MAX_FILES]
