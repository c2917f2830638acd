"""What guests print: six classes of output, and repaints of a page, the same bytes on every run.

`sample(name, size)` returns a stream of one class. `repaints(name, columns, rows, count)` returns
steps that each change the page once, for measurements at a frame rate.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED = 20_261
WORDS = ("agent", "branch", "cache", "decide", "error", "file", "grid", "hunk", "image", "row")
SCRIPTS = (
    *("héllo", "naïve", "Ünïcödé", "日本語", "漢字かな", "한국어", "中文字符", "Привет", "مرحبا"),
    *("שלום", "नमस्ते", "ไทย", "😀", "🚀", "👍\U0001f3fd", "👨\u200d👩\u200d👧\u200d👦", "🇺🇸", "🇯🇵"),
    *(
        "🏳\ufe0f\u200d🌈",
        "❤\ufe0f",
        "e\u0301\u0323",
        "│─┌┐└┘├┤",
        "█▓▒░",
        "✓✗→⇒∀∂",
        "ascii",
        "words",
    ),
)
LEVELS = ((32, "INFO"), (33, "WARN"), (31, "ERROR"), (36, "DEBUG"))
SPINNER = "✶✸✹✺✹✸"


def lines(_seed: random.Random) -> Iterator[bytes]:
    """Yield what `seq` prints."""
    for number in itertools.count(1):
        yield b"%d\r\n" % number


def truecolor(seed: random.Random, columns: int = 120) -> Iterator[bytes]:
    """Yield lines with a colour for each word: the dearest rows there are."""
    while True:
        row, width = bytearray(), 0
        while width < columns - 10:
            word = seed.choice(WORDS)
            row += b"\x1b[38;2;%d;%d;%dm" % tuple(seed.randrange(256) for _ in range(3))
            if seed.random() < 0.3:
                row += b"\x1b[48;2;%d;%d;%dm" % tuple(seed.randrange(256) for _ in range(3))
            if seed.random() < 0.2:
                row += b"\x1b[1;3;4m"
            row += word.encode() + b" "
            width += len(word) + 1
            if seed.random() < 0.3:
                row += b"\x1b[0m"
        yield bytes(row) + b"\x1b[0m\r\n"


def _process(seed: random.Random, y: int, columns: int) -> bytes:
    """One line of a process viewer, addressed, in five styles; cut so that it never wraps."""
    place = b"\x1b[%d;1H" % y
    head = b"\x1b[38;5;%dm%5d\x1b[39m \x1b[1m%-9s\x1b[0m 20 0 \x1b[36m%5dM\x1b[0m %5d " % (
        seed.randrange(256),
        seed.randrange(99_999),
        seed.choice([b"root", b"www-data", b"nobody"]),
        seed.randrange(9999),
        seed.randrange(9999),
    )
    tail = b"\x1b[32mS\x1b[0m %4.1f %4.1f \x1b[38;5;%dm" % (
        seed.random() * 100,
        seed.random() * 100,
        seed.randrange(256),
    )
    command = b"%2d:%02d python3 -m http.server %d --bind 127.0.0.1 --directory /workspace/site" % (
        seed.randrange(60),
        seed.randrange(60),
        seed.randrange(65_535),
    )
    return place + head + tail + command[: max(0, columns - 50)] + b"\x1b[0m\x1b[K"


def _meter(seed: random.Random, y: int) -> bytes:
    used = seed.randrange(40)
    bars = b"|" * used, b"|" * (used // 3), b" " * (56 - used - used // 3), used * 2.5
    return (
        b"\x1b[%d;1H\x1b[1;36m%3d\x1b[39m[\x1b[32m%s\x1b[31m%s\x1b[90m%s%5.1f%%\x1b[0m]\x1b[K"
        % (
            y,
            y,
            *bars,
        )
    )


def full_screen(seed: random.Random, columns: int = 120, rows: int = 40) -> Iterator[bytes]:
    """Yield repaints of a process viewer: every row, no scrolling."""
    while True:
        page = [_meter(seed, y) for y in range(1, 6)]
        page.append(b"\x1b[6;1H\x1b[30;42m  PID USER  PRI NI VIRT RES S CPU% MEM%\x1b[K\x1b[0m")
        page += [_process(seed, y, columns) for y in range(7, rows + 1)]
        yield b"\x1b[?2026h\x1b[H" + b"".join(page) + b"\x1b[?2026l"


def scripts(seed: random.Random) -> Iterator[bytes]:
    """Yield lines of wide characters, clusters, combining marks and right-to-left text."""
    while True:
        words: list[str] = []
        while sum(map(len, words)) < 70:
            words.append(seed.choice(SCRIPTS))
        yield " ".join(words).encode() + b"\r\n"


def agent(seed: random.Random, columns: int = 120) -> Iterator[bytes]:
    """Yield what an agent's prompt prints: erase the block upwards and write it again."""
    inside, height = max(16, columns - 4), 14
    grey, plain, edge = "\x1b[38;2;153;153;153m", "\x1b[39m", "\x1b[2m│\x1b[22m"
    typed = f"{edge} > {'what is being typed here'.ljust(inside - 3)}{edge}\r\n"
    top, bottom = (f"\x1b[2m{a}{'─' * inside}{b}\x1b[22m\r\n" for a, b in ("╭╮", "╰╯"))
    box = top + typed * (height - 5) + bottom
    erase = "\x1b[2K" + "\x1b[1A\x1b[2K" * (height - 1) + "\x1b[G"
    for number in itertools.count():
        told = ""
        if not number % 5:
            count = seed.randrange(900)
            told = (
                f"{grey}⏺{plain} Read(src/file_{number}.py)\r\n  ⎿ \x1b[1m{count}\x1b[22m lines\r\n"
            )
        sign = SPINNER[number % len(SPINNER)]
        spent = f"({number // 10}s · {number * 7} tokens)"
        state = f"\x1b[38;2;215;119;87m{sign} Thinking… {grey}{spent}{plain}"
        foot = f"  {grey}? for keys{plain}"
        step = f"\x1b[?2026h{erase}{told}{state}\r\n\r\n{box}{foot}\x1b[?2026l"
        yield step.encode()


