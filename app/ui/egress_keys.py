"""The keys of the egress log, in the order of their rank."""

from __future__ import annotations

from textual.binding import Binding, BindingType

EGRESS_BINDINGS: list[BindingType] = [
    Binding("a", "rule('allow')", "allow…", tooltip="Allow the row's host", id="egress.allow"),
    Binding("d", "rule('deny')", "deny…", tooltip="Deny the row's host", id="egress.deny"),
    Binding(
        "w",
        "rule('widen')",
        "widen…",
        tooltip="Allow or deny all beside it",
        id="egress.wide",
    ),
    Binding("b", "group", "by host", tooltip="Rows, or one line a host", id="egress.group"),
    Binding(
        "space",
        "pin",
        "pin",
        tooltip="Keep the row's host above the others in the list by host, or let it go",
        id="egress.pin",
    ),
    Binding("x", "export", "export…", tooltip="Write what is shown to a file", id="egress.export"),
    Binding("v", "verdict", "verdict", tooltip="Show one verdict, or all", id="egress.verdict"),
    Binding("s", "session", "agent", tooltip="Show one session, or all", id="egress.session"),
    Binding("slash", "filter", "filter", tooltip="Show what holds a text", id="egress.filter"),
    Binding("i", "details", "details", tooltip="Why it was decided so", id="egress.details"),
    Binding("q", "leave", "back", tooltip="Close the details, else leave", id="egress.back"),
    Binding(
        "escape",
        "back",
        "back",
        show=False,
        tooltip="Close a notice, else the details, else leave",
        id="egress.close",
    ),
]
