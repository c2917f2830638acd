"""Which characters of a guest may be drawn: whatever prints, and private use besides.

Python counts private use as unprintable. Prompts and file managers draw their icons with it
(Powerline, Nerd Font); a terminal shows a glyph of one cell for each and acts on none.
"""

from __future__ import annotations

import re

PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")


def drawable(text: str) -> bool:
    """Tell whether all of a text may be drawn."""
    return text.isprintable() or PRIVATE_USE.sub("", text).isprintable()
