"""Findings about the terminal that the workstation would be drawn in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.doctor.findings import Finding

if TYPE_CHECKING:
    from app.doctor.findings import Facts
    from app.doctor.host import Terminal

MIN_COLUMNS: Final = 80
MIN_ROWS: Final = 24
"""Smaller screens work, but show one thing at a time."""

KITTY_KEYS: Final = frozenset(
    {"kitty", "ghostty", "foot", "wezterm", "alacritty", "iterm.app", "rio", "contour"}
)
"""Terminals with kitty's keyboard protocol; all of them carry out OSC 52 as well."""

NO_CLIPBOARD: Final = frozenset({"apple_terminal"})
"""Terminals that ignore OSC 52."""

TMUX: Final = "tmux set -s set-clipboard on"
NOWHERE: Final = (
    "The output goes to no terminal: its colours, size, signs, keys and clipboard stay unknown."
)
IDS: Final = ("colours", "size", "unicode", "keys", "clipboard")


def terminal(seen: Terminal) -> tuple[Finding, ...]:
    """Return the findings of IDS, in this order."""
    if not seen.there:
        return tuple(Finding(name, "ok", NOWHERE, facts={"terminal": False}) for name in IDS)
    return colours(seen), size(seen), unicode(seen), keys(seen), clipboard(seen)


def colours(seen: Terminal) -> Finding:
    """Say how many colours the terminal is known to have."""
    depth = _depth(seen)
    facts: Facts = {"terminal": True, "term": seen.term, "colours": depth}
    if seen.term in ("", "dumb"):
        message = f"TERM is '{seen.term}', so nothing can be drawn."
        return Finding("colours", "warn", message, "export TERM=xterm-256color", facts)
    if seen.no_colour:
        return Finding("colours", "ok", "NO_COLOR is set, so no colours are shown.", facts=facts)
    if depth < 256:
        message = f"TERM is '{seen.term}', so sixteen colours are used at most."
        return Finding("colours", "warn", message, "export TERM=xterm-256color", facts)
    if depth == 256:
        message = "256 colours are used; if yours has 24-bit colours: export COLORTERM=truecolor"
        return Finding("colours", "ok", message, facts=facts)
    return Finding("colours", "ok", f"24-bit colours are used ({seen.term}).", facts=facts)


def _depth(seen: Terminal) -> int:
    """Return the number of colours, as the libraries that draw decide it."""
    if seen.no_colour or seen.term in ("", "dumb"):
        return 0
    if seen.colorterm.strip().lower() in ("truecolor", "24bit"):
        return 1 << 24
    return 256 if seen.term.rpartition("-")[2] in ("256color", "kitty") else 16


def size(seen: Terminal) -> Finding:
    """Say whether there is room for more than one thing at a time."""
    facts: Facts = {"terminal": True, "columns": seen.columns, "rows": seen.rows}
    text = f"The terminal has {seen.columns} columns and {seen.rows} rows"
    if seen.columns < MIN_COLUMNS or seen.rows < MIN_ROWS:
        fix = f"Make the window {MIN_COLUMNS}x{MIN_ROWS} or larger, or its letters smaller"
        return Finding(
            "size", "warn", f"{text}; below {MIN_COLUMNS}x{MIN_ROWS} it is tight.", fix, facts
        )
    return Finding("size", "ok", f"{text}.", facts=facts)


def unicode(seen: Terminal) -> Finding:
    """Say whether signs beyond ASCII are drawn."""
    facts: Facts = {"terminal": True, "encoding": seen.encoding}
    if seen.encoding.lower().startswith("utf"):
        return Finding("unicode", "ok", "The locale is UTF-8.", facts=facts)
    message = f"The locale's encoding is {seen.encoding or 'unknown'}: plain signs are drawn."
    return Finding("unicode", "warn", message, "export LC_ALL=C.UTF-8", facts)


def keys(seen: Terminal) -> Finding:
    """Say whether keys such as ctrl+enter can be told from others."""
    able = seen.program in KITTY_KEYS and not seen.multiplexer
    facts: Facts = {"terminal": True, "program": seen.program, "kitty_keyboard": able}
    if able:
        return Finding("keys", "ok", "The terminal has kitty's keyboard protocol.", facts=facts)
    if seen.multiplexer:
        message = f"{seen.multiplexer} merges some keys (such as ctrl+enter and enter)."
        if seen.multiplexer == "tmux":
            message += " For more of them: tmux set -s extended-keys on"
        return Finding("keys", "ok", message, facts=facts)
    message = "The terminal may merge some keys (such as ctrl+enter and enter); all of ours work."
    return Finding("keys", "ok", message, facts=facts)


def clipboard(seen: Terminal) -> Finding:
    """Say whether copying in the workstation reaches the user's clipboard (OSC 52)."""
    facts: Facts = {"terminal": True, "program": seen.program, "remote": seen.remote}
    if seen.multiplexer == "tmux":
        message = f"Copies reach your clipboard through tmux once it passes them on: {TMUX}"
        return Finding("clipboard", "ok", message, facts=facts)
    if seen.multiplexer == "screen":
        message = "GNU screen does not pass copies on to your clipboard."
        return Finding("clipboard", "warn", message, "Use tmux, or none of them", facts)
    if seen.program in NO_CLIPBOARD:
        message = f"This terminal ({seen.program}) does not carry out copies (OSC 52)."
        fix = "Use kitty, Ghostty, foot, WezTerm, Alacritty or iTerm2"
        return Finding("clipboard", "warn", message, fix, facts)
    if seen.program in KITTY_KEYS:
        return Finding("clipboard", "ok", "Copies reach your clipboard (OSC 52).", facts=facts)
    message = "Copies reach your clipboard if the terminal carries out OSC 52."
    return Finding("clipboard", "ok", message, facts=facts)
