"""The services of models, as far as coding agents ask them: a request goes in, an answer comes out.

Anthropic's Messages, OpenAI's Responses and Chat Completions, Google's generateContent, each whole
or as an event stream. Every answer says what it cost. Where the prompt has a line `RUN: COMMAND`
and the agent brings a tool for shells, the first answer calls that tool; all others say `SAID`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable, Iterator

SAID: Final = "Four bells, all is well."
READ, WROTE = 1000, 20
"""Tokens that every answer claims, together `COST`."""
COST: Final = READ + WROTE

_SHELLS: Final = {
    **dict.fromkeys(("Bash", "bash", "shell_command", "run_shell_command", "terminal"), "command"),
    "exec_command": "cmd",
    "exec": "",
}
"""What agents call their tool for shells, and its argument that is the command; without one it is a
line of JavaScript that calls the tool, as Codex has it."""
_RESULTS: Final = frozenset(
    (
        *("tool_result", "function_call_output", "custom_tool_call_output"),
        *("tool_call_id", "functionResponse"),
    )
)
"""Types and keys that only a conversation has in which a tool was used."""
_RUN: Final = re.compile(r"RUN: ([^\n]+)")

Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: `headers` by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered; `kind` is the content type."""

    status: int
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants to be used."""

    name: str
    arguments: dict[str, str]


def answer(asked: Asked, key: str) -> Answer:
    """Answer a request that carries `key` in the way that its service wants."""
    path = asked.path
    if key not in (
        asked.headers.get("x-api-key"),
        asked.headers.get("x-goog-api-key"),
        asked.headers.get("authorization", "").removeprefix("Bearer "),
    ):
        return _json({"error": {"type": "authentication_error", "message": "no such key"}}, 401)
    if asked.method == "GET":
        return _json({"data": [{"id": "claude-sonnet-4-5", "type": "model", "object": "model"}]})
    said: dict[str, Any] = json.loads(asked.body or b"{}")
    call = _call(said)
    stream = said.get("stream") is True
    if path.endswith("/count_tokens"):
        return _json({"input_tokens": READ})
    if path.endswith(":countTokens"):
        return _json({"totalTokens": READ})
    if path.endswith("/messages"):
        return _anthropic(said, call, stream=stream)
    if path.endswith("/responses"):
        return _responses(said, call, stream=stream)
    if path.endswith("/chat/completions"):
        return _chat(said, call, stream=stream)
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return _google(path, call, _wanted(said), stream=":stream" in path)
    return _json({"error": {"type": "not_found_error", "message": path}}, 404)


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status, "application/json", json.dumps(value).encode())


def _events(events: Iterable[Event], end: str = "") -> Answer:
    text = "".join(
        (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
        for name, data in events
    )
    return Answer(200, "text/event-stream", (text + end).encode())


def _call(said: dict[str, Any]) -> Call | None:
    """Return the tool that the prompt asks for, where it was not used yet."""
    names = set(_words(said.get("tools") or said.get("input")))
    tool = next((name for name in _SHELLS if name in names), None)
    wanted = [match[1] for text in _words(said) if (match := _RUN.search(text))]
    if tool is None or not wanted or _RESULTS & set(_words(said)):
        return None
    return Call(tool, {_SHELLS[tool]: wanted[-1], "description": "what the prompt asks for"})


def _words(value: object) -> Iterator[str]:
    """Yield every text and every key in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _words(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield key
            yield from _words(item)


def _anthropic(said: dict[str, Any], call: Call | None, *, stream: bool) -> Answer:
    block: dict[str, Any] = {"type": "text", "text": SAID}
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": call.name, "input": call.arguments}
    end = "tool_use" if call else "end_turn"
    usage = {"input_tokens": READ, "output_tokens": WROTE}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": said.get("model", ""),
        "content": [block], "stop_reason": end, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not stream:
        return _json(message)
    empty: dict[str, Any] = {**block, "input": {}} if call else {**block, "text": ""}
    delta = {"type": "text_delta", "text": SAID}
    if call:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    rows: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": end, "stop_sequence": None},
            "usage": {"output_tokens": WROTE},
        },
        {"type": "message_stop"},
    ]
    return _events((row["type"], row) for row in rows)


