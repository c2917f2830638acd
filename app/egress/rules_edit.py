"""Changes of `rules.yaml`: one rule more, under a lock, with the user's comments and order kept."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.events import MappingEndEvent

from app import config_yaml
from app.egress.adding import Change, contradicts, hidden_by, is_same
from app.egress.rules_file import FILE, Section, read_rules
from app.errors import AppError
from app.files import read_regular, write_atomic
from app.locking import locked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.egress.rules_file import UserRules
    from vm.egress.rules import Effect, Rule

ALWAYS: Final = ""
"""The name of the scope that holds in every session; other scopes are workspaces."""

_COMMENT: Final = re.compile(r"(?:^|\s)#(.*)$")
HEADER: Final = (
    "# What agents may reach. Written by Cloche's questions and by `cloche egress allow|deny`;\n"
    "# edit it as you like, comments and order stay. See docs/guide/network.md.\n"
)


class _Emitter(RoundTripEmitter):
    """ruamel.yaml's, which writes two items on one line after `{…}  # comment` (seen in 0.19.1)."""

    def expect_flow_mapping_key(self) -> None:
        ended = isinstance(self.event, MappingEndEvent)  # pyright: ignore[reportUnknownMemberType]
        super().expect_flow_mapping_key()
        if ended:
            self.no_newline = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rule stands."""

    scope: str
    effect: Effect
    index: int
    rule: Rule


def add_rule(folder: Path, rule: Rule, scope: str) -> Change:
    """Add a rule that is always to hold, or on one workspace, and take out what contradicts it.

    Raises AppError: `bad-config` for a file that is damaged already, `not-effective` where another
    rule of the user hides the new one, `busy` when somebody else holds the file for long.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder / f"{FILE}.lock"):
        path = folder / FILE
        old = _old_text(path)
        rules = read_rules(config_yaml.parse(path, old))
        gone = [place for place in _places(rules) if _contradicts(place, rule, scope)]
        _refuse_hidden(rules, rule, scope, gone)
        same = [one for one in _places(rules) if one.scope == scope and is_same(one.rule, rule)]
        if same and not gone:
            return Change(same[0].rule, added=False)
        text = _changed(old.decode(), None if same else rule, scope, gone)
        _check_result(path, old.decode(), text, rule, gone)
        write_atomic(path, text)
        return Change(rule, added=not same, removed=tuple(place.rule for place in gone))


def _places(rules: UserRules) -> Iterator[_Place]:
    for scope, section in rules.sections():
        yield from (_Place(scope, "allow", i, rule) for i, rule in enumerate(section.allow))
        yield from (_Place(scope, "deny", i, rule) for i, rule in enumerate(section.deny))


def _contradicts(place: _Place, rule: Rule, scope: str) -> bool:
    beside = place.scope == scope
    return (beside or scope == ALWAYS) and contradicts(place.rule, rule, beside=beside)


def _refuse_hidden(rules: UserRules, rule: Rule, scope: str, gone: list[_Place]) -> None:
    section = rules.projects.get(scope, Section())
    going = [place.rule for place in gone]
    denies = (one for one in (*rules.always.deny, *section.deny) if one not in going)
    hiding = hidden_by(rule, denies)
    if hiding is not None:
        raise AppError(
            "not-effective",
            f"{rule.text} would never take effect: 'deny {hiding.text}' ({hiding.origin}) wins.",
            f"Take that rule out of {FILE}, or narrow it.",
        )


def _check_result(path: Path, old: str, new: bytes, rule: Rule, gone: list[_Place]) -> None:
    """Never leave a file that would be refused or that lost a comment.

    ruamel.yaml loses those behind a `{…}` that stands in a list.
    """
    reason = "a comment would be lost"
    lines = {int(place.rule.origin.rpartition(":")[2]) for place in gone}
    lost = _comments(old, lines) - _comments(new.decode(), set())
    try:
        read_rules(config_yaml.parse(path, new))
    except AppError as error:
        reason = error.message
    else:
        if not lost:
            return
    raise AppError(
        "bad-config",
        f"Cloche cannot add a rule to {path} in the form that it has: {reason}.",
        f"Add it by hand: {rule.effect} {rule.text}",
    )


def _comments(text: str, without: set[int]) -> Counter[str]:
    """Count the comments of a file, but for those on some lines (from 1)."""
    return Counter(
        found[1].strip()
        for number, line in enumerate(text.splitlines(), 1)
        if number not in without and (found := _COMMENT.search(line))
    )


def _old_text(path: Path) -> bytes:
    try:
        return read_regular(path, config_yaml.MAX_CONFIG)
    except FileNotFoundError:
        return HEADER.encode()


def _changed(old: str, rule: Rule | None, scope: str, gone: list[_Place]) -> bytes:
    """Return the new text of the file."""
    yaml = _yaml()
    data = yaml.load(old)
    top: Any = CommentedMap() if data is None else data
    for place in sorted(gone, key=lambda place: place.index, reverse=True):
        _take_out(_child(_scope(top, place.scope), place.effect, CommentedSeq), place.index)
    if rule is not None:
        _child(_scope(top, scope), rule.effect, CommentedSeq).append(_item(rule))
    stream = io.StringIO()
    yaml.dump(top, stream)
    # a file of comments only has no data that they could be kept with
    kept = old.rstrip("\n") + "\n" if data is None and old.strip() else ""
    return (kept + stream.getvalue()).encode()


def _yaml() -> Any:
    """Return the reader and writer that keeps comments; its types are its own secret."""
    yaml: Any = YAML(typ="rt")
    yaml.Emitter = _Emitter
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _item(rule: Rule) -> Any:
    if not rule.private:
        return rule.text
    return CommentedMap({"rule": rule.text, "private": True})


def _scope(top: Any, scope: str) -> Any:
    if scope == ALWAYS:
        return _child(top, "always", CommentedMap)
    return _child(_child(top, "projects", CommentedMap), scope, CommentedMap)


def _child(parent: Any, key: str, kind: Any) -> Any:
    """Return what stands at a key, made where there is nothing."""
    if parent.get(key) is None:
        parent[key] = kind()
    return parent[key]


def _take_out(items: Any, index: int) -> None:
    """Remove an item with the comment on its line; comments on the lines below it stay."""
    token = (items.ca.items.get(index) or [None])[0]
    text: str = token.value if token is not None else ""
    below = text.partition("\n")[2]
    del items[index]
    lines = [line.strip().removeprefix("#").strip() for line in below.splitlines() if line.strip()]
    if lines and index < len(items):
        column = items.lc.col or 0
        items.yaml_set_comment_before_after_key(index, before="\n".join(lines), indent=column)
