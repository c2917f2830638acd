r"""What users' own terminals send for a key, the event it becomes, and what a plain guest gets.

Each row: bytes of the terminal (Python escapes), the key's name, bytes for a guest that asked for
nothing. Sources: xterm's control sequences and its keys with altSendsEscape; the manuals of rxvt,
the Linux console, Konsole, PuTTY; kitty's keyboard protocol with the flags 1 + 4 + 8 + 16, which we
push. A `--` stands for no key at all.
"""

from __future__ import annotations

import codecs

OLD = r"""
a                 a                           a
A                 A                           A
?                 question_mark               ?
\x20              space                       \x20
\r                enter                       \r
\n                ctrl+j                      \n
\t                tab                         \t
\x7f              backspace                   \x7f
\x08              ctrl+h                      \x08
\x00              ctrl+space                  \x00
\x01              ctrl+a                      \x01
\x03              ctrl+c                      \x03
\x11              ctrl+q                      \x11
\x1a              ctrl+z                      \x1a
\x1c              ctrl+backslash              \x1c
\x1d              ctrl+right_square_bracket   \x1d
\x1e              ctrl+circumflex_accent      \x1e
\x1f              ctrl+underscore             \x1f
\x1b              escape                      \x1b
\x1ba             alt+a                       \x1ba
\x1bA             alt+shift+a                 \x1bA
\x1bb             alt+b                       \x1bb
\x1bf             alt+f                       \x1bf
\x1bO             alt+shift+o                 \x1bO
\x1b[             alt+left_square_bracket     \x1b[
\x1b]             alt+right_square_bracket    \x1b]
\x1bP             alt+shift+p                 \x1bP
\x1b_             alt+underscore              \x1b_
\x1b0             alt+0                       \x1b0
\x1b.             alt+full_stop               \x1b.
\x1b<             alt+less_than_sign          \x1b<
\x1b/             alt+slash                   \x1b/
\x1b!             alt+exclamation_mark        \x1b!
\x1b\x20          alt+space                   \x1b\x20
\x1b\r            alt+enter                   \x1b\r
\x1b\t            alt+tab                     \x1b\t
\x1b\x7f          alt+backspace               \x1b\x7f
\x1b\x08          alt+ctrl+h                  \x1b\x08
\x1b\x00          alt+ctrl+space              \x1b\x00
\x1b\x01          alt+ctrl+a                  \x1b\x01
\x1b\x18          alt+ctrl+x                  \x1b\x18
\x1b\x1f          alt+ctrl+underscore         \x1b\x1f
\x1b[A            up                          \x1b[A
\x1bOA            up                          \x1b[A
\x1b[1;2A         shift+up                    \x1b[1;2A
\x1b[1;3A         alt+up                      \x1b[1;3A
\x1b[1;5D         ctrl+left                   \x1b[1;5D
\x1b[1;6C         ctrl+shift+right            \x1b[1;6C
\x1b[1;7B         alt+ctrl+down               \x1b[1;7B
\x1b\x1b[A        alt+up                      \x1b[1;3A
\x1b\x1bOD        alt+left                    \x1b[1;3D
\x1b\x1b[5~       alt+pageup                  \x1b[5;3~
\x1b[H            home                        \x1b[H
\x1b[1~           home                        \x1b[H
\x1b[4~           end                         \x1b[F
\x1b[2~           insert                      \x1b[2~
\x1b[3~           delete                      \x1b[3~
\x1b[3;5~         ctrl+delete                 \x1b[3;5~
\x1b[5;2~         shift+pageup                \x1b[5;2~
\x1b[Z            shift+tab                   \x1b[Z
\x1bOP            f1                          \x1bOP
\x1bOR            f3                          \x1bOR
\x1b[1;2P         shift+f1                    \x1b[1;2P
\x1b[1;2R         shift+f3                    \x1b[1;2R
\x1b[1;5R         ctrl+f3                     \x1b[1;5R
\x1bO2P           shift+f1                    \x1b[1;2P
\x1bO5A           ctrl+up                     \x1b[1;5A
\x1b[[A           f1                          \x1bOP
\x1b[[E           f5                          \x1b[15~
\x1b[15~          f5                          \x1b[15~
\x1b[15;2~        shift+f5                    \x1b[15;2~
\x1b[24;5~        ctrl+f12                    \x1b[24;5~
\x1b[25~          f13                         \x1b[25~
\x1b[25;2~        shift+f13                   \x1b[25;2~
\x1b[3$           shift+delete                \x1b[3;2~
\x1b[7^           ctrl+home                   \x1b[1;5H
\x1b[8@           ctrl+shift+end              \x1b[1;6F
\x1bOb            ctrl+down                   \x1b[1;5B
\x1b[a            shift+up                    \x1b[1;2A
\x1b[5A           ctrl+up                     \x1b[1;5A
\x1b[E            kp_begin                    \x1b[E
\x1bOk            plus                        +
\x1bOp            0                           0
\x1bOM            enter                       \r
é                 é                           é
É                 É                           É
ß                 ß                           ß
я                 я                           я
漢                漢                          漢
€                 euro_sign                   €
😀                grinning_face               😀
\x1bé             alt+é                       \x1bé
\x1bЯ             alt+shift+я                 \x1bЯ
"""
"""Terminals without any protocol: xterm, VTE, Terminal.app, tmux without extended keys, rxvt."""

