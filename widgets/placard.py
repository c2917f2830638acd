"""A quiet text in the middle of an empty region: what it is and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

if TYPE_CHECKING:
    from collections.abc import Sequence

BELL = """\
●
╭───┴───╮
╭╯       ╰╮
│   ❯ _   │
│         │
━┷━━━━━━━━━┷━"""
"""A cloche: what stands under it is safe, and in sight. Each line is centred by itself."""

ASCII_BELL = """\
o
.---+---.
.'       '.
|   > _   |
|         |
=+=========+="""


class Placard(Static):
    """Centred lines; keys in them are set off."""

    DEFAULT_CSS = """
    Placard {
        width: 1fr;
        height: 1fr;
        content-align: center middle;
        text-align: center;
        color: $text-muted;
        padding: 0 2;
    }
    """

    def say(
        self,
        title: str,
        lines: Sequence[str] = (),
        keys: Sequence[tuple[str, str]] = (),
        art: str = "",
        tone: str = "$foreground",
    ) -> None:
        """Show a title, sentences below it, and keys with what they do. No text is markup."""
        parts: list[Content | tuple[str, str]] = []
        if art:
            parts += [(art + "\n\n", "$accent")]
        parts.append((title + "\n", f"bold {tone}"))
        parts += [(f"{line}\n", "$muted") for line in lines]
        if keys:
            parts.append(("\n", ""))
        for index, (key, label) in enumerate(keys):
            gap = "" if index == 0 else "     "
            parts += [(gap, ""), (key, "bold $accent"), (f" {label}", "$muted")]
        self.update(Content.assemble(*parts))
