"""Writes one rule where it belongs: the session's own file, or the user's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.egress.compose import About, compose
from app.egress.hints import lifting, way_out
from app.egress.session import add_session_rule, read_session_egress
from app.errors import AppError
from app.records import read_session
from app.wire_text import text_path
from vm.egress.addresses import Own
from vm.egress.policy import shadow
from vm.egress.rules import BadRule, check_effective

if TYPE_CHECKING:
    from app.egress.adding import Change
    from app.paths import Paths
    from app.records import SessionRecord
    from vm.egress.policy import Policy, RuleLevel
    from vm.egress.questions import Choice
    from vm.egress.rules import Rule


def about_session(paths: Paths, record: SessionRecord) -> About:
    """Return what a session's policy is composed for. Raises AppError `damaged`."""
    workspace = Path(text_path(record.workspace)) if record.workspace else None
    egress = read_session_egress(paths.session(record.id))
    services = tuple(record.broker.services)
    return About(record.agent.name, workspace, egress, ask=egress.ask, services=services)


def write_choice(paths: Paths, session_id: str, choice: Choice) -> Change:
    """Write a rule as it was shown; `once` is none that is written.

    Raises AppError: `not-found` for a session that is gone, `not-effective` where another rule
    decides before, and what the files' own checks refuse.
    """
    folder = paths.session(session_id)
    try:
        record = read_session(folder)
        check_effective(choice.rule, Own(), users=choice.scope != "session")
    except FileNotFoundError:
        text = f"There is no session '{session_id}' any more."
        raise AppError("not-found", text, "See them: cloche ps") from None
    except BadRule as error:
        option = "--always" if choice.scope == "always" else "--project"
        raise AppError(error.code, error.reason, way_out(error, choice.rule, option)) from None
    _refuse_shadow(paths, record, choice)
    if choice.scope == "session":
        return add_session_rule(folder, choice.rule)
    if choice.scope == "project" and not record.workspace:
        raise AppError("usage", "This session has no workspace.", "Answer for the session.")
    from app.egress.rules_edit import ALWAYS, add_rule  # loads what keeps comments and order

    scope = ALWAYS if choice.scope == "always" else record.workspace
    return add_rule(paths.config, choice.rule, scope)


def _refuse_shadow(paths: Paths, record: SessionRecord, choice: Choice) -> None:
    """Refuse an allow that another file's deny decides before."""
    if choice.rule.effect == "deny" or choice.scope == "always":
        return
    policy = compose(paths, about_session(paths, record)).policy
    refuse_shadow(policy, choice.rule, session=choice.scope == "session")


def refuse_shadow(policy: Policy, rule: Rule, *, session: bool) -> None:
    """Refuse an allow for a session, or for its workspace, that a deny elsewhere decides before.

    The denies beside the rule itself are its own file's to know: some are taken out for it. Raises
    AppError.
    """
    level: RuleLevel = "session" if session else "project"
    found = shadow(rule, level, policy if session else replace(policy, workspace=()))
    if found is not None and found[0] in ("always", "workspace", "project"):
        why = f"'deny {found[1].text}' ({found[1].origin}) decides first"
        text = f"{rule.text} would never take effect: {why}."
        raise AppError("not-effective", text, lifting(found[0], found[1], rule))
