"""Who holds a terminal: one of any number of clients; the others watch.

Only the holder's size and input count. Taking it is never refused, for all clients are the same
user's. A client that is `willing` is given it when nobody holds it; the last holder's place goes to
the willing client that has been connected longest.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from app.pane_frames import TAKE, WATCH, WILLING

Client = TypeVar("Client")


class Holding(Generic[Client]):
    """The clients in the order in which they came, and which of them holds the terminal."""

    def __init__(self) -> None:
        self._clients: dict[Client, bool] = {}
        self.holder: Client | None = None

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return len(self._clients)

    def join(self, client: Client) -> None:
        """Take in a client; it watches until it asks for more."""
        self._clients.setdefault(client, False)

    def ask(self, client: Client, what: int) -> bool:
        """Do what a client asks for; False when there is no such wish."""
        if what not in (WATCH, TAKE, WILLING):
            return False
        self._clients[client] = what != WATCH
        if what == TAKE:
            self.holder = client
        elif what == WATCH and self.holder == client:
            self.holder = None
        self._fill()
        return True

    def leave(self, client: Client) -> None:
        """Forget a client."""
        self._clients.pop(client, None)
        if self.holder == client:
            self.holder = None
        self._fill()

    def _fill(self) -> None:
        """Give the terminal to the first willing client when nobody holds it."""
        if self.holder is None:
            self.holder = next((it for it, willing in self._clients.items() if willing), None)
