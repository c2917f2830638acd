"""`cloche egress log`: what a session tried to reach, once or as it happens."""

from __future__ import annotations

import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from app.client import fleet
from app.errors import AppError
from app.records import one_session
from app.services.egress_feed import EgressFeed
from vm.egress.ledger import NAME, read_entries, read_totals
from vm.egress.lookups import paired
from vm.egress.totals import target

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from app.cli.output import Output
    from app.paths import Paths
    from vm.egress.kinds import Entry

LOOK_S: Final = 0.25
"""How often a log is looked at for more."""

MAX_NAMES: Final = 1024
"""Names whose look-ups are remembered."""


def show_log(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    """Print one session's log, or with `--follow` go on with it, or with those of all sessions."""
    session = fleet.find_session(paths, arguments.session).id if arguments.session else ""
    if arguments.follow:
        _follow(paths, session, output)
        return
    if not session:
        hint = "See them: cloche ps. All at once, as it happens: cloche egress log --follow"
        raise AppError("usage", "Which session's log?", hint)
    path = paths.session(session) / NAME
    entries = list(read_entries(path))
    totals = read_totals(path)
    value = {"session": session, "totals": msgspec.to_builtins(totals)}

    def human() -> None:
        output.table([_row(entry) for entry in _folded(entries)])
        output.line(f"{totals.allowed} allowed, {totals.denied} denied, {totals.dropped} dropped")

    output.result({**value, "entries": [msgspec.to_builtins(one) for one in entries]}, human)


def _follow(paths: Paths, session: str, output: Output) -> None:
    """Print entries as they come, one object a line, until the session is over or ctrl+c."""
    end, shown = "interrupted", _Shown()
    try:
        for name, entry in _entries(paths, session):
            if not output.json and shown.has(name, entry):
                continue
            value = {"session": name, **msgspec.to_builtins(entry)}
            output.result(value, partial(_say, output, name, entry))
        end = "over"
    finally:
        output.result({"end": end})


class _Shown:
    """Knows which look-ups were shown: their second question is no line of its own."""

    def __init__(self) -> None:
        self._asked: OrderedDict[tuple[str, str], Entry] = OrderedDict()

    def has(self, session: str, entry: Entry) -> bool:
        """Tell whether an entry is shown already by the line before it."""
        if entry.kind != "query":
            return False
        key = (session, entry.host)
        before = self._asked.get(key)
        both = None if before is None else paired(before, entry)
        self._asked[key] = both or entry
        self._asked.move_to_end(key)
        if len(self._asked) > MAX_NAMES:
            self._asked.popitem(last=False)
        return both is not None


def _folded(entries: Iterable[Entry]) -> Iterator[Entry]:
    shown = _Shown()
    return (entry for entry in entries if not shown.has("", entry))


def _say(output: Output, session: str, entry: Entry) -> None:
    clock, kind, verdict, where, reason = _row(entry)
    output.line(f"{clock}  {session}  {kind:<5}  {verdict:<5}  {where}  {reason}")


def _entries(paths: Paths, session: str) -> Iterator[tuple[str, Entry]]:
    """Yield what the logs say from their beginnings on; ends with the one session, if it is one."""
    feed = EgressFeed(paths.sessions)
    try:
        while True:
            over = bool(session) and _is_over(paths, session)  # before the last look, not after it
            pieces, more = feed.read()
            for name, entries in pieces:
                if session in ("", name):
                    yield from ((name, entry) for entry in entries)
            if over and not more:
                return
            if not more:
                time.sleep(LOOK_S)
    finally:
        feed.close()


def _is_over(paths: Paths, session: str) -> bool:
    info = one_session(paths.session(session))
    return info is None or info.state not in fleet.ACTIVE


def _row(entry: Entry) -> tuple[str, ...]:
    clock = time.strftime("%H:%M:%S", time.localtime(entry.at))
    where = target(entry.host or entry.address, entry.port)
    return clock, entry.kind, entry.verdict, where, entry.reason or entry.code
