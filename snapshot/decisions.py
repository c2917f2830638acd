"""Decisions about units, kept as an event log with unlimited undo.

Marks of a unit are a text with one letter a changed line: `o` open, `a` accepted, `r` rejected.
Beside them the log holds *facts*: comments, reasons, edits, resolutions of conflicts, each a value
under a kind and a key (`snapshot.facts` has their shapes). One undo step may hold both.
The log is `decisions.jsonl`: one event a line, synced before `record` returns; a torn last line
(the machine died while writing) is cut off. One process (the keeper) writes it.

A decision names a unit by an id made of its content. So after a refresh exactly those units keep
their decision that are what they were, without any step of its own.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast, get_args

from .conflicts import Resolution
from .durable import append_line
from .errors import StoreDamaged
from .safe_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

State = Literal["open", "accepted", "rejected", "mixed"]
Choice = Literal["open", "accepted", "rejected"]

LETTERS: Final[dict[Choice, str]] = {"open": "o", "accepted": "a", "rejected": "r"}
"""The letter of each choice in a unit's marks."""

FactKind = Literal["comment", "reason", "edit", "rejected", "resolution", "sent"]
FACTS: Final[tuple[FactKind, ...]] = get_args(FactKind)

_WORDS: Final[dict[str, Choice]] = {letter: choice for choice, letter in LETTERS.items()}
_VERSION: Final = 1


class Mark(NamedTuple):
    """New marks for one unit of one path."""

    path: bytes
    unit: str
    marks: str


def unit_key(path: bytes, unit: str) -> str:
    """Return the key of a fact about one unit of one path; no path holds a NUL."""
    return f"{decode(path)}\0{unit}"


class Fact(NamedTuple):
    """Something that is decided besides marks; the value None takes it away."""

    kind: FactKind
    key: str
    value: dict[str, Any] | None


class Decisions(Protocol):
    """Where marks come from: the log, or an overlay for one merge."""

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks of a unit, `size` letters of `o`, `a` and `r`."""
        ...

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return the user's own lines in place of a hunk's result, None where there are none."""
        ...


def edit_in_force(decisions: Decisions, path: bytes, unit: str, marks: str) -> bytes | None:
    """Return the user's own lines in place of a hunk; they hold while all of it is accepted."""
    return decisions.edit(path, unit) if set(marks) == {LETTERS["accepted"]} else None


@dataclass(frozen=True, slots=True)
class Uniform:
    """The same choice for everything; `Uniform("accepted")` is "all of it"."""

    choice: Choice

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return `size` times the letter of the choice."""
        del path, unit
        return LETTERS[self.choice] * size

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return None: nothing is edited."""
        del path, unit
        return None


class Overlay:
    """Decisions with some marks replaced, for one merge or one preview; nothing is recorded."""

    def __init__(self, under: Decisions, marks: Iterable[Mark]) -> None:
        self._under = under
        self._marks = {(mark.path, mark.unit): mark.marks for mark in marks}

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the replaced marks, else those underneath."""
        found = self._marks.get((path, unit), "")
        return found if len(found) == size else self._under.marks(path, unit, size)

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return the edit underneath, unless the marks are replaced."""
        return None if (path, unit) in self._marks else self._under.edit(path, unit)


class _Step(NamedTuple):
    """One undo step: what each unit's marks were and became; "" stands for none on record."""

    before: tuple[Mark, ...]
    after: tuple[Mark, ...]
    facts_before: tuple[Fact, ...] = ()
    facts_after: tuple[Fact, ...] = ()


class Stepped(NamedTuple):
    """What an undo or redo was about."""

    marks: tuple[Mark, ...]
    facts: tuple[Fact, ...]


