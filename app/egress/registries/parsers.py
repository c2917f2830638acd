"""Reads the configuration of package tools: text in, URLs out. Pure, and wrong text is no text.

Sources: pip's "Configuration", npm's "npmrc", apt's sources.list(5) and apt.conf(5), Cargo's
"Configuration" and "Registry index" chapters, Go's "Module proxy" and GOPROXY.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PIP_KEYS: Final = ("index-url", "extra-index-url", "find-links", "index")
PIP_VARIABLES: Final = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
)
NPM_VARIABLES: Final = ("npm_config_registry",)
_NPM_LINE: Final = re.compile(r"(?:(@[^:\s=]+):)?registry\s*=\s*(.+)\Z", re.IGNORECASE)
_APT_LINE: Final = re.compile(r"deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)\s")
_APT_PROXY: Final = re.compile(r'Acquire::https?::Proxy(?:::[^\s"]+)?\s+"([^"]*)"', re.IGNORECASE)
_GO_SEPARATORS: Final = re.compile(r"[,|]")


def pip_conf(text: str) -> tuple[str, ...]:
    """Return the URLs of a pip.conf, those of all its sections."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return ()
    return tuple(
        url
        for section in parser.sections()
        for key, value in parser.items(section)
        if key.replace("_", "-") in PIP_KEYS
        for url in (value or "").split()
    )


def pip_sets_index(text: str) -> bool:
    """Tell whether a pip.conf takes another index than the one that pip has built in."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return False
    keys = [key.replace("_", "-") for one in parser.sections() for key in parser.options(one)]
    return "index-url" in keys


def pip_option(text: str, key: str) -> str:
    """Return what a pip.conf says of an option for all commands, or for `install`; else nothing."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return ""
    found = {
        name.replace("_", "-"): value or ""
        for section in ("global", "install")
        if parser.has_section(section)
        for name, value in parser.items(section)
    }
    return found.get(key, "")


def pip_environment(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the URLs in pip's and uv's variables."""
    texts = (variables.get(name, "") for name in PIP_VARIABLES)
    # uv names an index as `name=url`
    return tuple(re.sub(r"\A[\w.-]+=", "", url) for text in texts for url in text.split())


def pip_builtin(source: str) -> tuple[str, ...]:
    """Return the index and the host of files out of pip's own `_internal/models/index.py`.

    It says `PyPI = PackageIndex("https://…", file_storage_domain="…")`; the file is not run.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            texts = [*node.value.args, *(keyword.value for keyword in node.value.keywords)]
            found = [one.value for one in texts if isinstance(one, ast.Constant)]
            urls = [text for text in found if isinstance(text, str)]
            return tuple(url if "://" in url else f"https://{url}/" for url in urls)
    return ()


def npmrc(text: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the registries of an .npmrc, scoped ones too; nothing else of it is looked at."""
    found: list[str] = []
    for line in text.splitlines():
        match = _NPM_LINE.match(line.strip())
        if match is not None:
            value = match[2].strip().strip("\"'")
            found.append(re.sub(r"\$\{([^}]+)\}", lambda one: variables.get(one[1], ""), value))
    return tuple(found)


def npm_sets_registry(text: str) -> bool:
    """Tell whether an .npmrc names the registry for packages without a scope."""
    matches = (_NPM_LINE.match(line.strip()) for line in text.splitlines())
    return any(match is not None and not match[1] for match in matches)


def npm_default(text: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the registry that an .npmrc names for packages without a scope, if it does."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("@"))
    return npmrc("\n".join(lines), variables)[-1:]


def npm_environment(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the registry in npm's variable, whose name npm takes in any case."""
    return tuple(text for name, text in variables.items() if name.lower() in NPM_VARIABLES)


def apt_list(text: str) -> tuple[str, ...]:
    """Return the URIs of a sources.list in its one-line form."""
    matches = (_APT_LINE.match(line.strip() + " ") for line in text.splitlines())
    return tuple(match[1] for match in matches if match is not None)


def apt_deb822(text: str) -> tuple[str, ...]:
    """Return the URIs of a .sources file: paragraphs of `Field: value`, continued by a blank."""
    return tuple(
        uri
        for paragraph in re.split(r"\n\s*\n", text)
        for fields in [_fields(paragraph)]
        if fields.get("enabled", "yes").lower() not in ("no", "false", "without", "off", "disable")
        for uri in fields.get("uris", "").split()
    )


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    last = ""
    for line in paragraph.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t") and last:
            fields[last] += " " + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            fields[last] = value.strip()
    return fields


def apt_conf(text: str) -> tuple[str, ...]:
    """Return the proxies of an apt.conf in its one-line form (`Acquire::http::Proxy "…";`)."""
    lines = (
        line.split("//")[0] if line.lstrip().startswith("//") else line
        for line in text.splitlines()
    )
    return tuple(url for line in lines for url in _APT_PROXY.findall(line) if url != "DIRECT")


def cargo_toml(text: str) -> tuple[str, ...]:
    """Return the registries and sources of a cargo config.toml."""
    data = _toml(text)
    found: list[Any] = []
    for table, keys in (("registries", ("index",)), ("source", ("registry",))):
        for entry in _tables(data.get(table)):
            found.extend(entry.get(key) for key in keys)
    if isinstance(registry := data.get("registry"), dict):
        found.append(cast("dict[str, Any]", registry).get("index"))
    return tuple(url.removeprefix("sparse+") for url in found if isinstance(url, str))


def cargo_replaces_default(text: str) -> bool:
    """Tell whether a config.toml puts something in the place of cargo's built-in registry."""
    source = _toml(text).get("source")
    table = cast("dict[str, Any]", source) if isinstance(source, dict) else {}
    return any("replace-with" in entry for entry in _tables(table))


def cargo_index_config(text: str) -> tuple[str, ...]:
    """Return where an index says that packages are downloaded from (its config.json)."""
    try:
        data: Any = json.loads(text)
    except ValueError:
        return ()
    given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return tuple(given[key] for key in ("dl", "api") if isinstance(given.get(key), str))


def go_proxy(text: str) -> tuple[str, ...]:
    """Return the proxies of a GOPROXY, and the host of a GOSUMDB."""
    parts = (part.strip() for part in _GO_SEPARATORS.split(text))
    return tuple(part for part in parts if part not in ("", "direct", "off"))


def go_sumdb(text: str) -> tuple[str, ...]:
    """Return the checksum database that a GOSUMDB names: `name`, `name+key` or `name+key url`."""
    words = text.split()
    if not words or words[0] == "off":
        return ()
    return tuple(words[1:2]) or (f"https://{words[0].partition('+')[0]}",)


def go_env(text: str) -> dict[str, str]:
    """Return the variables of go's own file (`go env -w` writes it): `NAME=value` a line."""
    return dict(_assignments(text.splitlines()))


def _assignments(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            yield name, value


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        return []
    table = cast("dict[str, Any]", value)
    return [cast("dict[str, Any]", one) for one in table.values() if isinstance(one, dict)]
