"""Programs that the guest image lacks, for the tests: a folder that is put into a workspace.

vim with its colours, htop and tmux come from the distribution's packages (unpacked only, with their
own loader and libraries, so that host and guest may differ), Textual from this environment. Kept in
the user's cache under a key of what they are made of.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from importlib.metadata import distribution, requires, version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from tests.e2e.vmlab import PATHS
from vm.image.packages import host_sources, network_options

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = "tools"
"""Where the programs lie in a workspace."""

PACKAGES: Final = ("htop", "tmux", "vim")
FETCH_S: Final = 300
RUNTIME = re.compile(
    r"usr/share/vim/vim\d+/((filetype|ftoff|scripts|defaults)\.vim|syntax/(syntax|synload|syncolor|"
    r"nosyntax|python)\.vim|autoload/dist/.*)\Z"
)
"""What vim reads to colour a Python text."""

LIBRARY = re.compile(r"(usr/)?lib(64)?/(x86_64-linux-gnu/)?[^/]+\.so(\.[0-9.]+)?\Z")
PROGRAMS: Final = {"usr/bin/htop": "htop", "usr/bin/tmux": "tmux", "usr/bin/vim.basic": "vim"}
LOADER: Final = "ld-linux-x86-64.so.2"

WRAPPER: Final = """\
#!/bin/sh
here=/workspace/tools
export VIMRUNTIME=$here/runtime
exec $here/lib/{loader} --library-path $here/lib --argv0 {name} $here/bin/{name} "$@"
"""

NESTED: Final = '''\
"""A small Textual program, drawn without anything that depends on time."""
from textual.app import App
from textual.containers import Horizontal
from textual.widgets import Button, DataTable, Footer, Header, Input, ProgressBar, Static, Tree


class Nested(App):
    TITLE = "nested"
    CSS = """
    #left { width: 34; border: round $accent; }
    DataTable { border: heavy magenta; height: 9; }
    Static { background: $boost; color: ansi_bright_yellow; text-style: bold italic; padding: 1; }
    """
    BINDINGS = [("q", "quit", "leave"), ("p", "press", "press")]

    def compose(self):
        yield Header()
        with Horizontal():
            yield Tree("worktree \\u6f22\\u5b57", id="left")
            table = DataTable()
            table.add_columns("name", "lines", "state")
            for number in range(5):
                table.add_row(f"file{number}.py", str(number * 37), "[green]kept[/]")
            yield table
        yield Static("colours [on blue] and [/] [strike]marks[/] [u]of[/u] [reverse]all[/] kinds")
        yield Input(value="typed text", select_on_focus=False)
        bar = ProgressBar(total=100, show_eta=False)
        bar.update(progress=64)
        yield bar
        yield Button("Press", variant="success")
        yield Footer()

    def on_mount(self):
        root = self.query_one(Tree).root
        for name in ("app", "tests", "docs"):
            root.add(name).add_leaf("inner.py")
        root.expand()
        self.query_one(Input).cursor_blink = False


Nested().run()
'''


INK: Final = r'''
"""Draws as programs on Ink do: erase the lines of before, draw all of them again, many times."""
import sys

def frame(step):
    done = "\u2588" * (step % 40)
    mark = "\u00b7\u2722\u2733\u2736\u273b\u273d"[step % 6]
    orange, end = "\x1b[38;2;215;119;87m", "\x1b[39m"
    count = f"\x1b[2m({step}s \u00b7 \u2191 {step * 31} tokens)\x1b[22m"
    curly = "\x1b[4:3m\x1b[58:2::255:0:0mcurly\x1b[59m\x1b[24m"
    link = f"\x1b]8;;https://example.org/{step}\x1b\\link {step}\x1b]8;;\x1b\\"
    return [
        f"{orange}\u256d" + "\u2500" * 60 + f"\u256e{end}",
        f"{orange}\u2502{end} \x1b[1m{mark} Thinking\u2026\x1b[22m {count}",
        f"  \x1b[48;5;22m\x1b[38;5;157m+ added {step} \u6f22\u5b57{end}\x1b[49m",
        f"  \x1b[9m\x1b[31m- removed{end}\x1b[29m {curly}",
        f"  {link} \x1b[36m{done}{end}",
        "\x1b[7m > \x1b[27m\x1b[3mtype here\x1b[23m",
    ][: 3 + step % 4]

drawn = 0
for step in range(58):
    lines = frame(step)
    erase = "\x1b[2K\x1b[1A" * (drawn - 1) + "\x1b[2K\x1b[G" if drawn else ""
    sys.stdout.write("\x1b[?2026h\x1b[?25l" + erase + "\n".join(lines) + "\x1b[?2026l")
    sys.stdout.flush()
    drawn = len(lines)
print("\x1b[?25h")
'''


def put_programs(workspace: Path) -> None:
    """Put all programs into a workspace, under `tools`."""
    shutil.copytree(_programs(), workspace / FOLDER, symlinks=True)


def _programs() -> Path:
    folder = PATHS.cache / "tests" / f"programs-{_key()}"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            _fetch(fresh)
            _take_textual(fresh / "python")
            (fresh / "nested.py").write_text(NESTED)
            (fresh / "ink.py").write_text(INK)
            os.rename(fresh, folder)
    return folder


def _key() -> str:
    versions = [f"{name} {version(name)}" for name in _closure("textual")]
    parts = [Path(__file__).read_text(), host_sources().suite, *versions]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _fetch(folder: Path) -> None:
    """Unpack the packages and take the programs, their libraries and vim's colours."""
    for name in ("bin", "lib", "runtime"):
        (folder / name).mkdir()
    network = folder / "network.conf"
    network.write_text(network_options())
    sources = host_sources()
    options = ["--format=tar", "--architectures=amd64", "--variant=extract", f"--aptopt={network}"]
    command = [
        "mmdebstrap", "--quiet", *options, f"--include={','.join(PACKAGES)}", sources.suite, "-",
        *sources.lines,
    ]  # fmt: skip
    packed = folder / "packages.tar"
    with packed.open("wb") as out:
        subprocess.run(command, stdout=out, check=True, timeout=FETCH_S)
    with tarfile.open(packed) as archive:
        _unpack(archive, folder)
    packed.unlink()
    network.unlink()
    for name in PROGRAMS.values():
        wrapper = folder / name
        wrapper.write_text(WRAPPER.format(loader=LOADER, name=name))
        wrapper.chmod(0o755)


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    for member in archive:
        name = member.name.removeprefix("./")
        if name in PROGRAMS:
            target = folder / "bin" / PROGRAMS[name]
        elif LIBRARY.match(name):
            target = folder / "lib" / PurePosixPath(name).name
        elif RUNTIME.match(name):
            target = folder / "runtime" / name.split("/", 4)[4]
        else:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member) if member.isreg() else None
        if content is not None:
            target.write_bytes(content.read())
            target.chmod(0o755)
        elif member.issym() and PurePosixPath(member.linkname).name != target.name:
            target.unlink(missing_ok=True)
            target.symlink_to(PurePosixPath(member.linkname).name)


def _take_textual(folder: Path) -> None:
    """Copy Textual and what it needs, all of it pure Python."""
    for name in _closure("textual"):
        for file in distribution(name).files or ():
            if file.parts[0] == ".." or "__pycache__" in file.parts:
                continue
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(str(file.locate())), target)


def _closure(name: str) -> list[str]:
    found: dict[str, None] = {}

    def walk(name: str) -> Iterator[None]:
        if name in found:
            return
        found[name] = None
        for requirement in requires(name) or ():
            if "extra ==" not in requirement:
                match = re.match(r"[A-Za-z0-9_.-]+", requirement)
                assert match is not None
                yield from walk(match[0])

    list(walk(name))
    return sorted(found)
