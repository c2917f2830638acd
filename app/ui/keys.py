"""Every key of the workstation as data: the help screen and the guide's page come from it.

Run as a program it prints the page: `python -m app.ui.keys > docs/guide/keys.md`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from textual.binding import Binding

from app.prefix import DEFAULT
from app.ui.egress_asks import KEYS
from app.ui.own_keys import moved
from app.ui.work_screen import ANSWER_KEY, PREFIX_ID, key_name
from widgets.copy_keys import COPY_KEYS, MOUSE_GESTURES, PREFIX_KEYS, SEARCH_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from textual.binding import BindingType
    from textual.dom import DOMNode

    from widgets.copy_keys import CopyKey, PrefixKey, SearchKey

INTO_SESSION = "into session"
"""How the keys with a session's number are described."""

INTRODUCTION = """\
# Keys

This page is made from the program's own table of keys.

While an agent's screen has the focus, every key goes to the agent. What stays Cloche's: `ctrl+g`
and then any key of the fleet screen (`ctrl+g` twice sends it once), `alt+1` to `alt+9`, and `f12`.
`ctrl+g` and then `e` answers what an agent wants to reach, on every screen and in every dialog.
A screen that is attached elsewhere is only watched; `ctrl+g` and then `enter` takes it over.
How panes, copy mode and the mouse work stands in [live terminals](terminals.md).

A key with a name can be another one: `ui: {keys: {review.accept: y, review.copy: Y}}` in your
`config.yaml`; the key line, the help and what the screens say then name yours. A project's
`.cloche.yaml` cannot do that.
"""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Keys that do the same, and what that is."""

    keys: tuple[str, ...]
    what: str
    name: str = ""
    """What the user calls it to move it; empty where it stays."""


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """The keys of one place."""

    title: str
    rows: tuple[KeyRow, ...]


ANSWERING = KeyRow((f"{DEFAULT} {ANSWER_KEY}",), "Give the keys to the connection that is held")

ANSWERS = {
    "o": "Allow it for a minute",
    "s": "Allow it in this session",
    "p": "Allow it in every session on this workspace; enter writes the rule that is shown",
    "a": "Allow it in every session; enter writes the rule that is shown",
    "w": "Allow all names beside it in this session; enter writes the rule that is shown",
    "d": "Deny it in this session",
    "exclamation_mark": "Deny it in every session; enter writes the rule that is shown",
}
"""What the answers to a held connection do, by key."""

ASKING_KEYS = (
    KeyRow(("enter",), "Choose among all answers; each is shown as the rule that it writes"),
    KeyRow(("tab",), "The next question"),
    KeyRow(("esc",), "Answer later: the keys go back to where they were"),
)


CAP_GROUP = KeyGroup(
    "Question about a session's cap",
    (
        KeyRow(("r",), "Raise the cap to what is shown: as much again"),
        KeyRow(("n",), "No cap for this session any more; enter takes it"),
        KeyRow(("k",), "Keep it stopped: what waits is refused, and what comes"),
        *ASKING_KEYS[1:],
    ),
)


def rows_of(
    bindings: Iterable[BindingType], keys: Mapping[str, str] | None = None
) -> tuple[KeyRow, ...]:
    """Return the rows of some bindings; keys of the same action and words share one."""
    found: dict[tuple[str, str], list[str]] = {}
    names: dict[tuple[str, str], str] = {}
    for binding in Binding.make_bindings(bindings):
        own = moved(binding, keys or {})
        place = (own.action, own.tooltip or own.description)
        shown = found.setdefault(place, [])
        if key_name(own.key) not in shown:
            shown.append(key_name(own.key))
        names.setdefault(place, "" if own.id in (None, PREFIX_ID) else own.id)
    rows = [KeyRow(tuple(keys), what, names[a, what]) for (a, what), keys in found.items()]
    return tuple(_joined(rows))


def _joined(rows: list[KeyRow]) -> list[KeyRow]:
    """Write the keys of nine sessions as one row."""
    panes = [row for row in rows if row.what.startswith(INTO_SESSION)]
    rest = [row for row in rows if row not in panes]
    keys = ("1 … 9", "alt+1 … 9")
    return [*rest, KeyRow(keys, f"{INTO_SESSION} 1 … 9")] if panes else rest


def bindings_of(cls: type[DOMNode]) -> list[BindingType]:
    """Return the bindings that a class itself declares."""
    return cast("list[BindingType]", cls.__dict__.get("BINDINGS", []))


def _places() -> tuple[tuple[str, type[DOMNode]], ...]:
    """Return where keys are, in the order in which people meet them."""
    from app.ui.commit_screen import CommitScreen
    from app.ui.conflict_dialog import ConflictDialog
    from app.ui.dialogs import MergedDialog, MergeDialog, NewSessionDialog
    from app.ui.egress_dialog import RuleDialog
    from app.ui.egress_screen import EgressScreen
    from app.ui.error_dialog import ErrorDialog
    from app.ui.fleet_screen import FleetScreen
    from app.ui.found_dialog import FoundDialog
    from app.ui.review_screen import ReviewScreen
    from app.ui.text_dialog import TextDialog
    from app.ui.work_screen import WorkScreen
    from widgets.diff_pane import DiffPane
    from widgets.file_list import FileList
    from widgets.line_bar import LineBar
    from widgets.line_list import LineList
    from widgets.log_table import LogTable

    return (
        ("Everywhere", WorkScreen),
        ("Fleet", FleetScreen),
        ("Review", ReviewScreen),
        ("Commits", CommitScreen),
        ("Diff", DiffPane),
        ("Egress", EgressScreen),
        ("Rows of the egress log", LogTable),
        ("Rule for a host", RuleDialog),
        ("Lists", LineList),
        ("List of files", FileList),
        ("Filter and find", LineBar),
        ("New session", NewSessionDialog),
        ("Merge", MergeDialog),
        ("Conflicts", ConflictDialog),
        ("Found in all files", FoundDialog),
        ("Writing a text", TextDialog),
        ("After a merge", MergedDialog),
        ("Details of an error", ErrorDialog),
    )


def _stays(cls: type[DOMNode]) -> bool:
    """Tell whether keys are answers in a dialog, or those of a line to type in."""
    from textual.screen import ModalScreen

    from widgets.line_bar import LineBar

    return issubclass(cls, ModalScreen | LineBar)


def movable_places() -> tuple[tuple[str, list[BindingType]], ...]:
    """Return the places whose keys the user may move; those of a screen with those of all."""
    from app.ui.work_screen import WorkScreen

    shared = [
        binding
        for binding in Binding.make_bindings(bindings_of(WorkScreen))
        if binding.id != PREFIX_ID  # it has a setting of its own
    ]
    return tuple(
        (title, [*bindings_of(cls), *(shared if issubclass(cls, WorkScreen) else ())])
        for title, cls in _places()
        if not _stays(cls) and cls is not WorkScreen
    )


def _rows_at(cls: type[DOMNode], keys: Mapping[str, str] | None) -> tuple[KeyRow, ...]:
    rows = rows_of(bindings_of(cls), keys)
    return tuple(replace(row, name="") for row in rows) if _stays(cls) else rows


def key_groups(
    prefix: str = DEFAULT, keys: Mapping[str, str] | None = None
) -> tuple[KeyGroup, ...]:
    """Return every group, with the user's own prefix and the `keys` that the user moved."""
    groups = [KeyGroup(title, _rows_at(cls, keys)) for title, cls in _places()]
    everywhere = KeyGroup(groups[0].title, (*groups[0].rows, ANSWERING))
    ordered = (everywhere, asking_group(), groups[1], *terminal_groups(), *groups[2:], CAP_GROUP)
    return tuple(_with_prefix(group, prefix) for group in ordered)


