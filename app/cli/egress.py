"""`cloche egress`: what an agent may reach, why, and one rule more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.cli.egress_cap import put_cap
from app.cli.egress_log import show_log
from app.client import fleet
from app.client.egress import reload_rules
from app.egress.compose import About, Composed, compose
from app.egress.hints import way_in, way_out
from app.egress.rules_edit import ALWAYS, add_rule
from app.egress.session import add_session_rule
from app.egress.writing import about_session, refuse_shadow
from app.errors import EXIT_DONE, AppError
from app.paths import Paths
from app.records import read_session
from app.wire_text import path_text
from vm.egress.addresses import Own, literal
from vm.egress.kinds import Request
from vm.egress.names import INTERNAL, BadName, canonical
from vm.egress.own import read_own
from vm.egress.policy import decide
from vm.egress.rules import BadRule, Effect, Rule, check_effective, parse_rule
from vm.egress.totals import target

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output


PRIVATE: Final = "  private: true"
"""Stands behind a rule that lets private addresses through."""


def egress(arguments: argparse.Namespace, output: Output) -> int:
    """Run the action that was asked for."""
    paths = Paths.from_environment()
    actions = {"explain": _explain, "rules": _rules, "log": show_log, "cap": put_cap}
    if arguments.action in actions:
        actions[arguments.action](paths, arguments, output)
    else:
        _add(paths, arguments, output)
    return EXIT_DONE


def _about(paths: Paths, arguments: argparse.Namespace) -> About:
    if not arguments.session:
        return About(arguments.agent, Path.cwd())
    info = fleet.find_session(paths, arguments.session)
    return about_session(paths, read_session(paths.session(info.id)))


def _explain(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    request = _request(arguments.target)
    verdict = decide(request, compose(paths, _about(paths, arguments)).policy, read_own())
    value = {"host": request.host, "port": request.port, "verdict": verdict.action}
    value |= {"level": verdict.level, "rule": verdict.rule, "origin": verdict.origin}

    hint = way_in(request, verdict, arguments.session)
    value |= {"code": verdict.code, "reason": verdict.reason, "hint": hint}

    def human() -> None:
        output.line(f"{target(request.host, request.port)}  {verdict.action}  ({verdict.level})")
        output.line(f"  {verdict.reason}")
        if hint:
            output.line(f"  {hint}")

    output.result(value, human)


def _request(text: str) -> Request:
    """Read HOST[:PORT]; without a port it is 443, for the broker's services 80."""
    host, port = text, 80 if text.endswith(f".{INTERNAL}") else 443
    if literal(text) is None:
        name, colon, number = text.rpartition(":")
        if colon:
            if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= 65535):
                raise AppError("usage", f"'{number[:20]}' is no port.", "Say: HOST:PORT")
            host, port = name, int(number)
    address = literal(host)
    try:
        return Request(canonical(host) if address is None else str(address), port)
    except BadName as error:
        raise AppError("usage", error.reason, "Say: HOST:PORT") from None


def _rules(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    composed = compose(paths, _about(paths, arguments))
    rows: list[dict[str, Any]] = [
        {
            "level": level,
            "verdict": one.effect,
            "rule": one.text,
            "private": one.private,
            "origin": one.origin,
        }
        for level, rules in composed.policy.levels()
        for one in rules
    ]
    profile = composed.policy.profile
    value = {"profile": profile.name, "unlisted": profile.unlisted, "rules": rows}
    output.result({**value, "notes": composed.notes}, lambda: _show(output, composed, rows))


def _show(output: Output, composed: Composed, rows: list[dict[str, Any]]) -> None:
    shown = [
        (row["level"], row["verdict"], f"{row['rule']}{PRIVATE * row['private']}", row["origin"])
        for row in rows
    ]
    output.table([("LEVEL", "VERDICT", "RULE", "FROM"), *shown])
    if composed.policy.closed:
        output.line("This session lets nothing through.")
    profile = composed.policy.profile
    output.line(f"Everything else: {profile.unlisted} (profile {profile.name})")
    for note in composed.notes:
        output.line(note)


def _add(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    scopes = [bool(arguments.session), arguments.project, arguments.always]
    if sum(scopes) != 1:
        hint = "Say one of: --session ID, --project, --always"
        raise AppError("usage", "For how long shall the rule hold?", hint)
    rule = _rule(arguments)
    _refuse_shadow(paths, arguments, rule)
    session = fleet.find_session(paths, arguments.session).id if arguments.session else ""
    if session:
        change = add_session_rule(paths.session(session), rule)
    else:
        scope = ALWAYS if arguments.always else path_text(Path.cwd())
        change = add_rule(paths.config, rule, scope)
    for sentence in asyncio.run(reload_rules(paths, session)):
        output.note(sentence)
    removed = [f"{one.effect} {one.text}" for one in change.removed]
    value = {"rule": rule.text, "verdict": rule.effect, "added": change.added, "removed": removed}

    def human() -> None:
        word = "added" if change.added else "was there already"
        output.line(f"{rule.effect} {rule.text}: {word}")
        for text in removed:
            output.line(f"took out: {text}")

    output.result(value, human)


def _rule(arguments: argparse.Namespace) -> Rule:
    effect: Effect = arguments.action
    rule, option = None, "--always" if arguments.always else "--project"
    try:
        origin = f"egress {effect}"
        rule = parse_rule(arguments.rule, effect, private=arguments.private, origin=origin)
        check_effective(rule, Own(), users=not arguments.session)
    except BadRule as error:
        raise AppError("usage", error.reason, way_out(error, rule, option)) from None
    return rule


def _refuse_shadow(paths: Paths, arguments: argparse.Namespace, rule: Rule) -> None:
    """Refuse an allow that is denied before it is looked at; its own file is checked later."""
    if rule.effect == "deny" or arguments.always:
        return
    policy = compose(paths, _about(paths, arguments)).policy
    refuse_shadow(policy, rule, session=bool(arguments.session))