OTHER = r"""
\x1b[27;2;13~     shift+enter                 \r
\x1b[27;5;13~     ctrl+enter                  \r
\x1b[27;3;13~     alt+enter                   \x1b\r
\x1b[27;5;9~      ctrl+tab                    \t
\x1b[27;5;105~    ctrl+i                      \t
\x1b[27;5;109~    ctrl+m                      \r
\x1b[27;6;65~     ctrl+shift+a                \x01
\x1b[27;2;65~     A                           A
\x1b[27;5;59~     ctrl+semicolon              ;
\x1b[27;6;33~     ctrl+exclamation_mark       !
\x1b[27;2;32~     shift+space                 \x20
\x1b[13;2u        shift+enter                 \r
\x1b[105;5u       ctrl+i                      \t
\x1b[65;6u        ctrl+shift+a                \x01
\x1b[33;6u        ctrl+exclamation_mark       !
\x1b[49;6u        ctrl+shift+1                !
\x1b[97;6u        ctrl+shift+a                \x01
"""
"""xterm and tmux with extended keys, in both of their forms."""

KITTY = r"""
\x1b[97;;97u                a                       a
\x1b[97u                    a                       a
\x1b[97:65;2;65u            A                       A
\x1b[97:65;66;97u           a                       a
\x1b[97;65;65u              A                       A
\x1b[97:65;2u               A                       A
\x1b[49:33;2;33u            exclamation_mark        !
\x1b[97;5u                  ctrl+a                  \x01
\x1b[97;69u                 ctrl+a                  \x01
\x1b[97;133u                ctrl+a                  \x01
\x1b[97:65;6u               ctrl+shift+a            \x01
\x1b[97;3u                  alt+a                   \x1ba
\x1b[97:65;4u               alt+shift+a             \x1bA
\x1b[49:33;4u               alt+exclamation_mark    \x1b!
\x1b[54:94;6u               ctrl+circumflex_accent  \x1e
\x1b[55:47;6u               ctrl+slash              \x1f
\x1b[97;7u                  alt+ctrl+a              \x1b\x01
\x1b[97;9u                  super+a                 --
\x1b[105;5u                 ctrl+i                  \t
\x1b[9u                     tab                     \t
\x1b[9;2u                   shift+tab               \x1b[Z
\x1b[109;5u                 ctrl+m                  \r
\x1b[13u                    enter                   \r
\x1b[13;2u                  shift+enter             \r
\x1b[13;3u                  alt+enter               \x1b\r
\x1b[27u                    escape                  \x1b
\x1b[91;5u                  ctrl+left_square_bracket \x1b
\x1b[127u                   backspace               \x7f
\x1b[127;3u                 alt+backspace           \x1b\x7f
\x1b[104;5u                 ctrl+h                  \x08
\x1b[32;;32u                space                   \x20
\x1b[32;2;32u               shift+space             \x20
\x1b[32;5u                  ctrl+space              \x00
\x1b[1089::99;5u            ctrl+c                  \x03
\x1b[1072:1040:102;6u       ctrl+shift+f            \x06
\x1b[1089::99;3u            alt+c                   \x1bc
\x1b[1089::99;;1089u        с                       с
\x1b[101;1;8364u            euro_sign               €
\x1b[113;7;64u              at                      @
\x1b[0;;233u                é                       é
\x1b[A                      up                      \x1b[A
\x1b[1;3A                   alt+up                  \x1b[1;3A
\x1b[1;129A                 up                      \x1b[A
\x1b[1;9C                   super+right             \x1b[1;9C
\x1b[13~                    f3                      \x1bOR
\x1b[13;2~                  shift+f3                \x1b[1;2R
\x1b[57376u                 f13                     \x1b[25~
\x1b[57400;129;49u          1                       1
\x1b[57413;;43u             add                     +
\x1b[57414u                 enter                   \r
\x1b[57417u                 left                    \x1b[D
\x1b[57427u                 --                      --
\x1b[57427~                 kp_begin                \x1b[E
\x1b[57441;2u               --                      --
\x1b[57442;5u               --                      --
\x1b[57358;65u              --                      --
\x1b[57430u                 media_play_pause        --
\x1b[97;1:1u                a                       a
\x1b[97;1:2u                a                       a
\x1b[97;1:3u                --                      --
\x1b[1;1:3A                 --                      --
\x1b[97;5:3u                --                      --
\x1b[60000u                 --                      --
\x1b[9999999u               --                      --
\x1b[55296u                 --                      --
"""
"""Terminals with kitty's protocol: kitty, foot, Ghostty, WezTerm, Konsole, iTerm2 …"""

ANSWERS = r"""
\x1b[?62;c
\x1b[?1u
\x1b[>0;276;0c
\x1b[0n
\x1b[?2026;2$y
\x1b]11;rgb:ffff/ffff/ffff\x07
\x1b]11;rgb:ffff/ffff/ffff\x1b\\
\x1bP>|XTerm(388)\x1b\\
\x1bP1$r0m\x1b\\
\x1b_Gi=1;OK\x1b\\
\x1b[201~
\x1b[M\x20!!
\x1b[32;10;10M
\x1b[8;24;80t
"""
"""Answers and reports of a terminal that are no keys."""


def meant(text: str) -> str:
    """Return a cell with its escapes done."""
    if text == "--":
        return ""
    return codecs.decode(text.encode("latin-1", "backslashreplace"), "unicode_escape")


def rows(table: str) -> list[tuple[str, str, str]]:
    """Return what is sent, the key's name and what a plain guest gets."""
    found: list[tuple[str, str, str]] = []
    for line in table.strip().splitlines():
        sent, key, got = line.split()
        found.append((meant(sent), "" if key == "--" else key, meant(got)))
    return found
