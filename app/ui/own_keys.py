"""The user's own keys: `ui: {keys: {review.accept: y}}`, checked before the workstation opens.

Keys of screens and lists can be moved; those of dialogs are answers and stay. What the screens say
about keys is written with the usual ones and gets the user's own on its way to the screen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from textual.binding import Binding
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from textual.binding import BindingType

MODIFIERS: Final = ("ctrl+", "alt+", "shift+")

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*|[A-Za-z0-9]")
_CLAUSE: Final = re.compile(r"(^|, )(\S+)(?= )")


def read_keys(
    given: Mapping[str, str], places: Iterable[tuple[str, Sequence[BindingType]]], prefix: str
) -> dict[str, str]:
    """Return Textual's key of each binding that the user moved.

    `places` are titles with the bindings that are there together. Raises AppError `bad-config` for
    a name that is none, a key that is none, or two bindings of one place on one key.
    """
    tables = [(title, list(Binding.make_bindings(bindings))) for title, bindings in places]
    known = {binding.id for _, table in tables for binding in table if binding.id}
    keys = {name: _key(name, key, prefix, known) for name, key in given.items()}
    for title, table in tables:
        _check(title, table, keys)
    return keys


def _key(name: str, key: str, prefix: str, known: set[str]) -> str:
    if name not in known:
        raise _refused(f"there is no key called '{name}'", "Find its name in docs/guide/keys.md")
    rest = key
    while rest.startswith(MODIFIERS):
        rest = rest.partition("+")[2]
    plain = _character_to_key(rest) if len(rest) == 1 else rest
    wanted = key[: len(key) - len(rest)] + plain
    if not _NAME.fullmatch(plain) or wanted == prefix:
        raise _refused(f"'{key}' cannot be the key of {name}", "Give one such as y, ctrl+y or f5")
    return wanted


def _check(title: str, table: Sequence[Binding], keys: Mapping[str, str]) -> None:
    """Refuse two bindings on one key, of which the user moved one there."""
    owners: dict[str, str] = {}
    for binding in sorted(table, key=lambda one: one.id not in keys):
        name = binding.id or ""
        for key in [keys[name]] if name in keys else [binding.key]:
            other = owners.setdefault(key, name)
            if other != name and other in keys:
                text = f"the key of {other} is that of {name or binding.description} ({title})"
                raise _refused(text, f"Give {name} another one as well")


def _refused(why: str, hint: str) -> AppError:
    return AppError("bad-config", f"config.yaml: ui.keys: {why}.", hint)


def moved(binding: Binding, keys: Mapping[str, str]) -> Binding:
    """Return a binding with the user's own key, where there is one."""
    own = keys.get(binding.id or "")
    if own is None:
        return binding
    return Binding(
        own,
        binding.action,
        binding.description,
        show=binding.show,
        tooltip=binding.tooltip,
        id=binding.id,
    )


def with_own_keys(text: str, own: Mapping[str, str]) -> str:
    """Return a hint with the user's own keys: each clause of it begins with a key, or with none."""
    if not own:
        return text
    return _CLAUSE.sub(lambda found: found[1] + own.get(found[2], found[2]), text)


def with_own_key(text: str, usual: str, own: str) -> str:
    """Return a text in which a key stands as a word, with the user's own in its place."""
    return re.sub(rf"(?<!\S){re.escape(usual)}(?!\S)", lambda _: own, text, count=1)


def shown_keys(
    table: Iterable[Binding], keys: Mapping[str, str], name: Callable[[str], str]
) -> dict[str, str]:
    """Return how the keys that were moved are written: usual ones -> the user's own."""
    return {
        name(binding.key): name(keys[binding.id])
        for binding in table
        if binding.id is not None and binding.id in keys
    }
