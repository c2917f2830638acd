"""The user's egress rules: `rules.yaml` in Cloche's configuration folder, a file of their own.

    always:
      allow:
        - api.example                            # ports 443 and 80
        - rule: db.corp.example:5432
          private: true
      deny:
        - telemetry.example                      # beats every other rule and answer
    projects:
      /home/me/parser:                           # only for sessions on this workspace
        allow: [pkgs.example:443]
        deny: [ads.example]

It is read whole or not at all: a rule that cannot be read, or that could never take effect, is an
error with file, line and reason, for the user believes in what stands there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from app import config_yaml
from app.config_checks import flag, mapping
from vm.egress.addresses import Own
from vm.egress.rules import BadRule, Effect, Rule, check_effective, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from app.config_yaml import Document, Key

FILE: Final = "rules.yaml"
MAX_RULES: Final = 1000
"""Most rules of one list."""

EFFECTS: Final[tuple[Effect, Effect]] = ("allow", "deny")


@dataclass(frozen=True, slots=True)
class Section:
    """The rules of one scope."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class UserRules:
    """All of the file."""

    always: Section = Section()
    projects: Mapping[str, Section] = field(default_factory=dict[str, Section])
    """By the workspace's path, as text (see `app.wire_text`)."""

    def project(self, workspace: str) -> Section:
        """Return what holds for one workspace only."""
        return self.projects.get(workspace, Section())

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Yield all sections; the one that holds always is called by an empty name."""
        yield "", self.always
        yield from self.projects.items()


def load_rules(folder: Path) -> UserRules:
    """Read the file in Cloche's configuration folder; no rules where there is none.

    Raises AppError `bad-config` with file, line and column.
    """
    document = config_yaml.load(folder / FILE)
    return UserRules() if document is None else read_rules(document)


def read_rules(document: Document) -> UserRules:
    """Turn a file's data into rules; errors as in `load_rules`."""
    if document.data is None:
        return UserRules()
    top = mapping(document, (), document.data, ("always", "projects"))
    always = _section(document, ("always",), top.get("always"))
    found: dict[str, Section] = {}
    if top.get("projects") is not None:
        for name, value in mapping(document, ("projects",), top["projects"], None).items():
            if not name.startswith("/"):
                reason = f"'{name}' is not the full path of a workspace"
                raise document.error(("projects", name), reason)
            found[name] = _section(document, ("projects", name), value)
    rules = UserRules(always, found)
    _refuse_hidden(document, rules)
    return rules


def _section(document: Document, key: Key, value: Any) -> Section:
    if value is None:
        return Section()
    given = mapping(document, key, value, EFFECTS)
    return Section(*(_list(document, (*key, effect), given.get(effect)) for effect in EFFECTS))


def _list(document: Document, key: Key, value: Any) -> tuple[Rule, ...]:
    if value is None:
        return ()
    items: list[Any] | None = value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]
    if items is None or len(items) > MAX_RULES:
        raise document.error(key, f"here must stand a list of at most {MAX_RULES} rules")
    return tuple(_rule(document, (*key, index), item) for index, item in enumerate(items))


def _rule(document: Document, key: Key, value: Any) -> Rule:
    effect: Effect = "allow" if key[-2] == "allow" else "deny"
    text, private = value, False
    if isinstance(value, dict):
        given = mapping(document, key, value, ("rule", "private"))
        text = given.get("rule")
        private = flag(document, (*key, "private"), given.get("private", False))
    if not isinstance(text, str):
        raise document.error(key, "here must stand a rule such as pkgs.example:443")
    line, _ = document.places[key]
    return checked_rule(document, key, text, effect, private, f"{document.path.name}:{line}")


def checked_rule(
    document: Document, key: Key, text: str, effect: Effect, private: bool, origin: str
) -> Rule:
    """Read one rule that stands in a file; the error names where.

    This machine's own addresses are not looked at: they change, and the enforcer knows them.
    """
    try:
        rule = parse_rule(text, effect, private=private, origin=origin)
        check_effective(rule, Own(), users=True)
    except BadRule as error:
        raise document.error(key, error.reason.rstrip(".")) from None
    return rule


def _refuse_hidden(document: Document, rules: UserRules) -> None:
    """Refuse an allow that a deny of the same file hides altogether."""
    for name, section in rules.sections():
        denies = (*rules.always.deny, *section.deny)
        for index, rule in enumerate(section.allow):
            hiding = next((deny for deny in denies if deny.covers(rule)), None)
            if hiding is not None:
                reason = (
                    f"{rule.text} never takes effect: 'deny {hiding.text}' ({hiding.origin}) wins"
                )
                key: Key = ("projects", name) if name else ("always",)
                raise document.error((*key, "allow", index), reason)
