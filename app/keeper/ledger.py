"""The state of one session: written down first, then told to everybody who listens."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError, app_error, is_full, naming
from app.keeper.events import Events
from app.keeper.journal import Journal
from app.records import read_session, read_state, session_info, write_record
from vm.errors import NotStopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.protocol import Event, EventKind, SessionInfo
    from app.records import StateRecord

log = logging.getLogger(__name__)


JOURNALLED: Final = ("waiting", "stalled", "done", "failed")
"""States of an agent that stand in the journal; it works and rests too often to be noted."""


class Ledger:
    """Record, state, journal and subscribers of one session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = read_session(folder)
        self.state = read_state(folder)
        self.journal = Journal(folder)
        self._events = Events(self.info)
        self._unwritten = False

    def info(self) -> SessionInfo:
        """Return the session as it is now."""
        return session_info(self.record, self.state)

    def events(self) -> AsyncIterator[Event]:
        """Yield what happens from now on."""
        return self._events.subscribe()

    def tell(self, *kinds: EventKind) -> None:
        """Tell the subscribers that something happened that changed no state."""
        self._events.tell(*kinds)

    def change(self, **fields: object) -> None:
        """Change the state: on disk first, then for everybody who listens.

        A new message takes the fault and the hint of the old one with it. A full disk keeps
        nobody from hearing; what could not be written is written with the next call.
        """
        before = self.state
        if "message" in fields:
            fields = {"fault": "", "hint": ""} | fields
        after = msgspec.structs.replace(before, **fields)
        if after == before and not self._unwritten:
            return
        if (after.state, after.agent_state) != (before.state, before.agent_state):
            after = msgspec.structs.replace(after, since=time.time())
        self._write(after)
        self.state = after
        if after.state != before.state:
            self.journal.write(after.state, after.message)
        if after.agent_state != before.agent_state and after.agent_state in JOURNALLED:
            self.journal.write(f"agent {after.agent_state}")
        self._events.tell("session")

    def _write(self, state: StateRecord) -> None:
        try:
            write_record(self.folder / "state.json", state)
            self._unwritten = False
        except OSError as error:
            if not is_full(error):
                raise
            if not self._unwritten:
                log.warning("the state is not written until there is room: %s", error)
            self._unwritten = True

    def fail(self, error: Exception) -> None:
        """Say that the session failed, and why."""
        known = app_error(error)
        if known is None:
            log.error("a fault of Cloche's own", exc_info=error)
            known = AppError("internal", f"Cloche failed: {type(error).__name__}.")
        known = naming(known, self.record.id)
        log.error("the session failed: %s %s", known.message, known.hint)
        failed = {
            "state": "failed",
            "agent_state": "failed",
            # one that could not be ended still counts: nobody may boot or delete its disk
            "machine": self.state.machine if isinstance(error, NotStopped) else None,
            "message": known.message,
            "fault": known.code,
            "hint": known.hint,
            "since": time.time(),
        }
        try:
            self.change(**failed)
        except OSError:  # a broken disk must not hide what went wrong from whoever listens
            log.exception("the failure could not be written down")
            self.state = msgspec.structs.replace(self.state, **failed)
            self._events.tell("session")
