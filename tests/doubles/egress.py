"""The network's logs and rules without machines: entries by hand, rules noted."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from app.egress.adding import Change
from vm.egress.kinds import Entry

if TYPE_CHECKING:
    from app.services.egress_feed import Piece
    from vm.egress.questions import Choice


class FakeEgress:
    """Gives what is put into it, to one reader."""

    def __init__(self) -> None:
        self.pieces: deque[Piece] = deque()
        self.written: list[tuple[str, str]] = []
        self.refuse: Exception | None = None

    def put(self, session: str, *entries: Entry) -> None:
        """Let entries come."""
        self.pieces.append((session, [*entries]))

    def follow(self) -> FakeEgress:
        """Return itself."""
        return self

    def read(self) -> tuple[list[Piece], bool]:
        """Return one piece."""
        if not self.pieces:
            return [], False
        return [self.pieces.popleft()], bool(self.pieces)

    def close(self) -> None:
        """Do nothing."""

    def write(self, session_id: str, choice: Choice) -> Change:
        """Note it."""
        if self.refuse is not None:
            raise self.refuse
        self.written.append((session_id, choice.text))
        return Change(choice.rule, added=True)


AT = 1_700_000_000.0

EVIL = "\x1b]0;EVIL\x07[bold]\u202e.example"


def typical() -> FakeEgress:
    """Return a log in which each kind of row stands, a hostile name as well."""
    egress = FakeEgress()
    api, deny = "api.models.example", "No rule allows {} (profile standard)"
    held = Entry(AT + 9, "open", "pkgs.example", 443, "ask", code="held", reason="held")
    egress.put(
        "s1",
        Entry(AT, "query", api, None, "allow", "profile", qtype="A", origin="profile standard"),
        Entry(
            *(AT + 1, "open", api, 443, "allow", "profile", api, "profile standard"),
            code="allowed",
            reason=f"Allowed by '{api}' (profile standard).",
            address="203.0.113.7",
            flow=1,
        ),
        Entry(AT + 8, "close", api, 443, "allow", flow=1, up=18_211, down=240_122),
    )
    egress.put(
        "s2",
        Entry(
            *(AT + 2, "open", "10.0.0.5", 5432, "deny", "private"),
            code="private-address",
            reason="10.0.0.5 is a private address.",
            address="10.0.0.5",
        ),
        Entry(
            *(AT + 3, "open", "telemetry.example", 443, "deny", "default"),
            code="no-answer",
            reason="Nobody answered within 60 s.",
        ),
        Entry(AT + 4, "drop", "", 443, "deny", code="quic", address="203.0.113.9", count=12),
        Entry(AT + 5, "query", EVIL, None, "deny", code="bad-name", reason=deny.format(EVIL)),
        held,
    )
    return egress
