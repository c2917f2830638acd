r"""What a guest must get for each key, written down from the documents of xterm and kitty.

Sources: "XTerm Control Sequences" (PC-style function keys, VT220-style function keys), xterm's
modifyOtherKeys as its table for the US keyboard has it (with Alt sending an Escape, mode 1036), and
kitty's "Comprehensive keyboard handling in terminals" (legacy functional keys, C0 controls, legacy
text keys, functional key definitions, event types, text as code points), for an American keyboard.

A cell is what is sent: `\e` Escape, `\s` a blank, `..` the same as plain, `--` nothing.
"""

from __future__ import annotations

MODES = {
    "plain": b"",
    "other1": b"\x1b[>4;1m",
    "other2": b"\x1b[>4;2m",
    "kitty1": b"\x1b[>1u",
    "kitty9": b"\x1b[>9u",
    "kitty31": b"\x1b[>31u",
    "kitty3": b"\x1b[>3u",
    "cursor": b"\x1b[?1h",
    "keypad": b"\x1b=",
    "noalt": b"\x1b[?1036l",
    "bs": b"\x1b[?67h",
}
"""What a guest writes to switch each mode on."""

COLUMNS = ("plain", "other1", "other2", "kitty1", "kitty9", "kitty31")
"""The modes that the cells of these tables stand for, in order."""

OWN = r"""
enter                \r      ..            ..            ..          \e[13u      \e[13u
shift+enter          \r      \e[27;2;13~   \e[27;2;13~   \e[13;2u    \e[13;2u    \e[13;2u
alt+enter            \e\r    \e[27;3;13~   \e[27;3;13~   \e[13;3u    \e[13;3u    \e[13;3u
alt+shift+enter      \e\r    \e[27;4;13~   \e[27;4;13~   \e[13;4u    \e[13;4u    \e[13;4u
ctrl+enter           \r      \e[27;5;13~   \e[27;5;13~   \e[13;5u    \e[13;5u    \e[13;5u
ctrl+shift+enter     \r      \e[27;6;13~   \e[27;6;13~   \e[13;6u    \e[13;6u    \e[13;6u
alt+ctrl+enter       \e\r    \e[27;7;13~   \e[27;7;13~   \e[13;7u    \e[13;7u    \e[13;7u
super+enter          --      --            --            \e[13;9u    \e[13;9u    \e[13;9u
tab                  \t      ..            ..            ..          \e[9u       \e[9u
shift+tab            \e[Z    ..            ..            \e[9;2u     \e[9;2u     \e[9;2u
alt+tab              \e\t    \e[27;3;9~    \e[27;3;9~    \e[9;3u     \e[9;3u     \e[9;3u
alt+shift+tab        \e\e[Z  \e[27;4;9~    \e[27;4;9~    \e[9;4u     \e[9;4u     \e[9;4u
ctrl+tab             \t      \e[27;5;9~    \e[27;5;9~    \e[9;5u     \e[9;5u     \e[9;5u
ctrl+shift+tab       \e[Z    \e[27;6;9~    \e[27;6;9~    \e[9;6u     \e[9;6u     \e[9;6u
alt+ctrl+tab         \e\t    \e[27;7;9~    \e[27;7;9~    \e[9;7u     \e[9;7u     \e[9;7u
escape               \e      ..            ..            \e[27u      \e[27u      \e[27u
shift+escape         \e      ..            ..            \e[27;2u    \e[27;2u    \e[27;2u
alt+escape           \e\e    \e[27;3;27~   \e[27;3;27~   \e[27;3u    \e[27;3u    \e[27;3u
ctrl+escape          \e      ..            \e[27;5;27~   \e[27;5u    \e[27;5u    \e[27;5u
ctrl+shift+escape    \e      \e[27;6;27~   \e[27;6;27~   \e[27;6u    \e[27;6u    \e[27;6u
alt+ctrl+escape      \e\e    \e[27;7;27~   \e[27;7;27~   \e[27;7u    \e[27;7u    \e[27;7u
backspace            \x7f    ..            ..            ..          \e[127u     \e[127u
shift+backspace      \x7f    ..            \e[27;2;127~  \e[127;2u   \e[127;2u   \e[127;2u
alt+backspace        \e\x7f  ..            \e[27;3;127~  \e[127;3u   \e[127;3u   \e[127;3u
ctrl+backspace       \x08    ..            ..            \e[127;5u   \e[127;5u   \e[127;5u
alt+ctrl+backspace   \e\x08  ..            \e[27;7;127~  \e[127;7u   \e[127;7u   \e[127;7u
space                \s      ..            ..            ..          \e[32u      \e[32;;32u
shift+space          \s      ..            \e[27;2;32~   ..          \e[32;2u    \e[32;2;32u
alt+space            \e\s    ..            \e[27;3;32~   \e[32;3u    \e[32;3u    \e[32;3u
ctrl+space           \x00    ..            \e[27;5;32~   \e[32;5u    \e[32;5u    \e[32;5u
ctrl+@               \x00    ..            \e[27;5;32~   \e[32;5u    \e[32;5u    \e[32;5u
ctrl+shift+space     \x00    ..            \e[27;6;32~   \e[32;6u    \e[32;6u    \e[32;6u
alt+ctrl+space       \e\x00  ..            \e[27;7;32~   \e[32;7u    \e[32;7u    \e[32;7u
"""
"""Keys with a control character of their own, with every modifier."""

