"""The keys of the fleet screen, in the order of their rank."""

from __future__ import annotations

from textual.binding import Binding, BindingType

FLEET_BINDINGS: list[BindingType] = [
    Binding("n", "new", "new", tooltip="Start an agent on a copy of a folder", id="fleet.new"),
    Binding(
        "enter",
        "enter_pane",
        "into its screen",
        tooltip="Give the keys to the session's agent",
        id="fleet.enter",
    ),
    Binding("r", "review", "review", tooltip="Go through what it changed", id="fleet.review"),
    Binding("s", "stop", "stop", tooltip="End its machine; changes stay", id="fleet.stop"),
    Binding(
        "R",
        "resume",
        "resume",
        tooltip="Start an agent again, or a stopped session",
        id="fleet.resume",
    ),
    Binding("d", "delete", "delete", tooltip="Delete a stopped session", id="fleet.delete"),
    Binding("z", "zoom", "zoom", tooltip="One pane on the whole screen, or all", id="fleet.zoom"),
    Binding("tab", "step_pane(1)", "next", tooltip="To the next pane", id="fleet.next-pane"),
    Binding(
        "shift+tab",
        "step_pane(-1)",
        "previous",
        show=False,
        tooltip="To the previous pane",
        id="fleet.previous-pane",
    ),
    Binding("plus", "more", "more", tooltip="More panes: 1, 2, 4, 6, 9", id="fleet.more"),
    Binding("minus", "fewer", "fewer", tooltip="Fewer panes", id="fleet.fewer"),
    Binding("slash", "filter", "filter", tooltip="Show only some", id="fleet.filter"),
    Binding("o", "sort", "order", tooltip="List sessions in another order", id="fleet.sort"),
    Binding(
        "exclamation_mark",
        "next_need",
        "who needs me",
        key_display="!",
        tooltip="Go to the next session that needs you",
        id="fleet.next-need",
    ),
    Binding(
        "e",
        "answer",
        "answer",
        tooltip="Answer what an agent asks for",
        id="fleet.answer",
    ),
    Binding(
        "E",
        "app.egress",
        "egress",
        tooltip="What the agents reached and tried to reach",
        id="fleet.egress",
    ),
    Binding(
        "right_square_bracket",
        "paste_copied",
        "paste",
        show=False,
        tooltip="Paste what was copied last into the agent's screen",
        id="fleet.paste",
    ),
    Binding(
        "y",
        "copy_link",
        "copy the link",
        show=False,
        tooltip="Copy the address of the link that was clicked last",
        id="fleet.copy-link",
    ),
    Binding(
        "colon",
        "app.command_palette",
        "commands",
        tooltip="Find a command by its name",
        id="app.commands",
    ),
    Binding("q", "app.leave", "leave", tooltip="Leave Cloche; sessions go on", id="app.leave"),
    Binding(
        "f12",
        "leave_pane",
        "leave or enter the pane",
        show=False,
        tooltip="Take the keys back from an agent, or give them",
        id="fleet.toggle-pane",
    ),
    *(
        Binding(f"{n},alt+{n}", f"pane({n})", f"into session {n}", show=False, id=f"fleet.pane-{n}")
        for n in range(1, 10)
    ),
]
