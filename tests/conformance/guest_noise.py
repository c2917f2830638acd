"""Hostile and damaged output of a guest, from a seeded source of random numbers.

Sequences of every kind with awkward numbers, texts of every width, strings with and without an end,
and pieces of what real programs printed (`streams/`), changed here and there.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

STREAMS = Path(__file__).with_name("streams")

NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 19, 20, 21, 23, 24, 79, 80, 81, 127, 255, 999, 32_767, 65_535,
           65_536, 2_147_483_647, 4_294_967_295, 99_999_999_999)  # fmt: skip
"""Numbers at which something ends; others are drawn small."""

PRIVATE = (1, 3, 4, 5, 6, 7, 9, 12, 25, 40, 45, 47, 66, 67, 69, 80, 1000, 1002, 1003, 1004, 1005,
           1006, 1007, 1015, 1016, 1035, 1036, 1039, 1045, 1047, 1048, 1049, 2004, 2026, 2027, 2031,
           2048, 5522)  # fmt: skip

TEXTS = ("plain", "word word", "\r\n", "\n", "\r", "\t", "\b", "漢字", "ｱ", "Ａ",
         "👍", "👍🏽", "🇺🇸", "🇺", "👨\u200d👩\u200d👧\u200d👦", "❤\ufe0f",
         "☺\ufe0e", "e\u0301", "e\u0301\u0323",
         "\u200d", "\u200b", "\u202e", "\ufeff", "नि", "க்ஷ", "ﷺ", "𒐫", "\u115f", "가",
         "\u1100\u1161", "\ufffd",
         "ｶﾞ", "a\u0300\u0301\u0302\u0303", "\U000e0041", "\u2028", "\x7f", "\xa0", "─│┌", "█▓░",
         "\ue0b0", "\U0001fae8", "#\ufe0f\u20e3", "\u0e33", "🏴\U000e0067\U000e007f")  # fmt: skip

STRING_ENDS = (b"\x07", b"\x1b\\", b"\x18", b"\x1b", b"", b"\x9c")

OSC = (b"0;%s", b"1;%s", b"2;%s", b"4;%d;rgb:%d/%d/%d", b"4;%d;?", b"7;file://%s", b"8;;http://%s",
       b"8;id=%d;%s", b"8;;", b"9;%s", b"9;4;%d;%d", b"10;?", b"10;#%d", b"11;?", b"12;%s",
       b"21;%s", b"22;%s", b"52;c;%s", b"52;%s;?", b"66;s=%d;%s", b"99;i=%d;%s", b"104;%d",
       b"104", b"110",
       b"133;%s", b"133;A;aid=%d", b"133;D;%d", b"777;notify;%s;%s", b"1337;%s", b"5522;%s",
       b"%d;%s", b"%s")  # fmt: skip

DCS = (b"$q%s", b"$qm", b"$qr", b"+q%s", b"+q436F", b"%d;%dq#%d;2;%d;0;0!%d~-", b"1000p%s", b"%s",
       b"=%ds", b"%d|%s")  # fmt: skip

APC = (b"Ga=t,f=32,s=%d,v=%d,i=%d;%s", b"Ga=q,i=%d;AAAA", b"Ga=p,i=%d,c=%d,r=%d",
       b"Ga=d,d=a", b"Ga=T,t=f;%s", b"Ga=T,t=s;%s", b"G%s", b"%s")  # fmt: skip


@functools.cache
def recorded() -> tuple[bytes, ...]:
    """What real programs printed: vim, less, tmux and a Textual application."""
    return tuple(path.read_bytes() for path in sorted(STREAMS.glob("*.bin")))


def number(seed: random.Random) -> int:
    """A number, often one at which something ends."""
    return seed.choice(NUMBERS) if seed.random() < 0.25 else seed.randrange(0, 130)


def csi(seed: random.Random) -> bytes:
    """A control sequence: known finals with likely forms, and every other one."""
    chance = seed.random()
    if chance < 0.2:
        modes = b";".join(b"%d" % seed.choice(PRIVATE) for _ in range(seed.randrange(1, 4)))
        return b"\x1b[?" + modes + seed.choice((b"h", b"l", b"h", b"l", b"s", b"r", b"$p"))
    if chance < 0.35:
        return b"\x1b[" + _style(seed) + b"m"
    count = seed.choice((0, 1, 1, 2, 2, 3, 6, 40))
    separator = b":" if seed.random() < 0.05 else b";"
    numbers = separator.join(
        b"" if seed.random() < 0.2 else b"%d" % number(seed) for _ in range(count)
    )
    if chance < 0.85:
        return b"\x1b[" + numbers + seed.choice(_letters(b"@ABCDEFGHIJKLMPSTXZ`abdefgrsu"))
    prefix = seed.choice((b"", b"?", b">", b"<", b"="))
    middle = seed.choice((b"", b" ", b"!", b'"', b"$", b"'", b"*", b"#", b"&"))
    return b"\x1b[" + prefix + numbers + middle + bytes([seed.randrange(0x40, 0x7F)])


@functools.cache
def _letters(data: bytes) -> tuple[bytes, ...]:
    return tuple(bytes([letter]) for letter in data)


def _style(seed: random.Random) -> bytes:
    colour = (
        b"38;5;%d",
        b"48;5;%d",
        b"38;2;%d;%d;%d",
        b"48:2::%d:%d:%d",
        b"58:5:%d",
        b"4:%d",
        b"%d",
    )
    parts = (_filled(seed, seed.choice(colour)) for _ in range(seed.randrange(1, 4)))
    return b";".join(parts)


def _filled(seed: random.Random, form: bytes) -> bytes:
    """Fill a form's numbers and texts in."""
    while b"%" in form:
        at = form.index(b"%")
        value = b"%d" % number(seed) if form[at + 1 : at + 2] == b"d" else _word(seed)
        form = form[:at] + value.replace(b"%", b"_") + form[at + 2 :]
    return form