def _responses(said: dict[str, Any], call: Call | None, *, stream: bool) -> Answer:
    part: dict[str, Any] = {"type": "output_text", "text": SAID, "annotations": []}
    item: dict[str, Any] = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [part],
    }  # fmt: skip
    if call:
        item = {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": call.name,
            "arguments": json.dumps(call.arguments), "status": "completed",
        }  # fmt: skip
    if call and call.name == "exec":
        script = f"text(await tools.exec_command({json.dumps({'cmd': call.arguments['']})}))"
        item = {
            "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": call.name,
            "namespace": "functions", "input": script, "status": "completed",
        }  # fmt: skip
    begun: dict[str, Any] = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": said.get("model", ""),
        "status": "in_progress", "output": [], "usage": None,
    }  # fmt: skip
    usage = {
        "input_tokens": READ, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": WROTE, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": COST,
    }  # fmt: skip
    done = {**begun, "status": "completed", "output": [item], "usage": usage}
    if not stream:
        return _json(done)
    rows: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item | _open(call)},
        *([] if call else _text_rows(part)),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return _events((row["type"], row | {"sequence_number": n}) for n, row in enumerate(rows))


def _open(call: Call | None) -> dict[str, Any]:
    """Return what an item of the Responses interface is like before it is whole."""
    unsaid: dict[str, Any] = {"arguments": ""} if call else {"content": []}
    return {"status": "in_progress", **unsaid}


def _text_rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": SAID, "logprobs": []},
        {"type": "response.output_text.done", **at, "text": SAID, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _chat(said: dict[str, Any], call: Call | None, *, stream: bool) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": SAID}
    if call:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        tool = {"index": 0, "id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    end = "tool_calls" if call else "stop"
    usage = {"prompt_tokens": READ, "completion_tokens": WROTE, "total_tokens": COST}
    head = {"id": "chat_1", "created": 1, "model": said.get("model", "")}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": end}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return _json(whole)
    head["object"] = "chat.completion.chunk"
    first = {"index": 0, "delta": message, "finish_reason": None}
    last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": end}
    rows = [{**head, "choices": [first]}, {**head, "choices": [last]}]
    if said.get("stream_options", {}).get("include_usage"):
        rows.append({**head, "choices": [], "usage": usage})
    return _events((("", row) for row in rows), "data: [DONE]\n\n")


def _wanted(said: dict[str, Any]) -> str:
    """Return what the model says: JSON of the wanted form, where the request names one."""
    config = said.get("generationConfig", {})
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return json.dumps(_fitting(schema)) if schema else SAID


def _fitting(schema: dict[str, Any]) -> object:
    kind = str(schema.get("type", "")).lower()
    if kind == "object":
        return {key: _fitting(part) for key, part in schema.get("properties", {}).items()}
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    plain: dict[str, object] = {"array": [], "boolean": False}
    return plain.get(kind, schema.get("enum", [SAID])[0])


def _google(path: str, call: Call | None, text: str, *, stream: bool) -> Answer:
    model = path.rpartition("/")[2].partition(":")[0]
    part: dict[str, Any] = {"text": text}
    if call:
        part = {"functionCall": {"name": call.name, "args": call.arguments}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": READ, "candidatesTokenCount": WROTE, "totalTokenCount": COST}
    whole = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage, "modelVersion": model,
    }  # fmt: skip
    return _events([("", whole)]) if stream else _json(whole)


def asked_of(head: bytes, body: bytes) -> Asked:
    """Return the request with this head (up to its empty line)."""
    first, *rows = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (row.partition(":") for row in rows if row)
    return Asked(method, target, {name.lower(): text.strip() for name, _, text in pairs}, body)


async def read_body(headers: dict[str, str], reader: asyncio.StreamReader) -> bytes:
    """Read what follows a head, with a length or in chunks."""
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    pieces: list[bytes] = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


def handler(
    key: str, got: list[Asked]
) -> Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return what serves one connection of a server of asyncio's, and notes what it was asked."""

    async def serve(
        head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked = asked_of(head, b"")
        whole = replace(asked, body=await read_body(asked.headers, reader))
        got.append(whole)
        writer.write(written(answer(whole, key)))
        await writer.drain()

    return serve


def written(given: Answer) -> bytes:
    """Return an answer as it goes over the wire; the connection ends with it."""
    head = f"HTTP/1.1 {given.status} Said\r\nContent-Type: {given.kind}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(given.body)}\r\n\r\n".encode() + given.body
