"""What the egress log says in its columns and details: pure functions to safe texts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.wording import counted
from snapshot.safe_text import safe_name
from vm.egress.totals import target
from widgets.log_table import Cell, Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.services.egress_view import Group, Row
    from themes.glyphs import Glyphs

ROW_COLUMNS = (
    Column("time", 8),
    Column("session", 14, since=100),
    Column("verdict", 7),
    Column("host", 0, keep_end=True),
    Column("why", 0),
    Column("up", 7, since=110, right=True),
    Column("down", 7, since=110, right=True),
)
GROUP_COLUMNS = (
    Column("last", 8),
    Column("", 1),
    Column("", 1),
    Column("host", 0, keep_end=True),
    Column("names", 6, right=True),
    Column("conns", 6, right=True),
    Column("denied", 6, right=True),
    Column("up", 7, right=True),
    Column("down", 7, right=True),
)

TOKENS = {"allow": "success", "deny": "error", "ask": "warning", "drop": "muted"}
UNITS = ("B", "k", "M", "G", "T")


def size(count: int) -> str:
    """Return bytes short: `950B`, `18k`, `4.1M`."""
    value, unit = float(max(0, count)), UNITS[0]
    for unit in UNITS:
        if value < 1000 or unit == UNITS[-1]:
            break
        value /= 1000
    return f"{value:.1f}{unit}" if unit != "B" and value < 10 else f"{value:.0f}{unit}"


def usd_words(dollars: float) -> str:
    """Return an amount of money; less than a cent is not nothing."""
    return f"${dollars:,.2f}" if dollars >= 0.01 else f"${dollars:.4f}"


def tokens_words(count: int) -> str:
    """Return a count of tokens."""
    return counted(count, "token")


def sign(verdict: str, glyphs: Glyphs) -> str:
    """Return the sign of a verdict: nothing depends on colour."""
    signs = {"allow": glyphs.done, "deny": glyphs.failed, "ask": glyphs.waiting}
    return signs.get(verdict, glyphs.dot)


def where(row: Row) -> str:
    """Return the host and the port."""
    return safe_name(target(row.host, row.entry.port)).text


def why(row: Row) -> str:
    """Return the reason in a few words."""
    entry = row.entry
    times = f" ({entry.count} times)" if entry.count > 1 else ""
    if entry.kind == "query" and entry.verdict == "allow":
        return f"name looked up{times}"
    reason = entry.reason or entry.code
    return safe_name(f"{reason}{times}").text


def clock(at: float) -> str:
    """Return the time of day; a time that is none is a dash."""
    try:
        return time.strftime("%H:%M:%S", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "-"


def row_cells(row: Row, names: Mapping[str, str], glyphs: Glyphs) -> tuple[Cell, ...]:
    """Return a row's columns; `names` are what sessions are called."""
    verdict = row.verdict
    name = names.get(row.session, row.session)
    return (
        Cell(clock(row.entry.at), "muted"),
        Cell(name, "foreground"),
        Cell(f"{sign(verdict, glyphs)} {verdict}", f"{TOKENS.get(verdict, 'muted')}*"),
        Cell(where(row), "foreground"),
        Cell(why(row), "muted"),
        Cell(size(row.up) if row.up else "", "muted"),
        Cell(size(row.down) if row.down else "", "muted"),
    )


def group_cells(group: Group, glyphs: Glyphs, *, pinned: bool = False) -> tuple[Cell, ...]:
    """Return a host's columns."""
    last = group.last
    verdict = "drop" if last is None else last.verdict
    return (
        Cell("" if last is None else clock(last.entry.at), "muted"),
        Cell(sign(verdict, glyphs), f"{TOKENS.get(verdict, 'muted')}*"),
        Cell(glyphs.back if pinned else "", "accent*"),
        Cell(safe_name(group.host).text, "foreground"),
        Cell(f"{group.queries:,}", "muted"),
        Cell(f"{group.connections:,}", "foreground"),
        Cell(f"{group.denied:,}", "error" if group.denied else "faint"),
        Cell(size(group.up), "muted"),
        Cell(size(group.down), "muted"),
    )


def details(row: Row, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is known of a row: labels and safe texts."""
    entry = row.entry
    # a connection that a rule allows can fail all the same, as for want of an address
    effect = "deny" if entry.code == "denied" else "allow"
    rule = f"{effect} {entry.rule}" if entry.rule else "no rule"
    ended = "" if row.duration_ms < 0 else f"  in {row.duration_ms / 1000:.1f} s"
    bytes_text = f"{row.up:,} up, {row.down:,} down{ended}"
    stamp = clock(entry.at)
    facts = [
        ("what", f"{entry.kind} {entry.protocol} {entry.qtype}".strip()),
        ("host", target(row.host, entry.port) + (f"  at {entry.address}" if entry.address else "")),
        ("who", f"{names.get(row.session, row.session)}  {stamp}"),
        ("why", entry.reason or entry.code),
        ("rule", f"{rule}  from {entry.origin}" if entry.origin else rule),
        ("bytes", bytes_text),
    ]
    if entry.note:
        facts.append(("note", entry.note))
    return [(label, safe_name(text).text) for label, text in facts]
