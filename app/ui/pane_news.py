"""What a session's terminal reported beside its screen, and how often that may be spoken of."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_TITLE = 80
"""Characters of a guest's title that are kept for a header, which is one line."""

MAX_NOTE = 200
"""Characters of a notification that are kept: about two lines of a notice."""


@dataclass(frozen=True, slots=True)
class PaneNews:
    """What a terminal reported; all texts are printable, short and never markup."""

    title: str = ""
    """What the guest calls its terminal."""
    progress: tuple[int, int] | None = None
    """State (1 normal, 2 error, 3 without an end, 4 paused) and per cent, -1 where not known."""
    belled: bool = False
    """It rang since it last had the keys."""
    note: str = ""
    """Its last notification since it last had the keys."""
    unasked: int = 0
    """How often it wanted to write the clipboard without having the keys."""

    @property
    def marked(self) -> bool:
        """Whether it did something that somebody should look at."""
        return self.belled or bool(self.note) or self.unasked > 0

    def seen(self) -> PaneNews:
        """Return what is left once somebody has looked."""
        return PaneNews(self.title, self.progress)

    def titled(self, title: str) -> PaneNews:
        """Return the news with a title."""
        return replace(self, title=one_line(title, MAX_TITLE))

    def noted(self, title: str, body: str) -> PaneNews:
        """Return the news with a notification."""
        words = ": ".join(text for text in (title[:MAX_NOTE], body[:MAX_NOTE]) if text.strip())
        return replace(self, note=one_line(words, MAX_NOTE))


NO_NEWS = PaneNews()


class NewsEar(Protocol):
    """Who hears what the terminal of a session reports while no view shows it."""

    def titled(self, session_id: str, title: str) -> None:
        """Take the title that a guest set."""
        ...

    def progressed(self, session_id: str, progress: tuple[int, int] | None) -> None:
        """Take a progress; None when it ended."""
        ...

    def belled(self, session_id: str) -> None:
        """Be told of a bell."""
        ...

    def notified(self, session_id: str, title: str, body: str) -> None:
        """Be told of a notification."""
        ...

    def clipboard_wanted(self, session_id: str, text: str) -> None:
        """Be told what a guest wants on the clipboard."""
        ...


@dataclass(slots=True)
class Pace:
    """Says when a session may be spoken of again, by subject."""

    told: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    def allows(self, session_id: str, subject: str, every_s: float) -> bool:
        """Tell whether it may be spoken of now; if so, that counts as done."""
        now, key = time.monotonic(), (session_id, subject)
        if now - self.told.get(key, float("-inf")) < every_s:
            return False
        self.told[key] = now
        return True

    def keep_only(self, sessions: Collection[str]) -> None:
        """Forget all other sessions."""
        self.told = {key: when for key, when in self.told.items() if key[0] in sessions}


def one_line(text: str, limit: int) -> str:
    """Return a guest's text as one printable line of at most `limit` characters."""
    return safe_name(" ".join(text[:limit].split())).text


def size_words(count: int) -> str:
    """Return a length of a text as people say it: `12 characters`, `300 KiB`."""
    if count < 10_000:
        return f"{count} character" + ("" if count == 1 else "s")
    return f"{count / 1024:.0f} KiB"
