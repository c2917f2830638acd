"""The variables that make a guest's package tools use the registries of this host.

Only where the host's configuration names one: a tool's own default is the same in the guest. What
a URL holds of a user and a password is left out, so such a registry wants its credential anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from app.egress.registries import parsers
from app.egress.registries.gather import npm_files, pip_files
from app.egress.registries.sources import PORTS, registries, sort_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from app.egress.registries.gather import Host

MAX_URL: Final = 2000
MAX_URLS: Final = 20


def guest_env(host: Host) -> dict[str, str]:
    """Return the variables of a guest's package tools; those of tools without a setting lack."""
    return {name: value for name, value in (*_pip(host), *_npm(host), *_go(host)) if value}


def _pip(host: Host) -> Iterator[tuple[str, str]]:
    index = host.variables.get("PIP_INDEX_URL", "") or _pip_option(host, "index-url")
    extra = host.variables.get("PIP_EXTRA_INDEX_URL", "") or _pip_option(host, "extra-index-url")
    index, extra = _first(index), " ".join(_clean(extra.split()))
    yield "PIP_INDEX_URL", index
    yield "PIP_EXTRA_INDEX_URL", extra
    yield "PIP_TRUSTED_HOST", " ".join(_unencrypted([index, *extra.split()]))
    own = host.variables.get("UV_DEFAULT_INDEX", "") or host.variables.get("UV_INDEX_URL", "")
    yield "UV_DEFAULT_INDEX", _first(own) or index
    yield "UV_INDEX", extra


def _pip_option(host: Host, key: str) -> str:
    """Return an option of pip's files; a later file wins, as with pip."""
    found = (parsers.pip_option(text, key) for _, text in pip_files(host))
    return next((value for value in reversed(list(found)) if value), "")


def _npm(host: Host) -> Iterator[tuple[str, str]]:
    given = list(parsers.npm_environment(host.variables))
    given += [
        value
        for _, text in reversed(list(npm_files(host)))  # the user's own file wins
        for value in parsers.npm_default(text, host.variables)
    ]
    yield "NPM_CONFIG_REGISTRY", _first(" ".join(given[:1]))


def _go(host: Host) -> Iterator[tuple[str, str]]:
    written = host.go_file()
    for name in ("GOPROXY", "GOSUMDB"):
        value = host.variables.get(name, "") or written.get(name, "")
        if "@" not in value and len(value) <= MAX_URL and value.isprintable():
            yield name, value


def _first(text: str) -> str:
    return next(iter(_clean(text.split())), "")


def _clean(urls: Iterable[str]) -> list[str]:
    """Return those URLs that a guest can reach, without user and password."""
    return [bare for url in list(urls)[:MAX_URLS] if (bare := _bare(url))]


def _bare(url: str) -> str:
    if len(url) > MAX_URL or not sort_out(registries([url], "", "")).rules:
        return ""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def _unencrypted(urls: Iterable[str]) -> list[str]:
    """Return the hosts that pip must be told to trust, for there is no TLS."""
    found = (urlsplit(url) for url in urls)
    return [f"{one.hostname}:{one.port or PORTS['http']}" for one in found if one.scheme == "http"]
