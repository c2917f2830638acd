"""The network's flags of `run` and `sandbox`, and what is said at the end of what it refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from app.egress.session import SessionEgress, started_with
from vm.egress.totals import target

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.services.egress_refused import Refused

MAX_REFUSED: Final = 50
"""Most targets that a report names; the log has all of them."""


OPENED_BY: Final = {
    "not-listed": "--allow-host HOST[:PORT]",
    "literal-address": "--allow-cidr ADDRESS[:PORT]",
}
"""The option that lets through what was refused with a code."""


def egress_of(arguments: argparse.Namespace, *, ask: bool) -> SessionEgress:
    """Return what the flags mean; `ask`: somebody is there who can answer. Raises AppError."""
    return started_with(
        arguments.egress,
        arguments.allow_host,
        arguments.allow_cidr,
        closed=arguments.deny_egress,
        network=arguments.network,
        ask=ask,
    )


def egress_report(refusals: tuple[Refused, ...]) -> dict[str, Any]:
    """Return the part of a report that programs read."""
    return {"denied": msgspec.to_builtins(refusals[:MAX_REFUSED]), "denied_targets": len(refusals)}


def note_refused(output: Output, refusals: tuple[Refused, ...]) -> None:
    """Say on standard error what was refused."""
    if not refusals:
        return
    were = "1 target was" if len(refusals) == 1 else f"{len(refusals)} targets were"
    output.note(f"egress: {were} refused:")
    for one in refusals[:MAX_REFUSED]:
        times = f" ({one.count} times)" if one.count > 1 else ""
        output.note(f"  {target(one.host, one.port)}{times}: {one.reason or one.code}")
    if len(refusals) > MAX_REFUSED:
        output.note(f"  and {len(refusals) - MAX_REFUSED} more")
    for code, option in OPENED_BY.items():
        if any(one.code == code for one in refusals):
            output.note(f"  Let one through: {option}")
