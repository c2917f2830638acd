"""Services as data: those that come with Cloche, and those of the user's own configuration."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, field
from importlib import resources
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import yaml

from vm.egress.broker import reference, target
from vm.egress.broker.git import PushRule, parse_push
from vm.egress.broker.grant import Grant
from vm.egress.names import INTERNAL, BadName, canonical
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vm.egress.broker.reference import Reference
    from vm.egress.broker.secret import Secret

MiB: Final = 1 << 20
_GRANT: Final = ("endpoint", "client_id", "access", "refresh", "expires")
MAX_SERVICES: Final = 64
MAX_BODY: Final = 64 * MiB
"""What a request may carry where its service says nothing; model APIs take 32 MB and less."""

WAYS: Final = ("bearer", "basic", "x-api-key", "x-goog-api-key")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]\Z")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}\Z")
_FORBIDDEN: Final = re.compile(r"(?:LD_|BASH_ENV|ENV\Z|PATH\Z|PYTHON|NODE_OPTIONS|GIT_)")
_HEADER: Final = re.compile(r"header:(x-[a-z0-9-]{1,60})\Z")
_KEYS: Final = frozenset(
    (
        *("upstream", "credential", "add", "accept", "user", "placeholder", "meter"),
        *("metered", "allow", "env", "git", "push", "max_request", "private", "oauth"),
    )
)


@dataclass(frozen=True, slots=True)
class Service:
    """One service; what it means stands in `services.yaml`."""

    name: str
    host: str
    port: int
    credential: Reference
    add: str
    accept: tuple[str, ...]
    allow: tuple[target.Rule, ...] = ()
    metered: tuple[target.Rule, ...] = ()
    meter: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    placeholder: str = "cloche-{token}"
    user: str = ""
    git: bool = False
    push: tuple[PushRule, ...] = ()
    max_request: int = MAX_BODY
    """Bytes of a request's body; one of git's pushes carries the objects."""
    private: bool = False
    """Whether the host may have a private address, as a company's own service has."""
    oauth: Grant | None = None
    """How its token is renewed, where the credential is of the kind `oauth`."""

    @property
    def internal(self) -> str:
        """The name that guests ask for."""
        return f"{self.name}.{INTERNAL}"

    @property
    def url(self) -> str:
        """The address that guests are given."""
        return f"http://{self.internal}"


def builtin() -> dict[str, Service]:
    """Return the services that come with Cloche, by name."""
    text = resources.files(__package__ or "").joinpath("services.yaml").read_text("utf-8")
    return {name: parse(name, data) for name, data in yaml.safe_load(text).items()}


