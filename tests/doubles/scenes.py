"""Sessions and changes that tests and pictures of the screens share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from app.ui.app import ClocheApp
from tests.doubles.keeper import FakeFile, FakeFleet, FakeSession, session_info
from tests.doubles.terminals import StillTerminals
from themes.glyphs import ASCII, UNICODE

if TYPE_CHECKING:
    from app.protocol import AgentState
    from app.services.layouts import LayoutsPort

WORKSPACE = Path("/home/me/parser")

TOKENIZER = '''\
"""Turn source text into tokens."""

from __future__ import annotations

import re

WORD = re.compile(r"[A-Za-z_]+")
LIMIT = 1000


class Tokenizer:
    """Reads tokens one after the other."""

    def __init__(self, text):
        self.text = text
        self.pos = 0

    def scan(self):
        ch = self.text[self.pos]
        if ch == '"':
            return self.string()
        return self.word()

    def word(self):
        match = WORD.match(self.text, self.pos)
        if match is None:
            raise ValueError("no word here")
        self.pos = match.end()
        return match.group()

    def skip(self):
        while self.pos < len(self.text):
            if not self.text[self.pos].isspace():
                return
            self.pos += 1

    def peek(self):
        return self.text[self.pos:self.pos + 1]

    def string(self):
        end = self.text.find('"', self.pos + 1)
        if end < 0:
            return None
        found = self.text[self.pos + 1:end]
        self.pos = end + 1
        return found


def tokens(text):
    tokenizer = Tokenizer(text)
    while tokenizer.pos < LIMIT:
        yield tokenizer.scan()
'''

TOKENIZER_NEW = (
    TOKENIZER.replace("WORD = re", 'QUOTES = "\\"\'"\nWORD = re')
    .replace(
        """if ch == '"':\n            return self.string()""",
        """if ch in QUOTES:\n            return self.string(ch)""",
    )
    .replace(
        """    def string(self):
        end = self.text.find('"', self.pos + 1)
        if end < 0:
            return None
""",
        """    def string(self, quote):
        end = self.text.find(quote, self.pos + 1)
        if end < 0:
            raise UnclosedQuote(self.pos)
""",
    )
    .replace("while tokenizer.pos < LIMIT:", "while tokenizer.pos < len(text):")
)

QUOTES = '''\
"""Quotes that may be nested."""


class UnclosedQuote(ValueError):
    """A quote begins and never ends."""

    def __init__(self, position):
        super().__init__(f"quote at {position} never ends")
        self.position = position
'''

WORKFLOW = b"on: push\njobs:\n  test:\n    runs-on: small\n    steps:\n      - run: pytest\n"


def changed_files() -> list[FakeFile]:
    """Return a change of every kind."""
    return [
        FakeFile(".github/workflows/ci.yml", WORKFLOW, WORKFLOW.replace(b"small", b"large")),
        FakeFile("src/tokenizer.py", TOKENIZER.encode(), TOKENIZER_NEW.encode()),
        FakeFile("src/quotes.py", None, QUOTES.encode()),
        FakeFile(
            "tests/test_tokenizer.py",
            b"def test_word():\n    assert True\n",
            b"def test_word():\n    assert True\n\n\ndef test_quote():\n    assert 1\n",
        ),
        FakeFile(
            "README.md",
            b"# parser\n\nReads words.\n",
            b"# parser\n\nReads words, quotes.\n",
            drift=True,
        ),
        FakeFile("bin/run.sh", b"#!/bin/sh\n", b"#!/bin/sh\n", mode="100755", kind="mode"),
        FakeFile("docs/old.md", b"# Old\n", None),
        FakeFile(
            "docs/guide.md",
            b"# Guide\n\nOne.\n",
            b"# Guide\n\nTwo.\n",
            kind="renamed",
            old_path="docs/intro.md",
        ),
        FakeFile("logo.png", b"\x89PNG\0\1", b"\x89PNG\0\2\3"),
        FakeFile("current", b"v1", b"v2", mode="120000", old_mode="120000"),
        FakeFile("app/[slug]/page with space.tsx", b"", b"export default 1\r\n"),
        FakeFile("run.sock", None, None, kind="added", note="a socket"),
    ]


def sessions() -> list[FakeSession]:
    """Return sessions in every state that matters."""
    now = time.time()
    return [
        FakeSession(
            session_info(
                "s1",
                "fix-parser",
                "claude-code",
                created=now - 10800,
                since=now - 190,
                counts=(3, 42, 7),
            ),
            changed_files(),
        ),
        FakeSession(
            session_info(
                "s2",
                "add-tests",
                "codex",
                agent_state="waiting",
                created=now - 9000,
                since=now - 45,
                counts=(1, 9, 0),
            ),
        ),
        FakeSession(
            session_info(
                "s3",
                "docs",
                "opencode",
                "stopped",
                "done",
                created=now - 7200,
                counts=(12, 210, 34),
            ),
            changed_files(),
        ),
        FakeSession(
            session_info(
                "s4",
                "try-it",
                "gemini",
                "failed",
                "failed",
                created=now - 90000,
                workspace="/home/me/web",
                message="The machine did not boot in 60 s.",
            ),
        ),
    ]


NAMES = (
    ("fix-parser", "claude-code"),
    ("add-tests", "codex"),
    ("docs", "opencode"),
    ("try-it", "gemini"),
    ("upgrade-the-build-system", "claude-code"),
    ("lint", "codex"),
    ("speed", "claude-code"),
    ("split-module", "opencode"),
    ("release-notes", "gemini"),
    ("experiment", "codex"),
)


def crowd(count: int) -> list[FakeSession]:
    """Return so many sessions that run, at most ten: of each three one waits, one is idle."""
    now = time.time()
    states: tuple[AgentState, ...] = ("working", "waiting", "idle")
    return [
        FakeSession(
            session_info(
                f"s{number}",
                name,
                agent,
                agent_state=states[number % 3 - 1],
                created=now - 9000 + number,
                since=now - 40 * number,
                counts=(number, 7 * number, number // 2) if number % 2 else (0, 0, 0),
            ),
            changed_files(),
        )
        for number, (name, agent) in enumerate(NAMES[:count], 1)
    ]


def workstation(
    keepers: list[FakeSession] | None = None,
    *,
    theme: str = "cloche-dark",
    ascii_only: bool = False,
    layouts: LayoutsPort | None = None,
) -> tuple[ClocheApp, FakeFleet, StillTerminals]:
    """Return an application over sessions in memory."""
    fleet = FakeFleet(sessions() if keepers is None else keepers)
    terminals = StillTerminals()
    glyphs = ASCII if ascii_only else UNICODE
    app = ClocheApp(WORKSPACE, fleet, terminals, glyphs=glyphs, theme=theme, layouts=layouts)
    app.strict = True
    return app, fleet, terminals
