"""What the user configured, and what a project may add: limits and exclusions, never powers.

`$XDG_CONFIG_HOME/cloche/config.yaml`:

    defaults: {memory: 2048, vcpus: 2, scratch: 20, accel: auto, git: full, exclude: ["*.bin"]}
    machine: {jail: auto, guest: standard, queue: 600, pool: 16384}
    agents:
      mine: {command: [my-agent, --fast], env: {LANG: C.UTF-8}}
    ui: {bell: mark, prefix: ctrl+g, direct_keys: true}
    egress: {profile: standard, unlisted: ask, wait: 60, ca: host}
    broker: {services: {anthropic: {credential: "file:/home/me/.keys/a"}}, cap: {usd: 5}}

`.cloche.yaml` in the workspace comes with the code and is not trusted: it may only tighten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from app import config_yaml
from app.agents import NEEDS, Agent, Need, builtin
from app.broker.settings import BrokerSettings, read_broker
from app.config_checks import choice, flag, mapping, number, texts
from app.egress.settings import Project, Settings, read_project, read_settings
from app.prefix import CHOICES, DEFAULT, PrefixRefused, prefix_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from app.config_yaml import Document, Key

CONFIG_FILE = "config.yaml"
PROJECT_FILE = ".cloche.yaml"
GIT_MODES = ("none", "full")
"""How much of the repository goes along, least first."""
ACCELERATORS = ("auto", "kvm", "tcg")
JAILS = ("auto", "on", "off")
"""Whether QEMU must be locked up: where the host can, always (else nothing starts), never."""

GUESTS = ("debug", "standard", "strict")
"""How much the guest's kernel refuses to the agent, least first."""

Bell = Literal["mark", "sound", "off"]
"""What an agent's bell does: a mark at its session, your own terminal's bell besides, nothing."""

BELLS: Final[tuple[Bell, ...]] = ("mark", "sound", "off")

LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "memory": (256, 1 << 20),
    "vcpus": (1, 64),
    "scratch": (1, 1024),
}
"""Least and greatest value of each limit: MiB, count, GiB."""

MACHINES: Final[Mapping[str, tuple[int, int]]] = {"queue": (0, 86400), "pool": (256, 1 << 24)}
"""Least and greatest value of what holds for all machines: seconds, MiB."""

CONFIG_KEYS: Final = ("defaults", "machine", "agents", "ui", "egress", "broker")

PROJECT_KEYS: Final = ("exclude", "git", "machine", "egress", *LIMITS)
"""What a project's file may hold."""

_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Defaults:
    """Bounds and filters of a session."""

    memory: int = 2048
    """Memory of the machine in MiB."""
    vcpus: int = 2
    scratch: int = 20
    """Size of the scratch disk in GiB (thin)."""
    accel: str = "auto"
    git: str = "full"
    exclude: tuple[str, ...] = ()
    """Patterns (gitignore style) that keep paths out of the snapshot."""
    jail: str = "auto"
    """One of JAILS; in the files it stands at `machine: {jail: …}`, as the next three do."""
    guest: str = "standard"
    """One of GUESTS."""
    queue: int = 600
    """Seconds that a start may wait for memory; 0: it is refused at once."""
    pool: int = 0
    """MiB that all sessions may have together; 0: what the host's memory allows."""


@dataclass(frozen=True, slots=True)
class Ui:
    """How the workstation behaves."""

    bell: Bell = "mark"
    prefix: str = DEFAULT
    """The key that Cloche keeps for itself in an agent's screen, by its name in key events."""
    direct_keys: bool = True
    """Cloche keeps alt+1 … alt+9 and f12, too."""
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """The user's own keys by what they do, unchecked: only the workstation knows its keys."""
    open_with: tuple[str, ...] = ()
    """The command that shows both sides of a changed file; empty: the desktop's own."""


@dataclass(frozen=True, slots=True)
class Config:
    """The user's configuration with the built-in agents in it."""

    defaults: Defaults = Defaults()
    agents: dict[str, Agent] = field(default_factory=builtin)
    ui: Ui = Ui()
    egress: Settings = field(default_factory=Settings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)


def load_config(folder: Path) -> Config:
    """Read `config.yaml` in `folder`; without one everything has its default.

    Raises AppError `bad-config` that names file, line and column.
    """
    document = config_yaml.load(folder / CONFIG_FILE)
    if document is None or document.data is None:
        return Config()
    top = mapping(document, (), document.data, CONFIG_KEYS)
    defaults = replace(
        _defaults(document, top.get("defaults")), **_machine(document, top.get("machine"))
    )
    broker = read_broker(document, top.get("broker"))
    agents = builtin() | _agents(document, top.get("agents"), broker)
    egress = read_settings(document, top.get("egress"), top.get("agents"))
    return Config(defaults, agents, _ui(document, top.get("ui")), egress, broker)