TEXT = r"""
a                    a       ..            ..            ..          \e[97u      \e[97;;97u
A                    A       ..            \e[27;2;65~   ..          \e[97;2u    \e[97:65;2;65u
shift+a              A       ..            \e[27;2;65~   ..          \e[97;2u    \e[97:65;2;65u
ctrl+a               \x01    ..            \e[27;5;97~   \e[97;5u    \e[97;5u    \e[97;5u
ctrl+shift+a         \x01    ..            \e[27;6;65~   \e[97;6u    \e[97;6u    \e[97:65;6u
alt+a                \ea     ..            \e[27;3;97~   \e[97;3u    \e[97;3u    \e[97;3u
alt+shift+a          \eA     ..            \e[27;4;65~   \e[97;4u    \e[97;4u    \e[97:65;4u
alt+ctrl+a           \e\x01  ..            \e[27;7;97~   \e[97;7u    \e[97;7u    \e[97;7u
alt+ctrl+shift+a     \e\x01  \e[27;8;65~   \e[27;8;65~   \e[97;8u    \e[97;8u    \e[97:65;8u
super+a              --      --            --            \e[97;9u    \e[97;9u    \e[97;9u
hyper+a              --      --            --            \e[97;17u   \e[97;17u   \e[97;17u
meta+a               \ea     ..            \e[27;3;97~   \e[97;33u   \e[97;33u   \e[97;33u
ctrl+i               \t      ..            \e[27;5;105~  \e[105;5u   \e[105;5u   \e[105;5u
ctrl+m               \r      ..            \e[27;5;109~  \e[109;5u   \e[109;5u   \e[109;5u
ctrl+j               \n      ..            \e[27;5;106~  \e[106;5u   \e[106;5u   \e[106;5u
ctrl+h               \x08    ..            \e[27;5;104~  \e[104;5u   \e[104;5u   \e[104;5u
1                    1       ..            ..            ..          \e[49u      \e[49;;49u
ctrl+1               1       \e[27;5;49~   \e[27;5;49~   \e[49;5u    \e[49;5u    \e[49;5u
ctrl+2               \x00    ..            \e[27;5;50~   \e[50;5u    \e[50;5u    \e[50;5u
alt+1                \e1     ..            \e[27;3;49~   \e[49;3u    \e[49;3u    \e[49;3u
exclamation_mark     !       ..            ..            ..          \e[49;2u    \e[49:33;2;33u
shift+1              !       ..            ..            ..          \e[49;2u    \e[49:33;2;33u
alt+exclamation_mark \e!     ..            \e[27;4;33~   \e[49;4u    \e[49;4u    \e[49:33;4u
ctrl+left_square_bracket   \e   ..         \e[27;5;91~   \e[91;5u    \e[91;5u    \e[91;5u
ctrl+backslash       \x1c    ..            \e[27;5;92~   \e[92;5u    \e[92;5u    \e[92;5u
ctrl+right_square_bracket  \x1d ..         \e[27;5;93~   \e[93;5u    \e[93;5u    \e[93;5u
ctrl+circumflex_accent     \x1e ..         \e[27;6;94~   \e[54;6u    \e[54;6u    \e[54:94;6u
ctrl+shift+6         \x1e    ..            \e[27;6;94~   \e[54;6u    \e[54;6u    \e[54:94;6u
ctrl+underscore      \x1f    ..            \e[27;6;95~   \e[45;6u    \e[45;6u    \e[45:95;6u
ctrl+slash           \x1f    ..            \e[27;5;47~   \e[47;5u    \e[47;5u    \e[47;5u
ctrl+question_mark   \x7f    \e[27;6;63~   \e[27;6;63~   \e[47;6u    \e[47;6u    \e[47:63;6u
ctrl+semicolon       ;       \e[27;5;59~   \e[27;5;59~   \e[59;5u    \e[59;5u    \e[59;5u
ctrl+minus           -       \e[27;5;45~   \e[27;5;45~   \e[45;5u    \e[45;5u    \e[45;5u
ctrl+full_stop       .       \e[27;5;46~   \e[27;5;46~   \e[46;5u    \e[46;5u    \e[46;5u
alt+full_stop        \e.     ..            \e[27;3;46~   \e[46;3u    \e[46;3u    \e[46;3u
alt+ctrl+semicolon   \e;     \e[27;7;59~   \e[27;7;59~   \e[59;7u    \e[59;7u    \e[59;7u
left_curly_bracket   {       ..            \e[27;2;123~  ..          \e[91;2u    \e[91:123;2;123u
at                   @       ..            \e[27;2;64~   ..          \e[50;2u    \e[50:64;2;64u
é                    é       ..            ..            ..          \e[233u     \e[233;;233u
É                    É       ..            ..            ..          \e[233;2u   \e[233:201;2;201u
alt+é                \eé     ..            \e[27;3;233~  \e[233;3u   \e[233;3u   \e[233;3u
ß                    ß       ..            ..            ..          \e[223u     \e[223;;223u
я               я            ..            ..            ..          \e[1103u    \e[1103;;1103u
Я               Я            ..            ..          ..     \e[1103;2u  \e[1103:1071;2;1071u
漢                   漢      ..            ..            ..          \e[28450u   \e[28450;;28450u
euro_sign            €       ..            ..            ..          \e[8364u    \e[8364;;8364u
alt+euro_sign        \e€     ..            \e[27;3;8364~ \e[8364;3u  \e[8364;3u  \e[8364;3u
left_pointing_double_angle_quotation_mark « .. ..        ..          \e[171u     \e[171;;171u
no_break_space       \xa0    ..            ..            ..          \e[160u     \e[160;;160u
grinning_face        😀      ..            ..            ..          \e[128512u  \e[128512;;128512u
"""
"""Characters: letters, digits and symbols of an American keyboard, and some of others."""

