"""YAML that knows where each value stands, so that an error names file, line and column.

Only plain data is read (PyYAML's safe loader), at most 64 KiB, without aliases (they let a short
file stand for a huge one) and without the same key twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from app.errors import AppError
from app.files import read_regular

if TYPE_CHECKING:
    from pathlib import Path

MAX_CONFIG = 64 << 10
"""Largest configuration file in bytes."""

MAX_DEPTH = 16
"""Deepest nesting of a configuration file."""

MAX_NUMBER = 1 << 63
"""Numbers are smaller, either way: Python itself refuses to write very long ones."""

_CONSTRUCTION = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)
"""What PyYAML raises for a value that is not what its tag says."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What an escape can make, and no file, terminal or protocol can carry."""

Key = tuple[str | int, ...]
"""Where a value stands: the keys and list indexes that lead to it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's data and the place (line and column, from 1) of each value and key in it."""

    path: Path
    data: Any
    places: dict[Key, tuple[int, int]] = field(default_factory=dict[Key, tuple[int, int]])

    def error(self, key: Key, sentence: str, hint: str = "") -> AppError:
        """Make the error about the value at `key`, or about what it should stand in."""
        while key and key not in self.places:
            key = key[:-1]
        line, column = self.places.get(key, (1, 1))
        return config_error(self.path, line, column, sentence, hint)


class _Mark(Protocol):
    """PyYAML's mark: a place counted from 0."""

    line: int
    column: int


def config_error(path: Path, line: int, column: int, sentence: str, hint: str = "") -> AppError:
    """Make an error of a configuration file at a place counted from 1."""
    return AppError(
        "bad-config",
        f"{path}:{line}:{column}: {sentence}",
        hint or f"Correct line {line} of {path}",
    )


def load(path: Path) -> Document | None:
    """Read a configuration file; None when there is none.

    Raises AppError `bad-config` (with file, line and column) or `unreadable`.
    """
    try:
        raw = read_regular(path, MAX_CONFIG)
    except FileNotFoundError:
        return None
    return parse(path, raw)


def parse(path: Path, raw: bytes) -> Document:
    """Turn the bytes of a configuration file into data; errors as in `load`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise config_error(path, line, 1, "the file is not UTF-8") from None
    try:
        return _Reader(path).read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise config_error(path, *_place(mark), error.problem or "this is not YAML") from None
    except yaml.YAMLError as error:
        raise config_error(path, 1, 1, str(error).splitlines()[0]) from None
    except (OverflowError, ValueError):  # PyYAML on an escape for a character that there is not
        raise config_error(path, 1, 1, "a character of it cannot be read") from None


def _place(mark: _Mark | None) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class _Reader:
    """Walks the node tree of one file into data and places."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[Key, tuple[int, int]] = {}
        self._loader = yaml.SafeLoader("")

    def read(self, text: str) -> Document:
        self._look_through(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = None if node is None else self._value((), node)
        return Document(self._path, data, self._places)

    def _look_through(self, text: str) -> None:
        """Refuse what is none of our business before anything is made of it."""
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line, column = _place(event.start_mark)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise config_error(self._path, line, column, "aliases are not allowed here")
            if isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
                raise config_error(self._path, line, column, "half a character stands here")
            if depth > MAX_DEPTH:
                raise config_error(self._path, line, column, "nested too deep")

    def _value(self, key: Key, node: yaml.Node) -> Any:
        self._places.setdefault(key, _place(node.start_mark))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(key, node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value((*key, i), item) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, key: Key, node: yaml.MappingNode) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name_node, value_node in node.value:
            place = _place(name_node.start_mark)
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else None
            if name is None or name_node.tag == "tag:yaml.org,2002:merge":
                raise config_error(self._path, *place, "a key must be a plain word")
            if name in result:
                raise config_error(self._path, *place, f"the key '{name}' stands here twice")
            self._places[(*key, name)] = place
            result[name] = self._value((*key, name), value_node)
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        place = _place(node.start_mark)
        try:
            value: object = self._loader.construct_object(node)  # pyright: ignore[reportUnknownMemberType]
        except _CONSTRUCTION:
            raise config_error(self._path, *place, "this value cannot be read") from None
        if isinstance(value, int) and abs(value) >= MAX_NUMBER:
            raise config_error(self._path, *place, "this number is too large")
        return value