def settings_with(own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Join the settings of the services that come with Cloche with a user's, as plain data.

    Raises BrokerRefused for what is no mapping of settings.
    """
    raw: dict[str, dict[str, Any]] = yaml.safe_load(
        resources.files(__package__ or "").joinpath("services.yaml").read_text("utf-8")
    )
    if len(own) > MAX_SERVICES:
        raise BrokerRefused(f"There are more than {MAX_SERVICES} services.")
    for name, data in own.items():
        if not isinstance(data, dict):
            raise BrokerRefused(f"The service {str(name)[:40]!r} has no settings.")
        raw[name] = {**raw.get(name, {}), **data}
    return raw


def with_own(own: Mapping[str, Any]) -> dict[str, Service]:
    """Join what the *user's* configuration says: new services, or other settings of known ones.

    Never call it with a workspace's configuration: that is written by agents.
    """
    return {name: parse(name, data) for name, data in settings_with(own).items()}


def parse(name: str, data: Mapping[str, Any]) -> Service:
    """Read one service; BrokerRefused names the setting that is wrong, never its value."""
    if not _NAME.match(name):
        raise _wrong(name[:40], "name", "lower-case letters, digits and -")
    unknown = sorted(str(key)[:40] for key in data if key not in _KEYS)
    if unknown:
        raise _wrong(name, unknown[0], f"one of {', '.join(sorted(_KEYS))}")
    host, port = _upstream(name, data.get("upstream"))
    service = Service(
        name, host, port, reference.parse(str(data.get("credential", ""))),
        _way(name, data.get("add")), tuple(_way(name, way) for way in _list(name, data, "accept")),
        tuple(target.parse_rule(rule) for rule in _list(name, data, "allow")),
        tuple(target.parse_rule(rule) for rule in _list(name, data, "metered")),
        str(data.get("meter", "")), _env(name, data.get("env", {})),
        str(data.get("placeholder", "cloche-{token}")), str(data.get("user", "")),
        data.get("git") is True, tuple(parse_push(rule) for rule in _list(name, data, "push")),
        _size(name, data.get("max_request", MAX_BODY)), data.get("private") is True,
        _grant(name, data.get("oauth")),
    )  # fmt: skip
    _check(service)
    return service


def _wrong(service: str, key: str, wanted: str) -> BrokerRefused:
    return BrokerRefused(f"Service {service}: {key} is wrong.", f"Write {key}: {wanted}")


def _upstream(name: str, value: object) -> tuple[str, int]:
    wanted = "https://HOST[:PORT], where HOST is a name as its certificate has it"
    try:
        parts = urlsplit(str(value))
        port = parts.port or 443
        host = canonical(parts.hostname or "")
    except (BadName, ValueError):
        raise _wrong(name, "upstream", wanted) from None
    rest = parts.path.strip("/") + parts.query + parts.fragment
    if parts.scheme != "https" or "@" in parts.netloc or rest:
        raise _wrong(name, "upstream", wanted)
    return host, port


def _grant(name: str, value: object) -> Grant | None:
    """Read how a token is renewed."""
    if value is None:
        return None
    wanted = "endpoint, client_id, access, refresh, expires (keys joined by dots), milliseconds"
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": ""}
    if not set(given) <= {*_GRANT, "milliseconds"} or not {"endpoint", "access"} <= set(given):
        raise _wrong(name, "oauth", wanted)
    texts = {key: str(given.get(key, "")) for key in _GRANT}
    url = urlsplit(texts["endpoint"])
    host, port = _upstream(name, f"{url.scheme}://{url.netloc}")
    access, refresh, expires = (
        tuple(texts[key].split(".")) for key in ("access", "refresh", "expires")
    )
    if not url.path or url.query or not all((*access, *refresh, *expires)):
        raise _wrong(name, "oauth", wanted)
    milliseconds = given.get("milliseconds") is True
    return Grant(host, port, url.path, texts["client_id"], access, refresh, expires, milliseconds)


def _way(name: str, value: object) -> str:
    text = str(value)
    if text in WAYS or _HEADER.match(text):
        return text
    hint = f"{', '.join(WAYS)} or header:x-NAME (a query is written into logs everywhere)"
    raise _wrong(name, "add", hint)


def _list(name: str, data: Mapping[str, Any], key: str) -> list[str]:
    value: Any = data.get(key, [])
    if not isinstance(value, list) or len(value) > 256:  # pyright: ignore[reportUnknownArgumentType]
        raise _wrong(name, key, "a list of at most 256 texts")
    return [str(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _env(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _wrong(name, "env", "VARIABLE: text")
    env = {str(key): str(text) for key, text in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for key in env:
        if not _VARIABLE.match(key) or _FORBIDDEN.match(key):
            raise _wrong(name, "env", "VARIABLE: text, and none that programs are loaded by")
    return env


def _size(name: str, value: object) -> int:
    if type(value) is not int or not 0 < value <= 4096 * MiB:
        raise _wrong(name, "max_request", "bytes, up to 4 GiB")
    return value


def _check(service: Service) -> None:
    if (service.credential.kind == "oauth") != (service.oauth is not None):
        raise _wrong(service.name, "oauth", "where the credential is oauth:/PATH, and only there")
    if not service.accept:
        raise _wrong(service.name, "accept", "a list of ways in which the placeholder comes")
    if not service.git and not service.allow:
        raise _wrong(service.name, "allow", "a list of METHOD /path")
    if service.push and not service.git:
        raise _wrong(service.name, "push", "only where git: true")
    if "basic" in (service.add, *service.accept) and not re.fullmatch(r"[\w.@-]+", service.user):
        raise _wrong(service.name, "user", "the user's name of basic authentication")
    if not re.fullmatch(r"[A-Za-z0-9_-]*\{token\}", service.placeholder):
        raise _wrong(service.name, "placeholder", "letters, digits and -, then {token}")
    if service.meter not in ("", "anthropic", "openai", "google"):
        raise _wrong(service.name, "meter", "anthropic, openai or google")


@dataclass(frozen=True, slots=True)
class Held:
    """A service in a session: its credential and the placeholder that stands for it."""

    service: Service
    secret: Secret
    placeholder: str
    until: float = inf
    """When the credential ends, in unix seconds."""


def hold(service: Service, secret: Secret, seed: str = "") -> Held:
    """Join a service with its credential and with the session's placeholder.

    `seed` is the session's: with it the placeholder is the same after the broker was started anew,
    for the guest has it already. Without one it is new.
    """
    drawn = seed or secrets.token_hex(20)
    token = hmac.new(drawn.encode(), service.name.encode(), "sha256").hexdigest()[:40]
    return Held(service, secret, service.placeholder.replace("{token}", token))


def field_of(way: str, user: str, value: bytes) -> tuple[bytes, bytes]:
    """Return the header that carries a value in a way."""
    if way == "bearer":
        return b"authorization", b"Bearer " + value
    if way == "basic":
        return b"authorization", b"Basic " + base64.b64encode(user.encode() + b":" + value)
    return way.removeprefix("header:").encode(), value


def guest_env(held: Iterable[Held]) -> dict[str, str]:
    """Return the variables that a session's guest gets: addresses and placeholders only."""
    env: dict[str, str] = {}
    settings: list[tuple[str, str]] = []
    for one in held:
        service = one.service
        for key, text in service.env.items():
            filled = text.replace("{placeholder}", one.placeholder).replace("{url}", service.url)
            env[key] = filled
        if service.git:
            settings += _git_settings(one)
    for number, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**env, "GIT_CONFIG_COUNT": str(len(settings))} if settings else env


def _git_settings(held: Held) -> list[tuple[str, str]]:
    """Have git ask the broker where it would ask the host (git-config(1), GIT_CONFIG_COUNT)."""
    service = held.service
    port = "" if service.port == 443 else f":{service.port}"
    _, value = field_of(service.accept[0], service.user, held.placeholder.encode())
    return [
        (f"url.{service.url}/.insteadOf", f"https://{service.host}{port}/"),
        (f"http.{service.url}/.extraHeader", f"Authorization: {value.decode()}"),
    ]