FUNCTION = r"""
up                   \e[A    ..            ..            ..          ..          \e[1;1:1A
down                 \e[B    ..            ..            ..          ..          \e[1;1:1B
right                \e[C    ..            ..            ..          ..          \e[1;1:1C
left                 \e[D    ..            ..            ..          ..          \e[1;1:1D
home                 \e[H    ..            ..            ..          ..          \e[1;1:1H
end                  \e[F    ..            ..            ..          ..          \e[1;1:1F
kp_begin             \e[E    ..            ..            ..          ..          ..
insert               \e[2~   ..            ..            ..          ..          ..
delete               \e[3~   ..            ..            ..          ..          ..
pageup               \e[5~   ..            ..            ..          ..          ..
pagedown             \e[6~   ..            ..            ..          ..          ..
f1                   \eOP    ..            ..            \e[P        \e[P        \e[1;1:1P
f2                   \eOQ    ..            ..            \e[Q        \e[Q        \e[1;1:1Q
f3                   \eOR    ..            ..            \e[13~      \e[13~      \e[13~
f4                   \eOS    ..            ..            \e[S        \e[S        \e[1;1:1S
f5                   \e[15~  ..            ..            ..          ..          ..
f6                   \e[17~  ..            ..            ..          ..          ..
f7                   \e[18~  ..            ..            ..          ..          ..
f8                   \e[19~  ..            ..            ..          ..          ..
f9                   \e[20~  ..            ..            ..          ..          ..
f10                  \e[21~  ..            ..            ..          ..          ..
f11                  \e[23~  ..            ..            ..          ..          ..
f12                  \e[24~  ..            ..            ..          ..          ..
f13                  \e[25~  ..            ..            \e[57376u   \e[57376u   \e[57376u
f14                  \e[26~  ..            ..            \e[57377u   \e[57377u   \e[57377u
f15                  \e[28~  ..            ..            \e[57378u   \e[57378u   \e[57378u
f16                  \e[29~  ..            ..            \e[57379u   \e[57379u   \e[57379u
f17                  \e[31~  ..            ..            \e[57380u   \e[57380u   \e[57380u
f18                  \e[32~  ..            ..            \e[57381u   \e[57381u   \e[57381u
f19                  \e[33~  ..            ..            \e[57382u   \e[57382u   \e[57382u
f20                  \e[34~  ..            ..            \e[57383u   \e[57383u   \e[57383u
f21                  \e[42~  ..            ..            \e[57384u   \e[57384u   \e[57384u
f22                  \e[43~  ..            ..            \e[57385u   \e[57385u   \e[57385u
f23                  \e[44~  ..            ..            \e[57386u   \e[57386u   \e[57386u
f24                  \e[45~  ..            ..            \e[57387u   \e[57387u   \e[57387u
f26                  --      --            --            \e[57389u   \e[57389u   \e[57389u
f35                  --      --            --            \e[57398u   \e[57398u   \e[57398u
menu                 \e[29~  ..            ..            \e[57363u   \e[57363u   \e[57363u
pause                --      --            --            \e[57362u   \e[57362u   \e[57362u
print_screen         --      --            --            \e[57361u   \e[57361u   \e[57361u
ctrl+pause           --      --            --            \e[57362;5u \e[57362;5u \e[57362;5u
media_play_pause     --      --            --            \e[57430u   \e[57430u   \e[57430u
raise_volume         --      --            --            \e[57439u   \e[57439u   \e[57439u
decimal              .       ..            ..            ..          \e[57409u   \e[57409;;46u
divide               /       ..            ..            ..          \e[57410u   \e[57410;;47u
multiply             *       ..            ..            ..          \e[57411u   \e[57411;;42u
subtract             -       ..            ..            ..          \e[57412u   \e[57412;;45u
add                  +       ..            ..            ..          \e[57413u   \e[57413;;43u
equal                =       ..            ..            ..          \e[57415u   \e[57415;;61u
separator            ,       ..            ..            ..          \e[57416u   \e[57416;;44u
left_shift           --      --            --            --          --          --
caps_lock            --      --            --            --          --          --
"""
"""Keys that type nothing, and those of the keypad. Keys that are only modifiers are not passed."""

