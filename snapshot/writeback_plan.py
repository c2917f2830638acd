"""Planning all accepted changes together: which of them fit the real workspace and each other.

`writeback_draft` says what becomes of each alone. Nothing here writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .conflicts import Unsolved
from .errors import MergeAborted
from .names import NameRefused, alike
from .writeback_draft import Already, Drafted, Drafter, InConflict, Kept
from .writeback_layout import Layout
from .writeback_ops import MergePlan, Refusal, Side, Wish
from .writeback_tree import Blocked, Tree, split_last

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from .conflicts import Resolutions

__all__ = ["MergePlan", "Refusal", "Side", "Wish", "make_plan"]

ALREADY: Final = "already so in the workspace"
"""Why a path was left out that needs nothing."""

KEPT: Final = "kept as you have it"
"""Why a path was left out whose conflict was solved for the user's side."""


def make_plan(
    wishes: Sequence[Wish],
    workspace: Path,
    *,
    gone_dirs: Collection[bytes] = (),
    allow_links: Collection[bytes] = (),
    resolutions: Resolutions | None = None,
) -> MergePlan:
    """Plan the wishes against the workspace as it is now; solved conflicts are none.

    Raises:
        WorkspaceRefused: the workspace cannot be opened.
        MergeAborted: a folder of it cannot be read.

    """
    with Tree(workspace) as tree:
        try:
            solver = resolutions or Unsolved()
            return _Planner(tree, wishes, gone_dirs, allow_links, solver).plan()
        except OSError as error:
            raise MergeAborted(
                f"{workspace} cannot be compared: {error.strerror}; nothing was written.",
                "Make all of its folders readable, then merge again.",
            ) from error


class _Planner:
    """Drafts every wish, then drops those that do not fit together until the rest does."""

    def __init__(
        self,
        tree: Tree,
        wishes: Sequence[Wish],
        gone_dirs: Collection[bytes],
        allow_links: Collection[bytes],
        resolutions: Resolutions,
    ) -> None:
        self.tree = tree
        self.wishes = wishes
        self.gone_dirs = gone_dirs
        self.drafter = Drafter(tree, allow_links, resolutions)
        self.conflicts: dict[int, str] = {}
        self.skipped: dict[int, str] = {}

    def plan(self) -> MergePlan:
        """Return the plan."""
        drafted = {number: self._draft_safely(number) for number in range(len(self.wishes))}
        layout = self._settle(drafted)
        done = [number for number in drafted if self._is_active(number, drafted)]
        names = tuple(wish.name for wish in self.wishes)
        return MergePlan(
            self.tree.root,
            self.tree.identity,
            tuple(layout.ops()),
            names,
            tuple(names[number] for number in done),
            self._refusals(self.conflicts),
            self._refusals(self.skipped),
            tuple(self._notices(done, drafted)),
            tuple(self.drafter.disputes),
            tuple(self.wishes),
        )

    def _is_active(self, number: int, drafted: dict[int, Drafted]) -> bool:
        refused = number in self.conflicts or number in self.skipped
        return not refused and bool(drafted[number].drafts)

    def _refusals(self, reasons: dict[int, str]) -> tuple[Refusal, ...]:
        return tuple(Refusal(self.wishes[n].name, why) for n, why in sorted(reasons.items()))

    def _settle(self, drafted: dict[int, Drafted]) -> Layout:
        """Lay out what is left until no wish stands in another's way."""
        while True:
            self._drop_groups()
            active = {n: d.drafts for n, d in drafted.items() if self._is_active(n, drafted)}
            layout = Layout(self.tree, active, self.gone_dirs, self.drafter.mask)
            if not layout.refused:
                return layout
            self.conflicts.update(layout.refused)

    def _drop_groups(self) -> None:
        """Refuse the rest of a group of which one wish was refused."""
        broken = {self.wishes[number].group for number in self.conflicts} - {None}
        for number, wish in enumerate(self.wishes):
            if wish.group in broken and number not in self.conflicts:
                self.conflicts[number] = "belongs to a change that conflicts"

    def _draft_safely(self, number: int) -> Drafted:
        """Draft one wish, or note why it is left out."""
        try:
            return self.drafter.draft(self.wishes[number])
        except NameRefused as refused:
            self.skipped[number] = str(refused)
        except Already:
            self.skipped[number] = ALREADY
        except Kept:
            self.skipped[number] = KEPT
        except InConflict as conflict:
            self.conflicts[number] = str(conflict)
        except Blocked:
            self.conflicts[number] = "its folder became something else just now"
        except OSError as error:
            self.conflicts[number] = f"cannot be read: {error.strerror}"
        return Drafted()

    def _notices(self, done: Sequence[int], drafted: dict[int, Drafted]) -> list[Refusal]:
        """Return what to tell about the wishes that are fulfilled."""
        notices: list[Refusal] = []
        names: dict[bytes, set[bytes]] = {}
        for number in done:
            wish = self.wishes[number]
            notices += [Refusal(wish.name, text) for text in drafted[number].notices]
            for draft in drafted[number].drafts:
                if draft.pre.kind == "none" and draft.post.entry.kind != "none":
                    notices += self._twins(wish, draft.path, names)
        return notices

    def _twins(self, wish: Wish, path: bytes, names: dict[bytes, set[bytes]]) -> list[Refusal]:
        """Tell about names beside a new one that some systems would take for the same."""
        folder, name = split_last(path)
        if folder not in names:
            try:
                names[folder] = self.tree.names(folder)
            except Blocked:
                names[folder] = set()
        twins = [other for other in names[folder] if other != name and alike(other) == alike(name)]
        text = "differs only in case or Unicode form from another name in its folder"
        return [Refusal(wish.name, text)] if twins else []
