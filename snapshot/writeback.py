"""Writing accepted changes into the real workspace: all of them or none, and undone at any time.

The steps: `review.plan_merge` → `run_merge` → (any time later) `undo_merge`; `recover` at start.
Every step is in a journal in the merge's folder before it happens. This module is the way in; the
parts are `writeback_plan` and `writeback_draft` (compare and decide), `writeback_layout` (order),
`writeback_stage`, `writeback_commit` and `writeback_revert` (do and take back), `writeback_journal`
and `undo`.
"""

from __future__ import annotations

from .temp_names import is_temp_name
from .undo import UndoOutcome, undo_merge
from .writeback_ops import MergePlan, Refusal
from .writeback_run import MergeOutcome, Recovered, recover, run_merge, workspace_lock

__all__ = [
    "MergeOutcome",
    "MergePlan",
    "Recovered",
    "Refusal",
    "UndoOutcome",
    "is_temp_name",
    "recover",
    "run_merge",
    "undo_merge",
    "workspace_lock",
]
