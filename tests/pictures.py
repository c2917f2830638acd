"""Make the README's pictures from the running program: real machines, a real review.

    python -m tests.pictures docs/images

Needs a built guest image. Writes one SVG a screen, without references to fonts elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.paths import Paths
from app.services.local import LocalFleet
from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen
from app.ui.live_terminals import LiveTerminals
from app.ui.review_screen import ReviewScreen
from tests.e2e.sessions import World
from themes.palette import DEFAULT, builtin_palettes

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

    from widgets.terminal_feed import PaneFeed

SIZE: Final = (132, 34)
WIDE: Final = (164, 42)
SESSIONS: Final = 4
WAIT_S: Final = 120.0

FIXER: Final = """\
import pathlib, time
def say(text, end="\\n"):
    print(text, end=end, flush=True)
    time.sleep(0.4)
say("\\033[1;35m\u273b fixer\\033[0m  mend the tokenizer for unclosed quotes\\n")
say("  \\033[36mread\\033[0m   src/tokenizer.py, src/errors.py")
path = pathlib.Path("src/tokenizer.py")
text = path.read_text()
head, body = text.split("\\n\\n", 1)
text = head + "\\n\\nfrom errors import UnclosedQuote\\n\\n" + body
text = text.replace("        tokens = []", "        tokens: list[str] = []")
old = "        self.at = len(self.text) if end < 0 else end + 1\\n"
new = "        if end < 0:\\n            raise UnclosedQuote(start)\\n        self.at = end + 1\\n"
path.write_text(text.replace(old, new))
say("  \\033[33medit\\033[0m   src/tokenizer.py")
pathlib.Path("tests").mkdir()
pathlib.Path("tests/test_tokenizer.py").write_text(
    "import pytest\\n\\nfrom errors import UnclosedQuote\\nfrom tokenizer import Tokenizer\\n\\n\\n"
    "def test_unclosed_quote():\\n    with pytest.raises(UnclosedQuote):\\n"
    "        Tokenizer(\\"'open\\").scan()\\n")
say("  \\033[32madd\\033[0m    tests/test_tokenizer.py")
pathlib.Path("src/legacy.py").unlink()
say("  \\033[31mdelete\\033[0m src/legacy.py")
script = pathlib.Path("build.sh")
script.write_text(script.read_text() + "python3 -m pytest tests\\n")
say("  \\033[33medit\\033[0m   build.sh")
say("\\n\\033[32mdone\\033[0m: unclosed quotes raise UnclosedQuote")
"""
"""An agent for the picture: changes what a reviewer would like to look at."""

SCRIBE: Final = """\
import time
def say(text=""):
    print(text, flush=True)
    time.sleep(0.3)
say("\\033[1;34m\u25c6 scribe\\033[0m  write the guide for quoted text\\n")
for done, step in enumerate(("outline", "quotes.md", "errors.md", "index.md"), 1):
    bar = "\u2501" * (6 * done)
    say(f"  \\033[32m\u2713\\033[0m {step:<10} \\033[36m{bar:<24}\\033[0m {25 * done} %")
say()
say("  \\033[2mthree pages, 212 lines, every link checked\\033[0m\\n")
say("\\033[33m?\\033[0m Shall the pages go into docs/ or into site/?")
input("  > ")
"""
"""An agent for the picture: writes, and ends with a question."""

LOOK: Final = "clear; grep -n --color=always -r token src; git log --oneline; ls -l --color src"
"""What somebody looks at in a shell of their own."""

PROJECT: Final = {
    "src/tokenizer.py": '''\
"""Split a source text into tokens."""

QUOTES = {'"', "'"}


class Tokenizer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def scan(self) -> list[str]:
        tokens = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in QUOTES:
                tokens.append(self.string(character))
            else:
                self.at += 1
        return tokens

    def string(self, quote: str) -> str:
        start = self.at + 1
        end = self.text.find(quote, start)
        self.at = len(self.text) if end < 0 else end + 1
        return self.text[start:end]
''',
    "src/errors.py": "class UnclosedQuote(ValueError):\n    pass\n",
    "src/legacy.py": "def scan_old(text):\n    return text.split()\n",
    "src/util.py": "def first(items):\n    return items[0]\n",
    "build.sh": "#!/bin/sh\npython3 -m compileall src\n",
    "README.md": "# parser\n\nReads quoted text.\n",
}


def make_project(folder: Path) -> Path:
    """Write a small project and return its folder."""
    for name, text in PROJECT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=dev", "-c", "user.email=dev@host.example"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    return folder


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Let the program work until `condition` holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while not condition():
        assert loop.time() < deadline, "the program did not get there"
        await pilot.pause(0.1)


def save(app: ClocheApp, path: Path) -> None:
    """Write what the screen shows, without the fonts that Textual would fetch from elsewhere."""
    picture = re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title="Cloche"), flags=re.S)
    path.write_text(picture)


async def picture_review(world: World, project: Path, folder: Path) -> None:
    """Show a review with decisions in it."""
    palette = builtin_palettes()[DEFAULT]
    app = ClocheApp(project, LocalFleet(world.paths), LiveTerminals(world.paths, palette))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(app.sessions) == SESSIONS)
        await until(pilot, lambda: any(one.changes.files > 8 for one in app.sessions))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        await until(pilot, lambda: screen.changes is not None and screen.loaded is not None)
        while screen.path != "src/tokenizer.py":
            await pilot.press("right_curly_bracket")
            await pilot.pause(0.2)
        for key in ("space", "x"):
            await pilot.press(key)
            await pilot.pause(1)
        await pilot.press("left_square_bracket")
        await pilot.pause(1)
        save(app, folder / "review.svg")


def fleet_of(app: ClocheApp) -> FleetScreen:
    """Return the first screen."""
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


def feed_of(app: ClocheApp, name: str) -> PaneFeed | None:
    """Return what is behind the pane of a session."""
    screen = fleet_of(app)
    found = next((info.id for info in app.sessions if info.name == name), "")
    slot = screen.slot_of(found)
    return None if slot is None else slot.feed


def shows(app: ClocheApp, name: str, text: str) -> bool:
    """Tell whether a session's pane shows a text."""
    feed = feed_of(app, name)
    strips = [] if feed is None else [feed.strip(y) for y in range(feed.rows)]
    return any(strip is not None and text in strip.text for strip in strips)


async def picture_terminals(world: World, project: Path, folder: Path) -> None:
    """Show four agents side by side, then a search in what one of them showed."""
    palette = builtin_palettes()[DEFAULT]
    app = ClocheApp(project, LocalFleet(world.paths), LiveTerminals(world.paths, palette))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: len(app.sessions) == SESSIONS)
        await pilot.press("plus")
        await until(pilot, lambda: shows(app, "scribe", "Shall the pages"))
        await until(pilot, lambda: shows(app, "try-it", "$"))
        names = [info.name for info in fleet_of(app).sessions]
        await pilot.press(str(names.index("try-it") + 1))
        feed = feed_of(app, "try-it")
        assert feed is not None
        feed.send_paste(LOOK)
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "try-it", "util.py"))
        await until(pilot, lambda: all(one.agent_state != "working" for one in app.sessions))
        save(app, folder / "grid.svg")
        await pilot.resize_terminal(*SIZE)
        await pilot.press("ctrl+g", "z", "ctrl+g", "f", *"token")
        await until(pilot, lambda: feed.view.matches > 1 and not feed.view.searching)
        save(app, folder / "copy-mode.svg")


def main(folder: Path) -> None:
    """Start sessions of its own, take the pictures, and end what was started."""
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name) / "w", Paths.from_environment().store)
        os.environ.update(world.environment, TERM="xterm-256color", COLORTERM="truecolor")
        project = make_project(Path(name) / "parser")
        try:
            world.paths.config.mkdir(parents=True)
            programs = {"fixer": FIXER, "scribe": SCRIBE}
            agents = {"agents": {n: {"command": ["python3", "-c", p]} for n, p in programs.items()}}
            (world.paths.config / "config.yaml").write_text(json.dumps(agents))
            fixer = ("run", "fixer", "--detach", "--workspace", str(project))
            world.wait_for(world.json(*fixer)["session"], "agent_state", "done")
            shell = ("run", "shell", "--detach", "--name", "try-it", "--workspace", str(project))
            world.wait_for(world.json(*shell)["session"], "state", "running")
            world.json("run", "demo", "--detach", "--workspace", str(project))
            scribe = ("run", "scribe", "--detach", "--name", "scribe", "--workspace", str(project))
            world.json(*scribe)
            asyncio.run(picture_terminals(world, project, folder))
            asyncio.run(picture_review(world, project, folder))
        finally:
            world.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    main(target)