def load_project(workspace: Path) -> Project:
    """Return what the workspace's `.cloche.yaml` tightens of the network. Errors: see `tighten`."""
    document = config_yaml.load(workspace / PROJECT_FILE)
    if document is None or document.data is None:
        return Project()
    top = mapping(document, (), document.data, PROJECT_KEYS)
    return read_project(document, top.get("egress"))


def tighten(defaults: Defaults, workspace: Path) -> Defaults:
    """Apply the workspace's `.cloche.yaml`; it may lower limits and hide more, nothing else.

    Raises AppError `bad-config` for anything that would loosen or that is unknown.
    """
    document = config_yaml.load(workspace / PROJECT_FILE)
    if document is None or document.data is None:
        return defaults
    top = mapping(document, (), document.data, PROJECT_KEYS)
    machine = top.pop("machine", None)
    read_project(document, top.pop("egress", None))  # a rule that is none is refused with the rest
    asked = _defaults(document, top, at=())
    for name in ("memory", "vcpus", "scratch"):
        if name in top and getattr(asked, name) > getattr(defaults, name):
            raise document.error(
                (name,), f"a project may only lower '{name}' (now {getattr(defaults, name)})"
            )
    if "git" in top and GIT_MODES.index(asked.git) > GIT_MODES.index(defaults.git):
        raise document.error(("git",), f"a project may not widen 'git' (now {defaults.git})")
    given = {name: getattr(asked, name) for name in top if name != "exclude"}
    if machine is not None:
        given |= _tighter_machine(document, machine, defaults)
    return replace(defaults, **given, exclude=(*defaults.exclude, *asked.exclude))


def _tighter_machine(document: Document, value: Any, now: Defaults) -> dict[str, str]:
    """Return what a project makes of `machine`: it may demand a jail and a stricter guest."""
    given = mapping(document, ("machine",), value, ("jail", "guest"))
    jail, guest = _jail(document, given, now.jail), _guest(document, given, now.guest)
    if jail not in ("on", now.jail):
        text = f"a project may only set 'jail: on' (now {now.jail})"
        raise document.error(("machine", "jail"), text)
    if GUESTS.index(guest) < GUESTS.index(now.guest):
        text = f"a project may only make 'guest' stricter (now {now.guest})"
        raise document.error(("machine", "guest"), text)
    return {"jail": jail, "guest": guest}


def _jail(document: Document, given: dict[str, Any], default: str) -> str:
    if isinstance(given.get("jail"), bool):  # YAML takes a bare `on` or `off` for one
        given["jail"] = "on" if given["jail"] else "off"
    return choice(document, ("machine", "jail"), given, JAILS, default)


def _guest(document: Document, given: dict[str, Any], default: str) -> str:
    return choice(document, ("machine", "guest"), given, GUESTS, default)


def _machine(document: Document, value: Any) -> dict[str, Any]:
    """Return what holds for all machines, by its names in `Defaults`."""
    if value is None:
        return {}
    given = mapping(document, ("machine",), value, ("jail", "guest", *MACHINES))
    found: dict[str, Any] = {
        name: number(document, ("machine", name), given[name], *MACHINES[name])
        for name in MACHINES
        if name in given
    }
    words = {"jail": _jail(document, given, "auto"), "guest": _guest(document, given, "standard")}
    return found | words


def _defaults(document: Document, value: Any, at: Key = ("defaults",)) -> Defaults:
    if value is None:
        return Defaults()
    given = mapping(document, at, value, ("accel", "git", "exclude", *LIMITS))
    built_in = Defaults()
    numbers = {
        name: number(document, (*at, name), given[name], *LIMITS[name])
        if name in given
        else getattr(built_in, name)
        for name in LIMITS
    }
    return Defaults(
        **numbers,
        accel=choice(document, (*at, "accel"), given, ACCELERATORS, built_in.accel),
        git=choice(document, (*at, "git"), given, GIT_MODES, built_in.git),
        exclude=texts(document, (*at, "exclude"), given.get("exclude", [])),
        jail=built_in.jail,
        guest=built_in.guest,
        queue=built_in.queue,
        pool=built_in.pool,
    )


UI_KEYS: Final = ("bell", "prefix", "direct_keys", "open_with", "keys")


