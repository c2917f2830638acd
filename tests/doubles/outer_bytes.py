"""What a program may write to the user's terminal: a strict reading of its bytes."""

from __future__ import annotations

import re
import unicodedata

TOKEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]P_^X][^\x1b\x07]*(?:\x07|\x1b\\)"  # OSC, DCS, APC, PM, SOS
    r"|\x1b[^\[\]P_^X]|\r\n"
    r"|[^\x1b]",
    re.S,
)
RUNNING = re.compile(
    r"\x1b\[[0-9;:]*m|\r\n|\x1b\[\d+;\d+H|\x1b\[\?(?:2026|25)[hl]"
    r"|\x1b\]8;(?:id=\d+)?;(?:https?://[\x21-\x7e]{1,2048})?\x1b\\|\x1b\]22;default(?:\x07|\x1b\\)"
)
"""Of a program that runs: style, end of a row, cursor, whole updates, http(s) links, pointer."""

STARTING = re.compile(
    RUNNING.pattern + r"|\x1b\[\?(?:7|1000|1002|1003|1004|1006|1015|1016|1049|2004|2048)[hl]"
    r"|\x1b\[\?20(?:26|48)\$p|\x1b\[>\d+u|\x1b\[[0-9]*[JK]"
)
"""Besides, sequences of a program that takes the terminal."""

LONGEST = 4096
"""Characters of the longest sequence that is allowed."""

TRASH = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Kinds of characters that hide, reorder or control others."""


def strange(data: bytes, allowed: re.Pattern[str] = RUNNING) -> list[str]:
    """Return what of a program's output is neither printable text nor an allowed sequence.

    Raises UnicodeDecodeError for what is not UTF-8. The end may be cut within a sequence.
    """
    text = data.decode()
    found: list[str] = []
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:  # a sequence that goes on
            rest = text[place:]
            whole = rest.find("\x1b", 1) in (-1, len(rest) - 1) and len(rest) <= LONGEST
            return found if whole else [*found, rest]
        token, place = match[0], match.end()
        if token[0] == "\x1b" or token == "\r\n":
            if not allowed.fullmatch(token):
                found.append(token)
        elif unicodedata.category(token) in TRASH:
            found.append(token)
    return found
