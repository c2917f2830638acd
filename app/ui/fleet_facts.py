"""What the fleet screen says about sessions: pure functions from `SessionInfo` to rows."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from app.egress.edits import MISTAKE
from app.states import LIVE, is_reviewed, shown_state, state_words, to_review
from app.ui.cap_asks import cap_question
from app.ui.egress_asks import asks_of, denied, key_of, target_of
from app.wording import plural
from snapshot.safe_text import safe_name
from widgets.session_rail import Heading, Need, RailItem, SessionRow
from widgets.top_bar import TopBarValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from app.protocol import SessionInfo
    from themes.glyphs import Glyphs

NUMBERED = 9
"""How many sessions `alt+N` reaches."""

ASKS = "ask "
"""How the key of a need begins that is a held connection; the question's own follows."""

MINUTE, HOUR, DAY = 60, 3600, 86400


def age(seconds: float) -> str:
    """Return a duration short: `45s`, `3m`, `2h`, `5d`."""
    whole = max(0, int(seconds))
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if whole >= unit:
            return f"{whole // unit}{letter}"
    return f"{whole}s"


def row_of(
    info: SessionInfo, number: int, glyphs: Glyphs, now: float, *, marked: bool = False
) -> SessionRow:
    """Return the rail's row for a session; `marked`: its agent did something unseen."""
    state = shown_state(info)
    return SessionRow(
        key=info.id,
        number=number if number <= NUMBERED else 0,
        state=state,
        sign=str(getattr(glyphs, state)),
        agent=safe_name(info.agent).text,
        name=safe_name(info.name or info.id).text,
        status=state_words(info),
        age=age(now - (info.since or info.created)),
        added=info.changes.added,
        removed=info.changes.removed,
        files=info.changes.files,
        message=safe_name(info.message).text if state == "failed" or info.waits else "",
        live=info.state in LIVE,
        marked=marked,
        wants=target_of(info.asks[0]) if info.asks else "",
    )


def ordered(infos: Sequence[SessionInfo], workspace: str) -> list[SessionInfo]:
    """Return sessions as the rail lists them: this workspace first, each by age."""
    return sorted(infos, key=lambda i: (i.workspace != workspace, i.workspace, i.created))


RANK = ("waiting", "stalled", "failed", "done", "working", "starting", "paused", "idle", "stopped")
"""States in the order in which they need somebody."""

ORDERS = ("by workspace", "who needs me", "newest first", "by name")
"""How the rail can list sessions; a session keeps its number in all of them."""


def sort_key(info: SessionInfo, order: str) -> tuple[object, ...]:
    """Return what a session is listed by."""
    if order == "who needs me":
        rank = RANK.index("idle" if is_reviewed(info) else shown_state(info))
        return (rank, -(info.since or info.created))
    if order == "newest first":
        return (-info.created,)
    return (info.name or info.id, info.created)


def rail_items(
    infos: Sequence[SessionInfo],
    glyphs: Glyphs,
    now: float,
    needle: str = "",
    order: str = ORDERS[0],
    marked: Collection[str] = (),
) -> list[RailItem]:
    """Return rows, in the first order under a heading for each workspace.

    `infos` are in the order of their numbers, which is the first one; `marked` are the ids of those
    whose agents did something that nobody has seen.
    """
    items: list[RailItem] = []
    last = ""
    numbered = list(enumerate(infos, 1))
    if order != ORDERS[0]:
        numbered.sort(key=lambda pair: sort_key(pair[1], order))
    for number, info in numbered:
        row = row_of(info, number, glyphs, now, marked=info.id in marked)
        text = f"{row.name} {row.agent} {row.status} {info.workspace}".lower()
        if needle and needle.lower() not in text:
            continue
        if info.workspace != last and order == ORDERS[0]:
            last = info.workspace
            name = safe_name(PurePath(info.workspace).name or "/").text
            items.append(Heading(name, first=not items))
        items.append(row)
    return items


def needs_of(infos: Sequence[SessionInfo], glyphs: Glyphs) -> list[Need]:
    """Return what waits for the user, the most urgent first."""
    waiting: list[Need] = []
    asks: list[Need] = []
    broken: list[Need] = []
    review: list[Need] = []
    for info in infos:
        name = safe_name(info.name or info.id).text
        if info.asks:
            asks.append(_ask(info, name, glyphs))
        cap = cap_question(info)
        if cap is not None:
            key = f"{ASKS}{cap.key}"
            asks.append(Need(key, "waiting", glyphs.asks, f"{name} ", "is at its cap"))
        if info.state == "running" and info.agent_state in ("waiting", "stalled"):
            word = "waits for an answer" if info.agent_state == "waiting" else "does not move on"
            sign = str(getattr(glyphs, info.agent_state))
            waiting.append(Need(info.id, info.agent_state, sign, f"{name} {word}"))
        elif info.state == "paused":
            broken.append(Need(info.id, "paused", glyphs.paused, f"{name} stands still"))
        elif shown_state(info) == "failed" and not to_review(info):
            broken.append(Need(info.id, "failed", glyphs.failed, f"{name} {info.state}"))
        elif to_review(info):
            noun = plural(info.open_units, "hunk")
            text = f"{name}: {info.open_units} {noun} to review"
            review.append(Need(info.id, "done", glyphs.done, text))
    return [*waiting, *asks, *broken, *review]


def newly_paused(
    before: Iterable[SessionInfo], after: Iterable[SessionInfo]
) -> tuple[str, str] | None:
    """Return sentence and next step of the first session that stands still since the last look."""
    known = {info.id for info in before if info.state == "paused"}
    for info in after:
        if info.state == "paused" and info.message and info.id not in known:
            name = safe_name(info.name or info.id).text
            return f"{name}: {safe_name(info.message).text}", safe_name(info.hint).text
    return None


def newly_mistaken(before: Iterable[SessionInfo], after: Iterable[SessionInfo]) -> str:
    """Return what is wrong with an edit of the rules that no session had told of, or nothing.

    All sessions tell of the same file, so the first one speaks for all.
    """
    known = {one for info in before for one in info.notices}
    told = (one for info in after for one in info.notices if one.startswith(MISTAKE))
    return next((safe_name(one).text for one in told if one not in known), "")


def _ask(info: SessionInfo, name: str, glyphs: Glyphs) -> Need:
    """Return one row a session, so that one that asks for many hosts hides nobody else."""
    first = info.asks[0]
    more = f" +{len(info.asks) - 1}" if len(info.asks) > 1 else ""
    text, host = f"{name} {glyphs.rename} ", f"{target_of(first)}{more}"
    return Need(f"{ASKS}{key_of(info.id, first.host)}", "waiting", glyphs.asks, text, host)


def session_of(key: str) -> str:
    """Return the session that a need is about."""
    return key.removeprefix(ASKS).partition(" ")[0]


def _waits(info: SessionInfo) -> bool:
    """Tell whether a session goes on only when the user answers: its agent, network or cap."""
    agent = info.state == "running" and info.agent_state in ("waiting", "stalled")
    return agent or bool(asks_of(info))


def top_bar_value(infos: Sequence[SessionInfo], workspace: str) -> TopBarValue:
    """Return the counts of the first line."""
    running = [info for info in infos if info.state == "running"]
    return TopBarValue(
        workspace=safe_name(PurePath(workspace).name or "/").text,
        working=sum(info.agent_state == "working" for info in running),
        waiting=sum(_waits(info) for info in infos),
        review=sum(to_review(info) for info in infos),
        failed=sum(shown_state(info) == "failed" for info in infos),
        asks=sum(map(asks_of, infos)),
        denied=denied(infos),
    )
