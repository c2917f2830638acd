"""What the well-known agents ask of their services passes the broker, is answered and metered.

The forms of the requests (method, target, headers, how a key is sent) are those that the programs
were seen to make, reduced to what a broker can trip over; `docs/guide/agents.md` has the versions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles import models
from tests.vm.broker_lab import CANARY, Upstream, body
from vm.egress.broker import services

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = "a question"


@dataclass(frozen=True)
class Shape:
    """One form of a request: `sent` are its headers besides length and host."""

    agent: str
    service: str
    line: str
    sent: dict[str, str]
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    tokens: int = models.COST


CLAUDE = {
    "authorization": "Bearer {placeholder}",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,effort-2025-11-24",
    "anthropic-dangerous-direct-browser-access": "true",
    "x-app": "cli",
    "x-stainless-lang": "js",
    "accept-encoding": "gzip, deflate, br, zstd",
}
CODEX = {
    "authorization": "Bearer {placeholder}",
    "accept": "text/event-stream",
    "originator": "codex_exec",
    "x-codex-turn-metadata": '{"session_id":"0","agent_name":"/root"}',
    "x-openai-internal-codex-responses-lite": "true",
}
GEMINI = {
    "x-goog-api-key": "{placeholder}",
    "x-goog-api-client": "google-genai-sdk/1.30.0 gl-node/v22",
    "sec-fetch-mode": "cors",
    "accept-language": "*",
}
OPENCODE = {
    "x-api-key": "{placeholder}",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "fine-grained-tool-streaming-2025-05-14",
    "x-session-affinity": "ses_0",
}
BEARER = {"authorization": "Bearer {placeholder}"}
MESSAGES: dict[str, Any] = {
    "model": "claude-sonnet-4-5", "max_tokens": 64,
    "messages": [{"role": "user", "content": PROMPT}],
}  # fmt: skip
INPUT: dict[str, Any] = {
    "model": "gpt-5", "stream": True, "store": False, "include": ["reasoning.encrypted_content"],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}
    ],
}  # fmt: skip
CHAT: dict[str, Any] = {
    "model": "anthropic/claude-sonnet-4.5", "stream": True,
    "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": PROMPT}],
}  # fmt: skip
FLASH = "/v1beta/models/gemini-3.5-flash"
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}

SHAPES = (
    Shape(
        "claude-code", "anthropic", "POST /v1/messages?beta=true", CLAUDE,
        MESSAGES | {"stream": True},
    ),
    Shape("claude-code", "anthropic", "POST /v1/messages?beta=true", CLAUDE, MESSAGES),
    Shape(
        "claude-code", "anthropic", "POST /v1/messages/count_tokens?beta=true", CLAUDE, MESSAGES, 0
    ),
    Shape("codex", "openai", "POST /v1/responses", CODEX, INPUT),
    Shape("opencode", "anthropic", "POST /v1/messages", OPENCODE, MESSAGES | {"stream": True}),
    Shape("opencode", "openai", "POST /v1/responses", BEARER, INPUT),
    Shape("opencode", "openrouter", "POST /api/v1/chat/completions", BEARER, CHAT),
    Shape("hermes", "openai", "POST /v1/chat/completions", BEARER, CHAT),
    Shape("hermes", "openrouter", "GET /api/v1/models", BEARER, {}, 0),
    Shape(
        "gemini", "google", "POST /v1beta/models/gemini-3.1-pro:streamGenerateContent?alt=sse",
        GEMINI, CONTENTS,
    ),
    Shape("gemini", "google", f"POST {FLASH}:generateContent", GEMINI, CONTENTS),
    Shape("gemini", "google", f"POST {FLASH}:countTokens", GEMINI, CONTENTS, 0),
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.agent} {shape.line}")
async def test_an_agents_request_is_answered_and_metered(tmp_path: Path, shape: Shape) -> None:
    got: list[models.Asked] = []
    known = services.builtin()[shape.service]
    async with Upstream(tmp_path, models.handler(CANARY, got), host=known.host) as upstream:
        lab = upstream.lab_of(known)
        data = json.dumps(shape.asked).encode() if shape.asked else b""
        rows = [
            f"{name}: {text}".replace("{placeholder}", lab.held.placeholder)
            for name, text in shape.sent.items()
        ]
        head = lab.head(shape.line, *rows, f"Content-Length: {len(data)}", auth=False)
        answer = await lab.ask(head + data)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert shape.tokens == 0 or models.SAID.encode() in body(answer)
    (asked,) = got
    assert f"{asked.method} {asked.target}" == shape.line
    assert asked.body == data
    passed = set(shape.sent) - {"accept-encoding", "authorization", "x-api-key", "x-goog-api-key"}
    assert {name: asked.headers.get(name) for name in passed} == {
        name: shape.sent[name] for name in passed
    }
    carrying = [name for name, value in asked.headers.items() if CANARY in value]
    assert carrying == [services.field_of(known.add, "", b"")[0].decode()]
    assert lab.broker.gate.totals.tokens == shape.tokens
    assert lab.broker.gate.totals.silent == 0
    assert [record.code for record in lab.records] == ["answered"]


async def test_a_websocket_is_refused_before_the_service_is_asked(tmp_path: Path) -> None:
    got: list[models.Asked] = []
    known = services.builtin()["openai"]
    async with Upstream(tmp_path, models.handler(CANARY, got), host=known.host) as upstream:
        lab = upstream.lab_of(known)
        rows = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
        answer = await lab.ask(lab.head("GET /v1/responses", *rows))
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(body(answer))["error"]["code"] == "upgrade"
    assert got == []
