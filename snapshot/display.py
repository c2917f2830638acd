"""Names as they may be shown: whatever bytes a name holds, a message stays one printable line."""

from __future__ import annotations


def printable(path: bytes) -> str:
    """Decode `path` for a message; control characters and broken bytes become escapes."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
