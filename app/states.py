"""One word and one sign for how a session is, wherever it is shown: `ps`, its JSON, the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.protocol import SessionInfo

LIVE: Final = ("starting", "running", "paused", "stopping")
"""States with a machine."""

OVER: Final = ("stopped", "failed", "lost")
"""States without one."""


def shown_state(info: SessionInfo) -> str:
    """Return the name of the colour and the sign that stand for a session."""
    if info.state in ("failed", "lost"):
        return "failed"
    if info.state in ("starting", "stopping"):
        return "starting"
    if info.state == "paused":
        return "paused"
    if info.state == "stopped":
        return "done" if info.changes.files else "stopped"
    return info.agent_state


def state_words(info: SessionInfo) -> str:
    """Return the state as people say it."""
    if is_through(info) and shown_state(info) == "done" and info.changes.files:
        return "to review" if info.open_units else "reviewed"
    if info.waits:
        return f"waits for {info.waits}"
    if info.state != "running":
        return info.state
    return {"waiting": "waits for you"}.get(info.agent_state, info.agent_state)


def can_resume(info: SessionInfo) -> bool:
    """Return whether a resume starts the agent: without a machine, or in one where it has ended."""
    return info.state in OVER or (info.state == "running" and info.exit_code is not None)


def is_through(info: SessionInfo) -> bool:
    """Return whether the session's agent changes nothing any more."""
    return info.state in OVER or info.agent_state in ("done", "failed")


def to_review(info: SessionInfo) -> bool:
    """Return whether an agent is through and something of its changes is undecided."""
    return bool(info.changes.files and info.open_units) and is_through(info)


def is_reviewed(info: SessionInfo) -> bool:
    """Return whether an agent is through and nothing of it waits for a decision."""
    return is_through(info) and not info.open_units and shown_state(info) == "done"
