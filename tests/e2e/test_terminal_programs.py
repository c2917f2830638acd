"""Real programs in a real machine end on the screen that tmux makes of the same bytes.

Keys go the way of a user's: from the pane through the worker's key encoder to the keeper. The
session's raw record is then given to tmux, and the pane is compared with it cell by cell:
characters, colours, attributes, cursor.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from rich.cells import cell_len
from rich.color import ColorType
from rich.console import Console
from rich.segment import Segment, Segments
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]

from app.keeper.terminal_record import CAPACITY, read_tail
from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.pane_watch import Watcher
from tests.e2e.guest_programs import put_programs
from tests.e2e.sessions import World, store_of
from tests.e2e.tmux_cells import Cell, Replay, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.color import Color as RichColor
    from rich.style import Style

    from app.ui.pane import Pane
    from tests.e2e.tmux_cells import Color
    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

COLUMNS, ROWS = 100, 30
SHOWS_S = 90.0
"""Longest until a program shows something, in an emulated machine on a busy host."""

SAME_S = 30.0
PICTURES = os.environ.get("CLOCHE_PICTURES")
"""A folder to keep the screens in as SVG."""

TEXT: Final = "".join(f"line {n} of a text: caf\u00e9, \u6f22\u5b57\n" for n in range(1, 200))
CODE: Final = '''\
import os

class Greeter:
    """Says hello."""
    def greet(self, name: str, times: int = 3) -> list[str]:
        # a comment with \u6f22\u5b57 in it
        return [f"hello {name}" for _ in range(times) if name is not None]

print(Greeter().greet("world"), 0x1F, 1.5e3, True)
'''
COLOURS: Final = r"""
for a in 0 1 2 3 4 5 7 8 9 21 53 "1;3;4" "2;7" "4:3;58;5;9"; do
    printf '\033[%sm%s\033[m ' "$a" "$a"
done; echo
for c in $(seq 0 15); do printf '\033[38;5;%sm%2s\033[48;5;%sm  \033[m' $c $c $c; done; echo
for c in $(seq 16 9 255); do printf '\033[48;5;%sm\033[38;5;%sm%4s' $c $((271-c)) $c; done
printf '\033[m\n'
for c in $(seq 0 12 255); do
    printf '\033[48;2;%s;%s;90m \033[38;2;255;%s;0mx' $c $((255-c)) $c