SPECIAL = {
    "kitty3": r"up \e[1;1:1A|f5 \e[15~|a a|ctrl+a \e[97;5u|enter \r|escape \e[27u|alt+a \e[97;3u",
    "cursor": r"up \eOA|down \eOB|right \eOC|left \eOD|home \eOH|end \eOF|shift+up \e[1;2A|"
    r"kp_begin \eOE|insert \e[2~|f1 \eOP|a a|ctrl+left \e[1;5D|enter \r",
    "keypad": r"up \e[A|decimal .|add +|enter \r|5 5|f1 \eOP",
    "noalt": r"alt+a a|alt+enter \r|alt+backspace \x7f|alt+ctrl+a \x01|alt+up \e[1;3A|a a",
    "bs": r"backspace \x08|ctrl+backspace \x7f|alt+backspace \e\x08|shift+backspace \x08|a a",
}
"""Modes that change little: key and bytes."""

MODIFIERS = (
    ("shift", 2), ("alt", 3), ("alt+shift", 4), ("ctrl", 5), ("ctrl+shift", 6), ("alt+ctrl", 7),
    ("alt+ctrl+shift", 8), ("super", 9), ("ctrl+super", 13),
)  # fmt: skip
"""Modifiers as Textual writes them, and xterm's number of them."""