def log(seed: random.Random) -> Iterator[bytes]:
    """Yield lines of a coloured log."""
    for number in itertools.count():
        colour, level = seed.choice(LEVELS)
        text = " ".join(seed.choice(WORDS) for _ in range(9))
        yield (
            f"\x1b[2m12:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}\x1b[22m "
            f"\x1b[{colour}m{level:5}\x1b[0m \x1b[1mservice.worker\x1b[0m {text} "
            f"\x1b[35mid\x1b[0m={seed.randrange(10**6)}\r\n"
        ).encode()


CLASSES: dict[str, Callable[[random.Random], Iterator[bytes]]] = {
    "a_lines": lines,
    "b_truecolor": truecolor,
    "c_full_screen": full_screen,
    "d_scripts": scripts,
    "e_agent": agent,
    "f_log": log,
}


def sample(name: str, size: int) -> bytes:
    """Return at least `size` bytes of a class, ending between two of its steps."""
    out = bytearray()
    for step in CLASSES[name](random.Random(SEED)):
        out += step
        if len(out) >= size:
            return bytes(out)
    raise AssertionError("the classes never end")


def _spinner(columns: int, rows: int) -> Iterator[bytes]:
    for number in itertools.count():
        sign = SPINNER[number % len(SPINNER)]
        place = f"\x1b[{max(1, rows - 6)};3H\x1b[38;2;215;119;87m"
        yield f"{place}{sign} thinking {number}s\x1b[0m".encode()


def _scroll(steps: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        yield b"".join(itertools.islice(steps, 10))


REPAINTS: dict[str, Callable[[random.Random, int, int], Iterator[bytes]]] = {
    "full_screen": lambda seed, columns, rows: full_screen(seed, columns, rows),
    "agent": lambda seed, columns, rows: agent(seed, columns),
    "plain_scroll": lambda seed, columns, rows: _scroll(
        b"line %d of some plain output, nothing else\r\n" % number for number in itertools.count()
    ),
    "truecolor": lambda seed, columns, rows: _scroll(truecolor(seed, columns)),
    "spinner": lambda seed, columns, rows: _spinner(columns, rows),
}


def repaints(name: str, columns: int, rows: int, count: int) -> list[bytes]:
    """Return `count` steps that each change a page of that size once."""
    return list(itertools.islice(REPAINTS[name](random.Random(SEED), columns, rows), count))
