"""What clients are told of a merge, and of one that was taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.protocol import MergeReport, Skipped, UndoReport
from app.wire_text import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.keeper.asking import Asked
    from snapshot.writeback import MergeOutcome, MergePlan, Refusal, UndoOutcome


def report_of(
    merge: str,
    done: MergeOutcome | MergePlan,
    still_open: int,
    asked: Asked,
    *,
    dry_run: bool = False,
) -> MergeReport:
    """Return the report of a merge, or with `dry_run` of a plan of one.

    `still_open`: how many hunks and aspects wait for a decision after it; `asked`: what its request
    added, and what that left out.
    """
    why = _skipped(done.conflicts)
    return MergeReport(
        merge,
        _texts(done.written),
        tuple(dict.fromkeys(one.path for one in why)),
        (*_skipped(done.skipped), *asked.noted),
        dry_run,
        _told(done.notices),
        why,
        still_open,
        tuple(asked.held),
        tuple(asked.kept),
        _texts(done.touched.wrote),
        _texts(done.touched.deleted),
    )


def undo_report_of(done: UndoOutcome) -> UndoReport:
    """Return the report of a merge that was taken back."""
    conflicts = _texts(refusal.path for refusal in done.conflicts)
    touched = (_texts(done.touched.wrote), _texts(done.touched.deleted))
    return UndoReport(done.merge, _texts(done.restored), conflicts, _told(done.notices), *touched)


def _texts(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(to_text(path) for path in paths)


def _skipped(refusals: Iterable[Refusal]) -> tuple[Skipped, ...]:
    return tuple(Skipped(to_text(item.path), item.reason) for item in refusals)


def _told(notices: Iterable[Refusal]) -> tuple[str, ...]:
    """Return notices as text; one about the whole merge bears the path `.`."""
    return tuple(
        item.reason if item.path == b"." else f"{to_text(item.path)}: {item.reason}"
        for item in notices
    )
