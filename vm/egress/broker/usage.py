"""What an answer says that it cost: tokens by model, out of JSON and of event streams. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, cast

MAX_JSON: Final = 8 << 20
MAX_LINE: Final = 1 << 20
"""Bytes of one event; a longer one is passed on but not read."""
MAX_TOKENS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer. `fresh` + `cached` + `written` is all that was read."""

    model: str = ""
    fresh: int = 0
    cached: int = 0
    written: int = 0
    """Tokens written into the provider's cache, which Anthropic counts apart."""
    output: int = 0
    said: bool = True
    """The answer told at least part of it; else all of it is an estimate."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.fresh + self.cached + self.written + self.output


class Reader:
    """Reads along with one answer: `feed`, then `result`; None where it did not say."""

    def __init__(self, kind: str, events: bool) -> None:
        self._kind, self.events = kind, events
        self.model = ""
        """As far as the answer named it by now."""
        self.seen = 0
        """Events of a stream, bytes of another body."""
        self._kept = bytearray()
        self._long = False
        self._numbers: dict[str, int] = {}

    def feed(self, data: bytes) -> None:
        """Take a piece of the body."""
        self.seen += 0 if self.events else len(data)
        if self._long and not self.events:
            return
        self._kept += data
        if not self.events:
            self._long = len(self._kept) > MAX_JSON
        else:
            self._lines()
        if self._long:
            self._kept.clear()

    def _lines(self) -> None:
        *lines, rest = bytes(self._kept).split(b"\n")
        for line in lines:
            self.seen += line.startswith(b"data:")
            if line.startswith(b"data:") and not self._long and len(line) <= MAX_LINE:
                self._take(line[5:])
            self._long = False
        self._kept[:] = rest
        self._long = self._long or len(rest) > MAX_LINE

    def result(self) -> Usage | None:
        """Return what the whole answer said."""
        if not self.events and not self._long:
            self._take(bytes(self._kept))
        if not self._numbers:
            return None
        get = self._numbers.get
        cached = get("cached", 0)
        fresh = get("input", 0) - (0 if self._kind == "anthropic" else cached)
        return Usage(self.model, max(0, fresh), cached, get("written", 0), get("output", 0))

    def _take(self, raw: bytes) -> None:
        try:
            value: object = json.loads(raw)
        except (ValueError, RecursionError):
            return  # `[DONE]`, or no JSON: it says nothing of tokens
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            self._object(_dict(item))

    def _object(self, item: dict[str, Any]) -> None:
        for part in (item, _dict(item.get("message")), _dict(item.get("response"))):
            model = part.get("model") or part.get("modelVersion")
            if isinstance(model, str) and len(model) <= 128 and model.isprintable():
                self.model = model
            self._usage(_dict(part.get("usage") or part.get("usageMetadata")))

    def _usage(self, said: dict[str, Any]) -> None:
        details = _dict(said.get("prompt_tokens_details") or said.get("input_tokens_details"))
        self._set("input", said, "input_tokens", "prompt_tokens", "promptTokenCount")
        self._set("output", said, "output_tokens", "completion_tokens", "candidatesTokenCount")
        self._set("cached", said, "cache_read_input_tokens", "cachedContentTokenCount")
        self._set("cached", details, "cached_tokens")
        self._set("written", said, "cache_creation_input_tokens")
        thoughts = said.get("thoughtsTokenCount")
        if type(thoughts) is int and 0 <= thoughts <= MAX_TOKENS:
            self._numbers["output"] = _count(said.get("candidatesTokenCount")) + thoughts

    def _set(self, name: str, said: dict[str, Any], *keys: str) -> None:
        for key in keys:
            value = said.get(key)
            if type(value) is int and 0 <= value <= MAX_TOKENS:
                self._numbers[name] = value


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
