"""What a session waits for the user about, for the command line: held connections and its cap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vm.egress.names import MAX_NAME, printable
from vm.egress.questions import choice
from vm.egress.rules import MAX_RULE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.client.session import SessionClient
    from app.protocol import SessionInfo
    from vm.egress.questions import Question

MOST: Final = 5
"""Held connections of one session that are told line by line: a guest may ask for fifty hosts."""


class Wait(NamedTuple):
    """One thing that waits for an answer."""

    what: str
    command: str
    """The command that answers."""


def held(info: SessionInfo, question: Question) -> Wait:
    """Return what is held for a question, and the command that lets it go on."""
    ports = ",".join(map(str, question.ports))
    rule = printable(choice(question, "session", wide=False).rule.text, MAX_RULE)
    command = f"cloche egress allow {rule} --session {info.id}"
    return Wait(f"a connection to {printable(question.host, MAX_NAME)}:{ports} is held", command)


def held_lines(info: SessionInfo) -> list[str]:
    """Return a line for each held connection of a session."""
    shown = [held(info, one) for one in info.asks[:MOST]]
    lines = [f"{info.id}: {one.what}. Answer: {one.command} (or deny)" for one in shown]
    more = len(info.asks) - len(shown)
    return [*lines, f"{info.id}: {more} more are held: cloche ps --json"] if more else lines


class News:
    """Tells each thing that waits once, as long as it waits."""

    def __init__(self) -> None:
        self._told: set[object] = set()

    def take(self, info: SessionInfo) -> list[Wait]:
        """Return what began to wait since the last call."""
        now: dict[object, Wait] = {
            (one.host, one.ports, one.first_seen): held(info, one) for one in info.asks
        }
        if info.meter.asks:
            command = f"cloche egress cap {info.id} --more"
            now["cap", info.meter.asked] = Wait("its cap is reached", command)
        found = [wait for key, wait in now.items() if key not in self._told]
        self._told = set(now)
        return found


async def news_of(client: SessionClient) -> AsyncIterator[Wait]:
    """Yield what begins to wait. Raises AppError `keeper-lost` when its keeper goes away."""
    news = News()
    async for event in client.events():
        for wait in news.take(event.session):
            yield wait