class DecisionLog:
    """The session's decisions; opening replays the file.

    Raises:
        StoreDamaged: a line that is not the last one cannot be read.

    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: dict[tuple[bytes, str], str] = {}
        self._facts: dict[FactKind, dict[str, dict[str, Any]]] = {kind: {} for kind in FACTS}
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        try:
            self._replay()
        except BaseException:
            self.close()
            raise

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks on record; all open when there are none of that size."""
        found = self._marks.get((path, unit), "")
        return found if len(found) == size else LETTERS["open"] * size

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return the user's own lines in place of a hunk's result, None where there are none."""
        found = self._facts["edit"].get(unit_key(path, unit))
        return None if found is None else base64.b64decode(found["data"])

    def resolution(self, path: bytes, conflict: str) -> Resolution | None:
        """Return how a conflict of a path is solved, None while it is open."""
        found = self._facts["resolution"].get(unit_key(path, conflict))
        if found is None:
            return None
        return Resolution(found["choice"], base64.b64decode(found["data"]))

    def facts(self, kind: FactKind) -> Mapping[str, dict[str, Any]]:
        """Return all facts of a kind by their keys, the oldest first; not to be changed."""
        return self._facts[kind]

    def record(self, marks: Sequence[Mark], facts: Sequence[Fact] = ()) -> bool:
        """Append one undo step and sync it; False when it would change nothing.

        Of several facts of one key the last one counts.
        """
        changed = [mark for mark in marks if self._changes(mark)]
        last = {(fact.kind, fact.key): fact for fact in facts}.values()
        fresh = [fact for fact in last if self._facts[fact.kind].get(fact.key) != fact.value]
        if not changed and not fresh:
            return False
        event: dict[str, Any] = {"event": "set", "marks": [_to_json(mark) for mark in changed]}
        if fresh:
            event["facts"] = fresh
        self._append(event)
        self._set(changed, fresh)
        return True

    def note(self, facts: Sequence[Fact]) -> None:
        """Append facts that no undo takes back, such as that something was sent; synced."""
        self._append({"event": "note", "facts": facts})
        self._put((), facts)

    def undo(self) -> Stepped | None:
        """Take back the last step that is not taken back yet; None when there is none."""
        if not self._done:
            return None
        self._append({"event": "undo"})
        return self._undo()

    def redo(self) -> Stepped | None:
        """Do again what was last taken back; None when there is nothing."""
        if not self._undone:
            return None
        self._append({"event": "redo"})
        return self._redo()

    @property
    def can_undo(self) -> bool:
        """Whether `undo` would do something."""
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether `redo` would do something."""
        return bool(self._undone)

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _changes(self, mark: Mark) -> bool:
        """Return whether marks differ from the record; all open equals none on record."""
        known = self._marks.get((mark.path, mark.unit), "")
        return mark.marks != (known or LETTERS["open"] * len(mark.marks))

    def _set(self, marks: Sequence[Mark], facts: Sequence[Fact]) -> None:
        before = [Mark(m.path, m.unit, self._marks.get((m.path, m.unit), "")) for m in marks]
        known = [Fact(f.kind, f.key, self._facts[f.kind].get(f.key)) for f in facts]
        self._done.append(_Step(tuple(before), tuple(marks), tuple(known), tuple(facts)))
        self._undone.clear()
        self._put(marks, facts)

    def _undo(self) -> Stepped:
        step = self._done.pop()
        self._undone.append(step)
        self._put(step.before[::-1], step.facts_before[::-1])
        return Stepped(step.before, step.facts_before)

    def _redo(self) -> Stepped:
        step = self._undone.pop()
        self._done.append(step)
        self._put(step.after, step.facts_after)
        return Stepped(step.after, step.facts_after)

    def _put(self, marks: Sequence[Mark], facts: Sequence[Fact]) -> None:
        for mark in marks:
            if mark.marks:
                self._marks[mark.path, mark.unit] = mark.marks
            else:
                self._marks.pop((mark.path, mark.unit), None)
        for fact in facts:
            if fact.value is not None:
                self._facts[fact.kind][fact.key] = fact.value
            else:
                self._facts[fact.kind].pop(fact.key, None)

    def _append(self, event: dict[str, Any]) -> None:
        """Write one line and sync it; after a failure the file is as it was."""
        append_line(self._fd, {"v": _VERSION, **event})

    def _replay(self) -> None:
        data = _read_all(self._fd)
        at = 0
        while at < len(data):
            end = data.find(b"\n", at) + 1
            try:
                if not end:
                    raise ValueError("no line feed")
                self._apply(json.loads(data[at:end]))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                if end and end < len(data):
                    raise StoreDamaged(
                        f"{self._path} cannot be read at byte {at}.",
                        f"Move {self._path} away; all decisions of this session are then open.",
                    ) from error
                os.ftruncate(self._fd, at)
                os.fsync(self._fd)
                return
            at = end

    def _apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "set":
                facts = [_fact_from_json(entry) for entry in event.get("facts", ())]
                self._set([_from_json(entry) for entry in event["marks"]], facts)
            case "note":
                self._put((), [_fact_from_json(entry) for entry in event["facts"]])
            case "undo":
                self._undo()
            case "redo":
                self._redo()
            case other:
                raise ValueError(other)


def state_of(marks: str) -> State:
    """Return the state that marks add up to; no marks at all are open."""
    letters = set(marks)
    if not letters:
        return "open"
    return _WORDS[letters.pop()] if len(letters) == 1 else "mixed"


def _to_json(mark: Mark) -> list[str]:
    return [decode(mark.path), mark.unit, mark.marks]


def _from_json(entry: list[Any]) -> Mark:
    path, unit, marks = (cast("str", part) for part in entry)
    if not set(marks) <= _WORDS.keys():
        raise ValueError(marks)
    return Mark(encode(path), unit, marks)


def _fact_from_json(entry: list[Any]) -> Fact:
    kind, key, value = entry
    if kind not in FACTS or not isinstance(key, str) or not isinstance(value, dict | None):
        raise ValueError(entry)
    return Fact(kind, key, value)


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read()