LETTERED = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F",
            "f1": "P", "f2": "Q", "f3": "R", "f4": "S", "kp_begin": "E"}  # fmt: skip
"""Keys that send CSI 1 ; modifiers LETTER with a modifier."""

TILDED = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18,
          "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24, "f13": 25, "f20": 34}  # fmt: skip
"""Keys that send CSI number ; modifiers ~ with a modifier."""

SYMBOLS = r"""
exclamation_mark      !  1  !     long
quotation_mark        "  '  "     long
number_sign           #  3  #     long
dollar_sign           $  4  $     long
percent_sign          %  5  %     long
ampersand             &  7  &     long
apostrophe            '  '  '     long
left_parenthesis      (  9  (     long
right_parenthesis     )  0  )     long
asterisk              *  8  *     long
plus                  +  =  +     long
comma                 ,  ,  ,     long
minus                 -  -  -     long
full_stop             .  .  .     long
slash                 /  /  \x1f  short
0                     0  0  0     long
1                     1  1  1     long
2                     2  2  \x00  short
3                     3  3  \x1b  short
4                     4  4  \x1c  short
5                     5  5  \x1d  short
6                     6  6  \x1e  short
7                     7  7  \x1f  short
8                     8  8  \x7f  short
9                     9  9  9     long
colon                 :  ;  :     long
semicolon             ;  ;  ;     long
less_than_sign        <  ,  <     long
equals_sign           =  =  =     long
greater_than_sign     >  .  >     long
question_mark         ?  /  \x7f  long
at                    @  2  \x00  short
left_square_bracket   [  [  \x1b  short
backslash             \  \  \x1c  short
right_square_bracket  ]  ]  \x1d  short
circumflex_accent     ^  6  \x1e  short
underscore            _  -  \x1f  short
grave_accent          `  `  \x00  short
left_curly_bracket    {  [  \x1b  short
vertical_line         |  \  \x1c  short
right_curly_bracket   }  ]  \x1d  short
tilde                 ~  `  \x1e  short
"""
"""Name, character, the key that it is on, what ctrl with it sends to a plain guest, and whether
modifyOtherKeys 1 has a sequence for ctrl with it."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def cell(text: str, plain: str = "") -> bytes:
    """Return the bytes of a cell."""
    if text == "--":
        return b""
    if text == "..":
        return cell(plain)
    for sign, meant in (("\\e", "\x1b"), ("\\s", " "), ("\\r", "\r"), ("\\t", "\t"), ("\\n", "\n")):
        text = text.replace(sign, meant)
    parts = text.split("\\x")
    rest = [chr(int(part[:2], 16)) + part[2:] for part in parts[1:]]
    return "".join([parts[0], *rest]).encode()


def rows(table: str) -> list[tuple[str, dict[str, bytes]]]:
    """Return each key of a table and its bytes in each mode."""
    found: list[tuple[str, dict[str, bytes]]] = []
    for line in table.strip().splitlines():
        key, plain, *others = line.split()
        cells = [cell(plain), *(cell(it, plain) for it in others)]
        found.append((key, dict(zip(COLUMNS, cells, strict=True))))
    return found
