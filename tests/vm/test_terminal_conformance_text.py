"""Text, and what must not become text: controls, strings, unknown sequences."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, table

SETS = [
    case("special graphics draw lines", "^[(0lqkx^[(Bq", ["┌─┐│q"]),
    case("the whole drawing set", "^[(0`afgjklmn", ["◆▒°±┘┐┌└┼"]),
    case("the rest of the drawing set", "^[(0opqrstuvwxyz{|}~", ["⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"]),
    case("capitals are not drawn", "^[(0ABC", ["ABC"]),
    case("G1 through shift out and in", "^[)0q\x0eq\x0fq", ["q─q"]),
    case("G2 for one letter by SS2", "^[*0q^[Nqq", ["q─q"]),
    case("G3 for one letter by SS3", "^[+0q^[Oqq", ["q─q"]),
    case("G2 by LS2", "^[*0^[nqq", ["──"]),
    case("G3 by LS3", "^[+0^[oqq^[(B\x0fq", ["──q"]),
    case("the british set has a pound", "^[(A#^[(B#", ["£#"]),
    case("a letter of Latin 1 is itself in a drawing set", "^[(0éq", ["é─"]),
    case("RIS brings ASCII back", "^[(0^[cq", ["q"]),
]

UTF8 = [
    case("two, three and four bytes", "é€𝄞", ["é€𝄞"]),
    case("a stray continuation byte", b"a\x80b", ["a\ufffdb"]),
    case("a start without its continuation", b"a\xc3b", ["a\ufffdb"]),
    case("a start cut by an escape", b"a\xe2\x82\x1b[4Gb", ["a\ufffd b"]),
    case("bytes that are never used", b"a\xffb\xfec", ["a\ufffdb\ufffdc"]),
    case("a surrogate", b"a\xed\xa0\x80b", None, None),
    case("an overlong slash", b"a\xc0\xafb", None, None),
    case("beyond the last code point", b"a\xf4\x90\x80\x80b", None, None),
    case("a byte order mark takes no cell", "a\ufeffb", ["ab"]),
    case("C1 controls in UTF-8 are no sequences", "a\u009b31mb", None, None),
    case("a combining mark joins what is before", "e\u0301x", ["ex"], "1;3"),
    case("a combining mark at the line's start", "\u0301x", None),
    case("a zero width space takes no cell", "a\u200bb", ["ab"], "1;3"),
    case("wide characters take two cells", "漢字", ["漢 字"], "1;5"),
    case("halfwidth katakana take one", "ｱｲ", ["ｱｲ"], "1;3"),
    case("fullwidth letters take two", "Ａ", ["Ａ"], "1;3"),
    case("an emoji takes two", "👍x", ["👍 x"], "1;4"),
    case("a skin tone joins", "👍🏽x", ["👍 x"], "1;4"),
    case("a family is one", "👨\u200d👩\u200d👧x", ["👨 x"], "1;4"),
    case("a flag is one", "🇺🇸x", ["USx"], "1;4"),
    case("emoji presentation widens", "❤\ufe0fx", ["❤ x"], "1;4"),
]

CONTROLS = [
    case("NUL and DEL print nothing", "a\0b\x7fc", ["abc"]),
    case("unused controls print nothing", "a\x01\x02\x03\x04\x06\x10\x11\x12\x13\x14\x15b", ["ab"]),
    case("BEL prints nothing", "a\ab", ["ab"]),
    case("a control within a sequence acts at once", "ab^[[2\bCx", ["ab x"]),
    case("a line feed within a sequence", "ab^[[\n1Cx", ["ab", "   x"]),
    case("CAN gives a sequence up", "^[[3\x18Cx", ["Cx"]),
    case("SUB gives a sequence up", "^[[3\x1aCx", None),
    case("ESC begins anew", "^[[3^[[4Cx", ["    x"]),
    case("CAN ends a string", "^[]0;title\x18x", ["x"]),
    case("a DEL within a letter", b"a\xc3\x7f\xa9b", ["aéb"]),
    case("DEL within a sequence is nothing", "^[[3\x7fCx", ["   x"]),
]

STRINGS = [
    *(
        case(f"{name} prints nothing", f"a^[{start}hidden text^[\\b", ["ab"], replies="")
        for name, start in (("DCS", "P"), ("SOS", "X"), ("OSC", "]"), ("PM", "^"), ("APC", "_"))
    ),
    *(
        case(f"{name} of many bytes prints nothing", f"a^[{start}{'x' * 9000}^[\\b", ["ab"])
        for name, start in (("DCS", "P"), ("SOS", "X"), ("OSC", "]52;c;"), ("PM", "^"),
                            ("APC", "_G"))
    ),
    *(
        case(f"OSC {number} prints nothing", f"a^[]{number};text\ab", ["ab"], replies="")
        for number in (0, 1, 2, 3, 6, 7, 8, 9, 22, 46, 50, 51, 66, 99, 104, 133, 555, 633, 777,
                       1337, 99999)
    ),
    case("an OSC ends at ST", "^[]0;t^[\\x", ["x"]),
    case("an OSC ends at BEL", "^[]0;t\ax", ["x"]),
    case("line feeds within an OSC are part of it", "a^[]0;t\nu\ab", ["ab"]),
    case("sixel data print nothing", "a^[Pq#0;2;0;0;0#0!20~-^[\\b", ["ab"], replies=""),
    case("a title with letters beyond ASCII", "a^[]2;é漢👍\ab", ["ab"]),
    case("a hyperlink is its text", "^[]8;;http://example.org\aab^[]8;;\ac", ["abc"]),
]  # fmt: skip

UNKNOWN = [
    *(
        case(f"the unknown sequence {name} prints nothing", f"a^[{sequence}b", ["ab"])
        for name, sequence in (
            ("CSI y", "[1;2y"), ("CSI > z", "[>1z"), ("CSI < v", "[<1;2v"), ("CSI = w", "[=1w"),
            ("CSI $ a", "[1$a"), ("CSI ! q", "[!q"), ("CSI ' z", "['z"), ("CSI * z", "[2*z"),
            ("ESC # 9", "#9"), ("ESC % G", "%G"), ("ESC space F", " F"), ("ESC l", "l"),
            ("CSI ? 5 i", "[?5i"), ("CSI 4 i", "[4i"), ("CSI 2 q", "[2q"), ("CSI & x", "[1&x"),
            ("many parameters", "[" + "1;" * 100 + "z"), ("a colon", "[1:2z"),
        )
    ),
    case("double height and width are not drawn so", "^[#3ab^[#4^[#5^[#6c", ["abc"]),
    case("a private marker in the wrong place", "a^[[1?lb", ["ab"]),
]  # fmt: skip


@table(SETS, UTF8, CONTROLS, STRINGS, UNKNOWN)
def test_text(it: Case) -> None:
    check(it)


@pytest.mark.parametrize("start", [b"\x1bP", b"\x1bX", b"\x1b]", b"\x1b^", b"\x1b_"])
def test_a_sequence_within_a_string_ends_it(start: bytes) -> None:
    check(Case("", start + b"0;never ended\x1b[3Gx", ("  x",), "1;4"))
