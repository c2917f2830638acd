"""From the user's terminal to the guest, through the real program on a real PTY."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.doubles.outer_pty import outer_pty
from tests.vm.key_tables import guest, outer
from widgets.terminal_keys import ESCAPE_DELAY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doubles.outer_pty import Outer

OURS = ("\x07", "\x1b1", "f12")
"""What stays with the program: its prefix and the direct keys."""

TO_OTHER_GUESTS = [
    # the user's terminal, what a guest with kitty's flag 1 gets, what one with modifyOtherKeys 2
    (b"a", b"a", b"a"),
    (b"\x03", b"\x1b[99;5u", b"\x1b[27;5;99~"),
    (b"\x1b[99;5u", b"\x1b[99;5u", b"\x1b[27;5;99~"),
    (b"\t", b"\t", b"\t"),
    (b"\x1b[105;5u", b"\x1b[105;5u", b"\x1b[27;5;105~"),
    (b"\r", b"\r", b"\r"),
    (b"\x1b[109;5u", b"\x1b[109;5u", b"\x1b[27;5;109~"),
    (b"\x1b[13;2u", b"\x1b[13;2u", b"\x1b[27;2;13~"),
    (b"\x1b[27;2;13~", b"\x1b[13;2u", b"\x1b[27;2;13~"),
    (b"\x1b\r", b"\x1b[13;3u", b"\x1b[27;3;13~"),
    (b"\x1b", b"\x1b[27u", b"\x1b"),
    (b"\x1b\x1b", b"\x1b[27u\x1b[27u", b"\x1b\x1b"),
    (b"\x08", b"\x1b[104;5u", b"\x1b[27;5;104~"),
    (b"\x7f", b"\x7f", b"\x7f"),
    (b"\x1b\x7f", b"\x1b[127;3u", b"\x1b[27;3;127~"),
    (b"\x00", b"\x1b[32;5u", b"\x1b[27;5;32~"),
    (b"\x1b[1089::99;5u", b"\x1b[99;5u", b"\x1b[27;5;99~"),
    (b"\x1b[97;9u", b"\x1b[97;9u", b""),
    (b"\x1b[97;1:3u", b"", b""),
    (b"\x1b[57441;2u", b"", b""),
]


async def test_each_key_of_each_terminal_reaches_a_plain_guest(tmp_path: Path) -> None:
    rows = [row for table in (outer.OLD, outer.OTHER, outer.KITTY) for row in outer.rows(table)]
    assert len(rows) > 150
    async with outer_pty(tmp_path) as terminal:
        for sent, key, wanted in rows:
            got = await terminal.gets(sent.encode(), wanted.encode())
            assert (sent, key, got) == (sent, key, wanted.encode())


@pytest.mark.parametrize(("mode", "column"), [("kitty1", 1), ("other2", 2)])
async def test_keys_reach_a_guest_that_asked_for_more(
    tmp_path: Path, mode: str, column: int
) -> None:
    async with outer_pty(tmp_path) as terminal:
        await terminal.print(guest.MODES[mode])
        for row in TO_OTHER_GUESTS:
            assert (row[0], await terminal.gets(row[0], row[column])) == (row[0], row[column])


async def test_an_escape_takes_its_wait_and_else_no_longer_than_another_key(tmp_path: Path) -> None:
    """Both keys in one run: a busy machine holds them up alike."""
    loop = asyncio.get_running_loop()
    took: dict[bytes, list[float]] = {b"x": [], b"\x1b": []}
    async with outer_pty(tmp_path) as terminal:
        for key in (b"x", b"\x1b") * 15:
            terminal.guest.typed.clear()
            begin = loop.time()
            await terminal.type(key)
            await terminal.guest.until_typed(key)
            took[key].append(loop.time() - begin)
    assert ESCAPE_DELAY <= min(took[b"\x1b"]) <= ESCAPE_DELAY + max(took[b"x"])


async def test_keys_that_come_at_once_and_keys_that_do_not(tmp_path: Path) -> None:
    async with outer_pty(tmp_path) as terminal:
        assert await terminal.gets(b"\x1bj", b"\x1bj") == b"\x1bj"
        terminal.guest.typed.clear()
        await terminal.type(b"\x1b")
        await terminal.guest.until_typed(b"\x1b")
        await terminal.print(b"\x1b[>1u")  # Alt would be one sequence now
        assert await terminal.gets(b"j", b"j") == b"j"
        assert await terminal.gets(b"\x1bj", b"\x1b[106;3u") == b"\x1b[106;3u"


async def test_the_prefix_and_the_direct_keys_stay(tmp_path: Path) -> None:
    async with outer_pty(tmp_path) as terminal:
        assert await terminal.gets(b"\x07\x07", b"\x07") == b"\x07"
        assert await terminal.gets(b"\x1b1\x1b9", b"") == b""
        assert await terminal.gets(b"\x1b[49;3u", b"") == b""
        assert await terminal.gets(b"\x1b[103;5u\x1b[103;5u", b"\x07") == b"\x07"
        assert await terminal.gets(b"\x1b[1087::103;5u\x1b[27u", b"") == b""


async def test_the_outer_terminals_focus_is_the_guests(tmp_path: Path) -> None:
    async with outer_pty(tmp_path) as terminal:
        assert await terminal.gets(b"\x1b[O\x1b[I", b"") == b""
        await terminal.print(b"\x1b[?1004h")
        assert await terminal.gets(b"\x1b[O", b"\x1b[O") == b"\x1b[O\x1b[I"  # and z brings it back
        assert await terminal.gets(b"\x1b[O\x1b[I", b"\x1b[O\x1b[I") == b"\x1b[O\x1b[I"


PASTES = [
    ("a\nb", b"a\rb"),
    ("a\r\nb\n", b"a\rb\r"),
    ("tab\there", b"tab\there"),
    ("\x1b[31mred\x1b", b" [31mred "),
    ("\x1b[20", b" [20"),
    ("c1 \x9b31m \x85", b"c1  31m  "),
    ("\x03\x04\x07\x7f", b"    "),
    ("é漢😀", "é漢😀".encode()),
    ("[bold]{{x}}", b"[bold]{{x}}"),
]


async def paste(terminal: Outer, raw: bytes, wanted: bytes) -> bytes:
    return await terminal.gets(b"\x1b[200~" + raw + b"\x1b[201~", wanted)


async def test_pastes(tmp_path: Path) -> None:
    async with outer_pty(tmp_path) as terminal:
        for text, wanted in PASTES:
            assert (text, await paste(terminal, text.encode(), wanted)) == (text, wanted)
        got = await paste(terminal, b"a\xffb\xc3", b"a\xef\xbf\xbdb\xef\xbf\xbd")
        assert got == "a\ufffdb\ufffd".encode()
        await terminal.print(b"\x1b[?2004h")
        for text, wanted in PASTES:
            marked = b"\x1b[200~" + wanted.replace(b"\r", b"\n") + b"\x1b[201~"
            assert (text, await paste(terminal, text.encode(), marked)) == (text, marked)


async def test_a_guest_cannot_be_left_in_a_paste_by_what_is_pasted(tmp_path: Path) -> None:
    async with outer_pty(tmp_path) as terminal:
        await terminal.print(b"\x1b[?2004h")
        got = await paste(terminal, b"\x1b[200~x\x1b", b"\x1b[200~ [200~x \x1b[201~")
        assert got == b"\x1b[200~ [200~x \x1b[201~"


async def test_a_paste_of_five_megabytes_arrives_whole(tmp_path: Path) -> None:
    text = b"".join(b"%07d\n" % number for number in range(5 * 131072))
    wanted = text.replace(b"\n", b"\r")
    async with outer_pty(tmp_path) as terminal:
        got = await paste(terminal, text, wanted)
        assert len(got) == len(wanted)
        assert got == wanted