def _word(seed: random.Random) -> bytes:
    kind = seed.random()
    if kind < 0.5:
        return seed.choice(("", "a", "name", "aGVsbG8=", "/tmp", "?", "é漢", "x" * 300)).encode()
    if kind < 0.9:
        return bytes(seed.randrange(0x20, 0x7F) for _ in range(seed.randrange(0, 40)))
    return seed.randbytes(seed.randrange(0, 60)) * seed.choice((1, 1, 100))


def string(seed: random.Random) -> bytes:
    """An OSC, DCS, APC, PM or SOS, ended or not."""
    start, forms = seed.choice(
        ((b"\x1b]", OSC), (b"\x1b]", OSC), (b"\x1bP", DCS), (b"\x1b_", APC), (b"\x1b^", APC),
         (b"\x1bX", APC))
    )  # fmt: skip
    return start + _filled(seed, seed.choice(forms)) + seed.choice(STRING_ENDS)


def escape(seed: random.Random) -> bytes:
    """An escape sequence or a lone control."""
    if seed.random() < 0.3:
        return bytes([seed.randrange(0, 0x20)])
    return b"\x1b" + seed.choice(
        (b"7", b"8", b"c", b"D", b"E", b"H", b"M", b"N", b"O", b"Z", b"=", b">", b"#8", b"(0",
         b"(B", b")0", b"*0", b"n", b"o", b"|", b"[!p", bytes([seed.randrange(0x20, 0x7F)]))
    )  # fmt: skip


def text(seed: random.Random) -> bytes:
    """Characters of one or several kinds, some many times."""
    if seed.random() < 0.15:
        return chr(seed.choice((*range(0x20, 0xD7FF, 97), *range(0xE000, 0x1FFFF, 89)))).encode()
    found = "".join(seed.choice(TEXTS) for _ in range(seed.randrange(1, 6)))
    return found.encode() * seed.choice((1, 1, 1, 3, 30))


def damaged(seed: random.Random) -> bytes:
    """A piece of a real program's output with some bytes changed, lost or doubled."""
    source = seed.choice(recorded())
    at = seed.randrange(len(source))
    data = bytearray(source[at : at + seed.randrange(1, 1500)])
    for _ in range(seed.randrange(0, 6)):
        where = seed.randrange(len(data))
        what = seed.random()
        if what < 0.4:
            data[where] = seed.randrange(256)
        elif what < 0.7:
            del data[where : where + seed.randrange(1, 5)]
        else:
            data[where:where] = data[where : where + seed.randrange(1, 40)]
        if not data:
            break
    return bytes(data)


def stream(seed: random.Random, size: int) -> bytes:
    """About `size` bytes of everything, perhaps cut in the middle of something."""
    data = bytearray()
    while len(data) < size:
        kind = seed.random()
        if kind < 0.40:
            data += csi(seed)
        elif kind < 0.65:
            data += text(seed)
        elif kind < 0.75:
            data += string(seed)
        elif kind < 0.85:
            data += escape(seed)
        elif kind < 0.95:
            data += damaged(seed)
        else:
            data += seed.randbytes(seed.randrange(1, 60))
    return bytes(data[: seed.randrange(1, len(data))] if seed.random() < 0.15 else data)