done
printf '\033[m\n\033[44mto the end\033[K\033[m\n'
printf 'wide \346\274\242\345\255\227 e\314\201 \033[7mreverse \347\225\214\033[m\n'
printf '\033(0lqqqk\033(B\n\tstop\tstop\n'
"""


@dataclass(frozen=True, slots=True)
class Program:
    """One program, as somebody uses it."""

    name: str
    steps: str
    """What is typed: keys in <>, and in «» what must be shown before it goes on."""
    looks: int
    """How many different pairs of colours with attributes the page must show at least."""
    leave: str


PROGRAMS: Final = (
    Program(
        "bash",
        "PS1='\\[\\e[1;32m\\]$PWD\\[\\e[0;36m\\] \\$ \\[\\e[m\\]'<enter>«/workspace $»"
        "ls --color=always /<enter>«workspace»source colours.sh<enter>«stop»"
        "echo one thre two<ctrl+a><alt+f><alt+f><ctrl+t>e<ctrl+e> end<left><left><left><backspace>"
        "<ctrl+w>«eethre end»<ctrl+r>ls --c«reverse-i-search»<ctrl+g><ctrl+e><ctrl+u>"
        "echo 'a long line' " + "and more " * 14 + "<ctrl+a><right><right>XX«ecXXho»",
        40,
        "<ctrl+c>",
    ),
    Program(
        "vim",
        "tools/vim -u NONE -N code.py<enter>«Greeter»:set nu hls cursorline ruler bg=dark<enter>"
        ":syntax on<enter>«  1 »<down><down>wyypODone by hand <escape>:vsplit<enter>/name<enter>"
        "«/name»:4<enter>Vjj«VISUAL»",
        5,
        "<escape>:qa!<enter>",
    ),
    Program(
        "less",
        "less -N -S text.txt<enter>«line 28»/line 5<enter>«line 33»nn<down>G«END»b«line 142»"
        "?caf\u00e9<enter>",
        1,
        "q",
    ),
    Program("htop", "tools/htop -d 100<enter>«F10»<down><down>t«F5»", 6, "q"),
    Program(
        "tmux",
        'tools/tmux -u -f /dev/null new -s in<enter>«[in]»<ctrl+b>%<ctrl+b>"ls --color=always /'
        "usr<enter>«games»<ctrl+b><left>source colours.sh<enter>«stop»<ctrl+b>[<up><up>«/»",
        3,
        "q<ctrl+b>d«[detached»tools/tmux kill-server",
    ),
    Program("ink", "python3 tools/ink.py<enter>«57s»", 4, ""),
    Program(
        "textual",
        "PYTHONPATH=tools/python python3 tools/nested.py<enter>«Press»<tab><tab>«leave»"
        "<end>!«typed text!»",
        12,
        "<ctrl+q>",
    ),
)
STEP = re.compile(r"<([a-z+]+)>|«([^»]+)»|([^<«]+|<)")


@dataclass(frozen=True, slots=True)
class Stage:
    """A session with a shell in which all programs run, one after the other."""

    world: World
    session: str

    @property
    def record(self) -> bytes:
        """What the session printed since its terminal was last reset."""
        whole = read_tail(self.world.paths.session(self.session), CAPACITY)
        return whole[whole.rindex(b"\x1bc") :]

    @property
    def socket(self) -> Path:
        return self.world.paths.sockets(self.session) / "pane.sock"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, guest_image: ImageSet) -> Iterator[Stage]:
    root = tmp_path_factory.mktemp("programs")
    workspace = root / "workspace"
    workspace.mkdir()
    put_programs(workspace)
    (workspace / "text.txt").write_text(TEXT)
    (workspace / "code.py").write_text(CODE)
    (workspace / "colours.sh").write_text(COLOURS)
    world = World(root / "w", store_of(guest_image))
    try:
        answer = world.json("run", "shell", "--detach", "--workspace", str(workspace))
        world.wait_for(answer["session"], "state", "running")
        yield Stage(world, answer["session"])
    finally:
        world.close()


def cells_of(pane: Pane) -> Shown:
    """Return what a pane shows."""
    rows: list[list[Cell]] = []
    for y in range(pane.rows):
        strip = pane.strip(y)
        row: list[Cell] = []
        for text, style, _ in strip or ():
            for character in text:
                add(row, character, style)
        rows.append(row)
    at = pane.cursor
    return Shown(rows, None if at is None else (at.x, at.y))


def add(row: list[Cell], character: str, style: Style | None) -> None:
    width = cell_len(character)
    assert style is not None
    if width == 0:
        last = max(x for x, cell in enumerate(row) if cell.text)
        old = row[last]
        row[last] = Cell(old.text + character, old.foreground, old.background, old.attributes)
        return
    names = ("bold", "dim", "italic", "blink", "reverse", "conceal", "strike", "overline")
    found = {name for name in names if getattr(style, name)}
    if style.underline or style.underline2:
        found.add("underline")
    colours = color_of(style.color), color_of(style.bgcolor)
    row.append(Cell(character, *colours, frozenset(found)))
    row += [Cell("", *colours, frozenset(found))] * (width - 1)


def color_of(color: RichColor | None) -> Color:
    if color is None or color.type is ColorType.DEFAULT:
        return None
    if color.type is ColorType.TRUECOLOR:
        assert color.triplet is not None
        return color.triplet.red, color.triplet.green, color.triplet.blue
    assert color.type is ColorType.STANDARD
    return color.number


async def play(pane: Pane, watcher: Watcher, steps: str) -> None:
    """Type the steps of a program, each when what it waits for is shown."""
    for key, wanted, text in STEP.findall(steps):
        if key:
            pane.send_key(key, None)
        elif wanted:
            await until_shown(watcher, wanted)
        else:
            for character in text:
                pane.send_key(_character_to_key(character), character)


def at_prompt(pane: Pane, watcher: Watcher) -> bool:
    at = pane.cursor
    return at is not None and watcher.lines()[at.y].endswith("$")


async def until_shown(watcher: Watcher, wanted: str) -> None:
    try:
        await watcher.shows(wanted, SHOWS_S)
    except TimeoutError:
        page = "\n".join(watcher.lines())
        raise AssertionError(f"{wanted!r} was not shown:\n{page}") from None


async def until_same(pane: Pane, stage: Stage, folder: Path) -> Shown:
    """Compare until tmux shows the same of what was printed by then."""
    with Replay(folder, COLUMNS, ROWS) as replay:
        deadline = asyncio.get_running_loop().time() + SAME_S
        while True:
            printed = stage.record
            theirs = await asyncio.to_thread(replay.show, printed)
            ours = cells_of(pane)
            found = ours.differences(theirs)
            if not found and printed == stage.record:
                return ours
            late = asyncio.get_running_loop().time() > deadline
            assert not late, "\n".join([f"{len(found)} cells:", *found[:60]])


def keep_picture(pane: Pane, name: str) -> None:
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    for y in range(pane.rows):
        strip = pane.strip(y)
        assert strip is not None
        console.print(Segments([*strip, Segment("\n")]), end="")
    picture = console.export_svg(title=name)
    assert picture.count("<text") > 10
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        bare = re.sub(r"@font-face\s*\{.*?\}", "", picture, flags=re.S)
        (Path(PICTURES) / f"{name}.svg").write_text(bare)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
async def test_a_program_ends_on_the_same_screen_as_under_tmux(
    program: Program, stage: Stage, tmp_path: Path
) -> None:
    # The sixteen colours are left to the terminal, as in tmux, so they can be told apart.
    hub = PaneHub(cache=cache_folder(), native=True)
    pane = hub.open(program.name, stage.socket, columns=COLUMNS, rows=ROWS)
    watcher = Watcher(pane)
    pane.set_rate("focused")
    try:
        try:
            await watcher.enters("live", SHOWS_S)
        except TimeoutError:
            raise AssertionError(f"{pane.state}: {pane.message} {watcher.states}") from None
        await play(pane, watcher, "«$»<ctrl+u>PS1='\\$ '; printf '\\033c'<enter>«$»")
        await watcher.until(lambda: watcher.lines()[0] == "$", SHOWS_S)
        await play(pane, watcher, program.steps)
        shown = await until_same(pane, stage, tmp_path)
        looks = {(c.foreground, c.background, c.attributes) for row in shown.rows for c in row}
        assert len(looks) >= program.looks
        keep_picture(pane, program.name)
        await play(pane, watcher, f"{program.leave}<enter>«$»")
        await watcher.until(lambda: at_prompt(pane, watcher), SHOWS_S)
        assert not pane.modes.alternate
        await until_same(pane, stage, tmp_path)
    finally:
        await hub.close()
