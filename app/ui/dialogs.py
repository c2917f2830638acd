"""Small typed questions over a screen: what to start, what a merge writes, what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from app.wording import plural
from widgets.agent_list import AgentList, AgentRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from app.services.merge_facts import MergeFacts
    from app.services.ports import AgentChoice
    from themes.glyphs import Glyphs


LOW = [(0, "-low"), (30, "-tall")]
"""Below 30 lines dialogs give up their air, so that their keys are always in sight."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """What the user wants to start."""

    agent: str
    workspace: Path
    name: str


class NewSessionDialog(ModalScreen[None]):
    """Which agent, on which folder, under which name.

    It stays until the session is there, or until the user leaves it: what was written is still
    there when it could not be started, and no key goes to the screen below before.
    """

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "New session"
    AUTO_FOCUS = "AgentList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "back", id="new.cancel"),
        Binding("down", "app.focus_next", "next field", show=False, id="new.next"),
        Binding("up", "app.focus_previous", "previous field", show=False, id="new.previous"),
    ]

    def __init__(
        self,
        agents: Sequence[AgentChoice],
        workspace: Path,
        glyphs: Glyphs,
        begin: Callable[[NewSession], object],
    ) -> None:
        """Offer agents; `begin` takes what the user wants; its answer is `refuse` or `close`."""
        super().__init__()
        self.agents = agents
        self.workspace = workspace
        self.glyphs = glyphs
        self._begin = begin
        self._beginning = False
        self._over = False

    def compose(self) -> ComposeResult:
        """Yield the agents and two fields."""
        with Vertical(classes="dialog"):
            yield Static("New session", classes="dialog-title", markup=False)
            yield Static("Agent", classes="label", markup=False)
            yield AgentList(glyphs=self.glyphs, id="agents")
            yield Static("Workspace: a copy of it is made", classes="label", markup=False)
            yield Input(str(self.workspace), id="workspace", compact=True, select_on_focus=False)
            yield Static("Name, if you like", classes="label", markup=False)
            yield Input(id="name", compact=True, placeholder="made from the agent's name")
            yield Static("", id="dialog-error", markup=False)
            yield Static("", id="dialog-hint", markup=False)
            yield Static(key_line([("enter", "start"), ("tab", "next field"), ("esc", "back")]))

    def on_mount(self) -> None:
        """List the agents."""
        rows = [
            AgentRow(agent.name, agent.description, "" if agent.has_image else "no image yet")
            for agent in self.agents
        ]
        listed = self.query_one(AgentList)
        listed.set_items(rows)
        listed.styles.height = max(1, min(8, len(rows)))

    @on(Input.Submitted)
    @on(AgentList.Chosen)
    def start(self) -> None:
        """Check what can be checked at once, and begin."""
        if self._beginning:
            return
        agent = self.query_one(AgentList).current_key
        text = self.query_one("#workspace", Input).value.strip()
        workspace = Path(text).expanduser() if text else self.workspace
        if agent is None:
            self.refuse("There is no agent to start.")
        elif not workspace.is_dir():
            self.refuse("There is no such folder: write the path of the folder to work on.")
            self.query_one("#workspace", Input).focus()
        else:
            name = self.query_one("#name", Input).value.strip()
            self._beginning = True
            self._say("", f"Starting {agent}: the snapshot of its workspace is taken.")
            self._begin(NewSession(agent, workspace.resolve(), name))

    def refuse(self, text: str, hint: str = "") -> None:
        """Say why nothing was started, and let the user try again."""
        self._beginning = False
        self._say(text, hint)

    def _say(self, error: str, hint: str) -> None:
        self.query_one("#dialog-error", Static).update(error)
        self.query_one("#dialog-hint", Static).update(hint)

    def close(self) -> None:
        """Leave, once the session is there; where another dialog lies above, after that one."""
        self._over = True
        if self.is_current:
            self.dismiss()

    def on_screen_resume(self) -> None:
        """Leave where that was put off."""
        if self._over:
            self.dismiss()

    def action_cancel(self) -> None:
        """Leave; what was begun goes on."""
        self.dismiss()


def key_line(keys: Sequence[tuple[str, str]]) -> Content:
    """Return keys and what they do in one line."""
    parts: list[tuple[str, str]] = []
    for key, label in keys:
        parts += [(key, "bold $accent"), (f" {label}    ", "$muted")]
    return Content.assemble(*parts)


MergeAnswer = Literal["write", "conflicts", "patch"]
"""What the user wants after the summary of a merge."""


class MergeDialog(ModalScreen[MergeAnswer]):
    """What a merge would write; `y` writes it, `C` goes to the conflicts, `p` copies a patch."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Merge"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "write", "write", id="merge.write", tooltip="Write it into the workspace"),
        Binding(
            "C", "conflicts", "conflicts", id="merge.conflicts", tooltip="Solve the conflicts first"
        ),
        Binding(
            "p",
            "patch",
            "copy as a patch",
            id="merge.patch",
            tooltip="Copy what is accepted as a patch; one too long for a clipboard is saved",
        ),
        Binding("escape,q", "cancel", "back", id="merge.cancel"),
    ]

    def __init__(self, facts: MergeFacts, glyphs: Glyphs) -> None:
        super().__init__()
        self.facts = facts
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield the numbers and the paths behind them."""
        facts = self.facts
        keys = [("y", "write it")] if facts.written else []
        keys += [("C", "solve the conflicts")] if facts.conflicts else []
        keys += [("p", "copy as a patch"), ("esc", "back")]
        with Vertical(classes="dialog"):
            yield Static("Merge into the workspace", classes="dialog-title", markup=False)
            yield Static(facts_text(facts, self.glyphs), classes="facts")
            with VerticalScroll(classes="paths", can_focus=True):
                yield Static(paths_text(facts, self.glyphs))
            yield Static(key_line(keys))

    def action_write(self) -> None:
        """Write, where there is something to write."""
        if self.facts.written:
            self.dismiss("write")

    def action_conflicts(self) -> None:
        """Go to the conflicts, where there are some."""
        if self.facts.conflicts:
            self.dismiss("conflicts")

    def action_patch(self) -> None:
        """Copy what is accepted as a patch."""
        self.dismiss("patch")

    def action_cancel(self) -> None:
        """Go back to the review."""
        self.dismiss(None)


class MergedDialog(ModalScreen[bool]):
    """What a merge wrote, with its conflicts; `t` takes it back."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "After a merge"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t,T", "take_back", "take back", id="merged.undo", tooltip="Undo the whole merge"),
        Binding("escape,q,enter", "done", "back", id="merged.done"),
    ]

    def __init__(self, facts: MergeFacts, glyphs: Glyphs) -> None:
        super().__init__()
        self.facts = facts
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield what was written and what was not."""
        facts = self.facts
        noun = plural(len(facts.written), "file")
        title = f"{self.glyphs.done} Merged {len(facts.written)} {noun}"
        keys = [("enter", "back to the review"), ("t", "take it back")]
        with Vertical(classes="dialog -done"):
            yield Static(title, classes="dialog-title", markup=False)
            with VerticalScroll(classes="paths", can_focus=True):
                yield Static(paths_text(facts, self.glyphs))
            yield Static(key_line(keys if facts.written else keys[:1]))

    def action_take_back(self) -> None:
        """Undo the merge."""
        if self.facts.written:
            self.dismiss(True)

    def action_done(self) -> None:
        """Leave it as it is."""
        self.dismiss(False)


def facts_text(facts: MergeFacts, glyphs: Glyphs) -> Content:
    """Return the numbers of a merge, right-aligned, each with sign and word."""
    written, clashing = len(facts.written), len(facts.conflicts)
    rejected, left = facts.rejected_hunks, facts.open_hunks
    go, stay = ("goes" if written == 1 else "go"), ("stays" if left == 1 else "stay")
    out = "stays out" if rejected == 1 else "stay out"
    also = f"you changed {'it' if clashing == 1 else 'them'} too"
    rows = [
        (
            glyphs.accepted,
            "$success",
            written,
            f"{plural(written, 'file')} {go} in",
            facts.accepted_text,
        ),
        (glyphs.rejected, "$error", rejected, f"{plural(rejected, 'hunk')} rejected", out),
        (
            glyphs.open,
            "$muted",
            left,
            f"{plural(left, 'hunk')} open",
            f"{stay} out and {stay} open",
        ),
        (glyphs.drift, "$error", clashing, f"{plural(clashing, 'file')} in conflict", also),
        (
            glyphs.risky,
            "$warning",
            len(facts.risky),
            f"{plural(len(facts.risky), 'file')} risky",
            "can run by side effect",
        ),
        (
            glyphs.note,
            "$muted",
            len(facts.skipped),
            f"{plural(len(facts.skipped), 'file')} left out",
            "with the reason below",
        ),
    ]
    parts: list[tuple[str, str]] = []
    for sign, tone, count, word, rest in rows:
        quiet = not count
        parts.append((f" {sign} ", "$muted" if quiet else f"bold {tone}"))
        parts.append((f"{count:>5} ", "$muted" if quiet else "bold $foreground"))
        parts.append((f"{word:<17}", "$muted" if quiet else "$foreground"))
        parts.append((f" {rest if not quiet else ''}\n", "$muted"))
    return Content.assemble(*parts)


def paths_text(facts: MergeFacts, glyphs: Glyphs) -> Content:
    """Return each path with what happens to it."""
    parts: list[tuple[str, str]] = []
    for path in facts.conflicts:
        parts += [(f" {glyphs.drift} ", "bold $error"), (path, "$foreground")]
        why = facts.reasons.get(path, "your file is left as it is")
        parts.append((f"  conflict: {why}\n", "$warning"))
    for path in facts.written:
        risk, kind = facts.risky.get(path, ""), facts.kinds.get(path, "")
        parts += [(f" {glyphs.accepted} ", "bold $success"), (path, "$foreground")]
        parts.append((f"  {kind}" if kind else "", "$muted"))
        parts.append((f"  {glyphs.risky} {risk}\n" if risk else "\n", "$warning"))
    for path, reason in facts.skipped:
        parts += [(f" {glyphs.note} ", "$muted"), (path, "$muted"), (f"  {reason}\n", "$muted")]
    for notice in facts.notices:
        parts += [(f" {glyphs.dot} ", "$muted"), (f"{notice}\n", "$muted")]
    if not parts:
        parts = [("  nothing would be written\n", "$muted")]
    return Content.assemble(*parts)