def _with_prefix(group: KeyGroup, prefix: str) -> KeyGroup:
    rows = tuple(
        replace(row, keys=tuple(key.replace(DEFAULT, prefix) for key in row.keys))
        for row in group.rows
    )
    return KeyGroup(group.title.replace(DEFAULT, prefix), rows)


def asking_group() -> KeyGroup:
    """Return the answers to a held connection."""
    rows = [KeyRow((shown,), ANSWERS[name]) for name, shown, _, _ in KEYS]
    return KeyGroup("Held connection", (*rows, *ASKING_KEYS))


def terminal_groups() -> tuple[KeyGroup, ...]:
    """Return what keys and mouse do in an agent's screen besides typing."""
    tables: tuple[tuple[str, Sequence[CopyKey | PrefixKey | SearchKey]], ...] = (
        ("In an agent's screen, after ctrl+g", PREFIX_KEYS),
        ("Copy mode", COPY_KEYS),
        ("Search in a screen", SEARCH_KEYS),
    )
    groups = [KeyGroup(title, tuple(_row(key) for key in keys)) for title, keys in tables]
    mouse = tuple(KeyRow((gesture.gesture,), gesture.what) for gesture in MOUSE_GESTURES)
    return (*groups, KeyGroup("Mouse in an agent's screen", mouse))


def _row(row: CopyKey | PrefixKey | SearchKey) -> KeyRow:
    keys = tuple(key_name(key) for key in row.keys)
    return KeyRow(("1 … 9",) if keys == tuple("123456789") else keys, row.what)


def keys_page() -> str:
    """Return the page of the guide."""
    parts = [INTRODUCTION]
    for group in key_groups():
        named = any(row.name for row in group.rows)
        lines = [f"## {group.title}", ""]
        lines += ["| key | what it does | name |", "|---|---|---|"] if named else []
        lines += [] if named else ["| key | what it does |", "|---|---|"]
        for row in group.rows:
            keys = " ".join(f"`{key}`" for key in row.keys)
            name = f" `{row.name}` |" if row.name else " |" if named else ""
            lines.append(f"| {keys} | {row.what} |{name}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(keys_page())
