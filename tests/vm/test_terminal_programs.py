"""Real programs on a real PTY through the engine: a shell, vim and less."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import termios
import time
from typing import TYPE_CHECKING, Self

import pytest

from tests.doubles.engines import engine, lines
from vm.terminal.screen import Mode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DEADLINE = 15.0


class Session:
    """A program on a PTY, its output in an engine, the engine's answers back to it."""

    def __init__(self, argv: list[str], folder: Path, columns: int = 80, rows: int = 24) -> None:
        self.terminal = engine(columns, rows)
        pid, self.fd = pty.fork()
        if pid == 0:
            # A test run in the background may ignore interrupts, and children inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(folder)
            env = {
                "TERM": "xterm-256color",
                "PATH": "/usr/bin:/bin",
                "PS1": "$ ",
                "LANG": "C.UTF-8",
                "HOME": str(folder),
            }
            os.execvpe(argv[0], argv, env)
        self.pid = pid
        self.resize(columns, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def resize(self, columns: int, rows: int) -> None:
        self.terminal.resize(columns, rows)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, *keys: str) -> None:
        for key in keys:
            character = key if len(key) == 1 else None
            os.write(self.fd, self.terminal.encode_key(key, character))

    def text(self, words: str) -> None:
        self.type(*("space" if c == " " else c for c in words))

    def until(self, condition: Callable[[list[str]], bool]) -> list[str]:
        end = time.monotonic() + DEADLINE
        while not condition(shown := lines(self.terminal)):
            left = end - time.monotonic()
            assert left > 0, "\n".join(shown)
            if select.select([self.fd], [], [], left)[0]:
                self.terminal.feed(os.read(self.fd, 65536))
                os.write(self.fd, self.terminal.take_replies())
        return shown


def last(shown: list[str]) -> str:
    """The last line that is not empty."""
    return next((line for line in reversed(shown) if line), "")


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def test_a_shell_takes_keys_and_interrupts(tmp_path: Path) -> None:
    with Session([needs("bash"), "--norc", "--noprofile"], tmp_path) as shell:
        shell.until(lambda shown: shown[0] == "$")
        shell.text("echo one two")
        shell.type("enter")
        assert shell.until(lambda shown: "one two" in shown)[0] == "$ echo one two"
        # What a child prints itself says that it is in the foreground, where ^C goes.
        shell.text("sh -c 'echo up; exec sleep 100'")
        shell.type("enter")
        shell.until(lambda shown: "up" in shown)
        shell.type("ctrl+c")
        shell.until(lambda shown: any(line.endswith("^C") for line in shown) and last(shown) == "$")
        shell.type("up", "up", "enter")
        shell.until(lambda shown: shown.count("one two") == 2)


def test_a_shell_knows_its_size(tmp_path: Path) -> None:
    with Session([needs("bash"), "--norc", "--noprofile"], tmp_path) as shell:
        shell.until(lambda shown: shown[0] == "$")
        shell.resize(61, 17)
        shell.text("stty size")
        shell.type("enter")
        shell.until(lambda shown: "17 61" in shown)


def test_pasting_into_a_shell_runs_nothing_by_itself(tmp_path: Path) -> None:
    with Session([needs("bash"), "--norc", "--noprofile"], tmp_path) as shell:
        shell.until(lambda shown: shown[0] == "$")
        assert shell.terminal.modes() & Mode.BRACKETED_PASTE
        os.write(shell.fd, shell.terminal.encode_paste("echo a\necho \x1b[201~b\n"))
        shell.until(lambda shown: any("201~b" in line for line in shown))
        assert "a" not in lines(shell.terminal)
        shell.type("enter")
        shell.until(lambda shown: "a" in shown)


def test_vim_edits_a_file(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("one\ntwo\nthree\n")
    with Session([needs("vim"), "-u", "NONE", "-N", str(file)], tmp_path) as vim:
        vim.until(lambda shown: shown[:3] == ["one", "two", "three"] and shown[3] == "~")
        assert vim.terminal.modes() & Mode.ALTERNATE
        vim.type("down", "A", " ", "+", "escape")
        vim.until(lambda shown: shown[1] == "two +")
        vim.resize(100, 30)
        vim.until(lambda shown: len(shown) == 30 and shown[28] == "~")
        vim.type("i", "é", "漢", "escape", ":", "w", "q", "enter")
        vim.until(lambda _: not vim.terminal.modes() & Mode.ALTERNATE)
    assert file.read_text() == "one\ntwo é漢+\nthree\n"


def test_less_scrolls_and_leaves_the_screen_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {i}\n" for i in range(1, 200)))
    with Session([needs("bash"), "--norc", "--noprofile"], tmp_path) as shell:
        shell.until(lambda shown: shown[0] == "$")
        shell.text(needs("less") + " text")
        shell.type("enter")
        shell.until(lambda shown: shown[0] == "line 1")
        shell.type("space")
        shell.until(lambda shown: shown[0] == "line 24")
        shell.type("pageup", "down", "down")
        shell.until(lambda shown: shown[0] == "line 3")
        shell.type("G")
        shell.until(lambda shown: shown[22] == "line 199")
        shell.type("q")
        assert shell.until(lambda shown: shown[1] == "$")[0].endswith("less text")