def _ui(document: Document, value: Any) -> Ui:
    if value is None:
        return Ui()
    given = mapping(document, ("ui",), value, UI_KEYS)
    if given.get("bell") is False:  # YAML takes a bare `off` for false
        given["bell"] = "off"
    return Ui(
        bell=cast("Bell", choice(document, ("ui", "bell"), given, BELLS, Ui().bell)),
        prefix=_prefix(document, given.get("prefix", DEFAULT)),
        direct_keys=flag(document, ("ui", "direct_keys"), given.get("direct_keys", True)),
        keys=_keys(document, given.get("keys", {})),
        open_with=texts(document, ("ui", "open_with"), given.get("open_with", [])),
    )


def _keys(document: Document, value: Any) -> dict[str, str]:
    """Read the user's own keys; a digit is a number to YAML."""
    found = mapping(document, ("ui", "keys"), value, None)
    for name, key in found.items():
        if isinstance(key, bool) or not isinstance(key, str | int):
            text = f"'{name}' must be a key, in quotes where YAML needs them"
            raise document.error(("ui", "keys", name), text)
    return {str(name): str(key) for name, key in found.items()}


def _prefix(document: Document, value: Any) -> str:
    try:
        return prefix_key(value)
    except PrefixRefused as error:
        raise document.error(("ui", "prefix"), str(error), f"Choose one of: {CHOICES}") from None


def _agents(document: Document, value: Any, broker: BrokerSettings) -> dict[str, Agent]:
    if value is None:
        return {}
    entries = mapping(document, ("agents",), value, None)
    return {name: _agent(document, name, entry, broker) for name, entry in entries.items()}


IMAGES: Final = ("base", "dev")
"""What an agent's own image can be made on: the recipes that come with Cloche."""

AGENT_KEYS: Final = (
    "command", "env", "description", "egress", "services", "image", "from", "install", "stalled_s",
)  # fmt: skip


def _agent(document: Document, name: str, value: Any, broker: BrokerSettings) -> Agent:
    """Read an agent of the user's; of one that comes with Cloche what is not said stays."""
    key: Key = ("agents", name)
    if not _AGENT_NAME.match(name):
        raise document.error(key, "an agent's name is small letters, digits and . _ - (40 at most)")
    given = mapping(document, key, value, AGENT_KEYS)
    known = builtin().get(name)
    if not given.get("command") and known is None:
        raise document.error(key, f"the agent '{name}' needs a command", "command: [program, arg]")
    base = known if known is not None else Agent(name, ())
    changed: dict[str, Any] = {"source": str(document.path)}
    changed |= _program(document, key, given, base)
    for text in ("description", "image"):
        if given.get(text) is not None:
            changed[text] = _text(document, (*key, text), given[text])
    changed["env"] = base.env | _environment(document, (*key, "env"), given.get("env"))
    if given.get("services") is not None:
        changed["services"] = _services(document, (*key, "services"), given["services"], broker)
    if (seconds := given.get("stalled_s")) is not None:
        changed["stalled_s"] = number(document, (*key, "stalled_s"), seconds, 0, 86400)
    return msgspec.structs.replace(base, **changed)


def _program(document: Document, key: Key, given: dict[str, Any], base: Agent) -> dict[str, Any]:
    """Return what changes about an agent's program: its words, and how it comes into an image."""
    changed: dict[str, Any] = {}
    if given.get("command"):
        # A script of several lines, as in `[sh, -c, "…"]`, is a word like any other.
        words = texts(document, (*key, "command"), given["command"], one_line=False)
        changed["command"] = words
        if words[:1] != base.command[:1]:  # how another program comes is for the user to say
            changed |= {"install": "", "below": "", "fetch": ()}
    if given.get("install") is not None:
        changed["fetch"] = ()
        changed["install"] = _text(document, (*key, "install"), given["install"])
    if given.get("from") is not None:
        below = _text(document, (*key, "from"), given["from"])
        if below not in IMAGES:
            raise document.error((*key, "from"), f"'from' must be one of {', '.join(IMAGES)}")
        changed["below"] = below
    return changed


def _text(document: Document, key: Key, value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise document.error(key, f"'{key[-1]}' must be a text of one line")
    return value


def _services(document: Document, key: Key, value: Any, broker: BrokerSettings) -> dict[str, Need]:
    given = mapping(document, key, value, broker.known())
    return {
        name: cast("Need", choice(document, (*key, name), given, NEEDS, "optional"))
        for name in given
    }


def _environment(document: Document, key: Key, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    result: dict[str, str] = {}
    for name, text in mapping(document, key, value, None).items():
        if not _ENV_NAME.match(name):
            raise document.error((*key, name), f"'{name}' is not a name of a variable")
        if not isinstance(text, str) or "\0" in text:
            raise document.error((*key, name), f"the value of '{name}' must be a text (quote it)")
        result[name] = text
    return result
