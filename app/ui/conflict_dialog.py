"""Where what you accepted meets what you changed meanwhile: three texts, and what solves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.ui.dialogs import LOW, key_line
from app.ui.text_dialog import TextDialog, TextQuestion, editable
from snapshot.safe_text import decode, encode, safe_block, safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from app.protocol_review import Conflict
    from themes.glyphs import Glyphs

CHOICES = {
    "yours": ("1", "yours"),
    "agent": ("2", "the agent's"),
    "both": ("3", "yours, then the agent's"),
    "both-reversed": ("4", "the agent's, then yours"),
    "base": ("0", "as in the snapshot"),
    "text": ("e", "your own text"),
}
"""Key and words of each choice."""

SHORT = {
    "yours": "yours",
    "agent": "agent's",
    "both": "both",
    "both-reversed": "reversed",
    "base": "base",
    "text": "write",
}
"""Words of each choice for the line of keys."""

MAX_SHOWN = 400
"""Lines of a side that are shown."""


class ConflictDialog(ModalScreen[None]):
    """Goes through conflicts; each choice is told at once, undo is the review's own."""

    VERTICAL_BREAKPOINTS = LOW
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as in the base
    BINDING_GROUP_TITLE = "Conflicts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "1", "choose('yours')", "yours", tooltip="Keep what you wrote", id="conflict.yours"
        ),
        Binding(
            "2",
            "choose('agent')",
            "agent's",
            tooltip="Take what the agent wrote",
            id="conflict.agent",
        ),
        Binding(
            "3", "choose('both')", "both", tooltip="Yours, and then the agent's", id="conflict.both"
        ),
        Binding(
            "4",
            "choose('both-reversed')",
            "both, reversed",
            tooltip="The agent's, and then yours",
            id="conflict.both-reversed",
        ),
        Binding("0", "choose('base')", "neither", tooltip="As in the snapshot", id="conflict.base"),
        Binding("e", "write", "write", tooltip="Write what stands there", id="conflict.write"),
        Binding(
            "backspace",
            "choose('open')",
            "open again",
            tooltip="Take the choice back",
            id="conflict.open",
        ),
        Binding(
            "right_square_bracket,n,down",
            "step(1)",
            "next",
            tooltip="Next conflict",
            id="conflict.next",
        ),
        Binding(
            "left_square_bracket,N,up",
            "step(-1)",
            "previous",
            tooltip="Previous conflict",
            id="conflict.previous",
        ),
        Binding(
            "M", "merge", "merge…", tooltip="Back to the summary of the merge", id="conflict.merge"
        ),
        Binding("escape,q", "close", "back", id="conflict.close"),
    ]
    CSS = """
    ConflictDialog .dialog { width: 96%; max-width: 180; height: 90%; }
    ConflictDialog #sides { layout: vertical; height: 1fr; }
    ConflictDialog.-wide #sides { layout: horizontal; }
    ConflictDialog .side { width: 1fr; height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    ConflictDialog .side.-chosen { background: $raised; }
    """

    def __init__(
        self,
        conflicts: Sequence[Conflict],
        glyphs: Glyphs,
        solve: Callable[[Conflict, str, bytes], None],
        at: int = 0,
    ) -> None:
        """Show conflicts; `solve` is told each choice (`open` takes one back)."""
        super().__init__()
        self.solve = solve
        self.conflicts = tuple(conflicts)
        self.glyphs = glyphs
        self.at = at
        self.wants_merge = False

    def compose(self) -> ComposeResult:
        """Yield the place, the three sides and the keys."""
        with Vertical(classes="dialog"):
            yield Static("", id="conflict-title", classes="dialog-title", markup=False)
            yield Static("", id="conflict-state", markup=False)
            with Container(id="sides"):
                for side in ("yours", "agent", "base"):
                    with VerticalScroll(classes="side", id=f"side-{side}"):
                        yield Static("", markup=False)
            yield Static("", id="conflict-keys", markup=False)

    def on_mount(self) -> None:
        """Show the first open conflict."""
        self.show()

    @property
    def conflict(self) -> Conflict:
        """The conflict that shows."""
        return self.conflicts[self.at]

    def take(self, conflicts: Sequence[Conflict]) -> None:
        """Show conflicts as the keeper sees them now; without any the dialog ends."""
        known = self.conflict.id
        self.conflicts = tuple(conflicts)
        if not self.conflicts:
            self.dismiss(None)
            return
        same = [n for n, conflict in enumerate(self.conflicts) if conflict.id == known]
        self.at = same[0] if same else min(self.at, len(self.conflicts) - 1)
        self.show()

    def show(self) -> None:
        """Show the conflict under the cursor."""
        conflict = self.conflict
        name = safe_name(conflict.path).text
        line = f":{conflict.line}" if conflict.line else ""
        title = f"Conflict {self.at + 1} of {len(self.conflicts)}   {name}{line}"
        self.query_one("#conflict-title", Static).update(Content(title))
        self.query_one("#conflict-state", Static).update(self._state())
        for side, words in SIDES.items():
            found: bytes = getattr(conflict, side)
            box = self.query_one(f"#side-{side}", VerticalScroll)
            box.set_class(_is_in(side, conflict.choice), "-chosen")
            box.query_one(Static).update(self._side(words, found, _is_in(side, conflict.choice)))
        self.query_one("#conflict-keys", Static).update(self._keys())

    def _state(self) -> Content:
        conflict, glyphs = self.conflict, self.glyphs
        left = sum(not one.choice for one in self.conflicts)
        rest = f"   {left} open" if left else "   all solved: M shows the merge"
        if not conflict.choice:
            sign = (f"{glyphs.open} open   ", "bold $warning")
            why = safe_name(conflict.reason).text
            return Content.assemble(sign, (f"{why}{rest}", "$muted"))
        words = CHOICES[conflict.choice][1]
        return Content.assemble((f"{glyphs.accepted} {words}", "bold $success"), (rest, "$muted"))

    def _side(self, words: str, data: bytes, chosen: bool) -> Content:
        sign = f"{self.glyphs.accepted} " if chosen else ""
        lines = safe_block(decode(data)).text.split("\n")
        text = "\n".join(line.replace("\t", "    ") for line in lines[:MAX_SHOWN])
        cut = self.conflict.cut or len(lines) > MAX_SHOWN
        tail = "\n(more lines are not shown)" if cut else ""
        body = (text or "(nothing)", "$foreground" if data else "$muted")
        return Content.assemble((f"{sign}{words}\n", "bold $accent"), body, (tail, "$warning"))

    def _keys(self) -> Content:
        """Return what solves the conflict, and below it what else there is to do."""
        choices = [(CHOICES[choice][0], SHORT[choice]) for choice in self.conflict.choices]
        more = [("backspace", "open again")] if self.conflict.choice else []
        more += [("] [", "next")] if len(self.conflicts) > 1 else []
        more += [("M", "summary of the merge"), ("esc", "back")]
        return Content.assemble(key_line(choices), "\n", key_line(more))

    def action_choose(self, choice: str) -> None:
        """Tell what solves the conflict, and go on to the next open one."""
        if choice != "open" and choice not in self.conflict.choices:
            return
        self.solve(self.conflict, choice, b"")
        if choice != "open":
            self._go_on()

    def _go_on(self) -> None:
        after = [*range(self.at + 1, len(self.conflicts)), *range(self.at)]
        self.at = next((n for n in after if not self.conflicts[n].choice), self.at)
        self.show()

    def action_write(self) -> None:
        """Write what stands there instead."""
        conflict = self.conflict
        found = editable(conflict.text or conflict.yours)
        if "text" not in conflict.choices or conflict.cut or found is None:
            self.query_one("#conflict-state", Static).update("This one cannot be written here.")
            return
        text, ending = found
        about = "What you write stands in the place of both."
        question = TextQuestion("Solve the conflict", about, text, "take this", code=True)

        def written(answer: str | None) -> None:
            if answer is not None:
                content = encode(answer.replace("\n", ending))
                self.solve(conflict, "text", content)

        self.app.push_screen(TextDialog(question), written)  # pyright: ignore[reportUnknownMemberType]

    def action_step(self, step: int) -> None:
        """Go to another conflict."""
        self.at = max(0, min(self.at + step, len(self.conflicts) - 1))
        self.show()

    def action_merge(self) -> None:
        """End, and ask what a merge would do now."""
        self.wants_merge = True
        self.dismiss(None)

    def action_close(self) -> None:
        """Go back to the review."""
        self.dismiss(None)


SIDES = {"yours": "1 yours, as it is now", "agent": "2 the agent's", "base": "0 the snapshot's"}


def _is_in(side: str, choice: str) -> bool:
    return side == choice or (choice.startswith("both") and side != "base")
