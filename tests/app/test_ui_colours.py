from __future__ import annotations

import io
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from app.services.colours import Colours, lines_of
from app.services.colours_role import (
    COLOURS,
    HEADER,
    MAX_FRAME,
    Answer,
    Request,
    answers,
    colour_of,
    read_frame,
    write_frame,
)
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import settle
from tests.doubles.reviews import opened_review
from themes.palette import SYNTAX

CODE = 'def scan(self):\n    return "x"  # done\n'


async def all_lines(colours: Colours, name: bytes, text: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    async for lines in colours.spans(name, text):
        found |= {number: [kind for _, _, kind in spans] for number, spans in lines.items()}
    return found


async def test_the_child_colours_texts_one_after_the_other() -> None:
    colours = Colours()
    try:
        first = await all_lines(colours, b"a.py", CODE)
        assert first[0][:2] == ["keyword", "function"]
        assert {"keyword", "string", "comment"} <= set(first[1])
        assert await all_lines(colours, b"a.unknown-kind", CODE) == {}
        assert await all_lines(colours, b"b.py", CODE) == first
    finally:
        await colours.close()


async def test_who_stops_listening_does_not_disturb_the_next() -> None:
    colours = Colours()
    try:
        long = "x = 'string'\n" * 5000
        async for _ in colours.spans(b"long.py", long):
            break
        assert (await all_lines(colours, b"a.py", CODE))[0][0] == "keyword"
    finally:
        await colours.close()


async def test_a_long_text_comes_in_parts_and_whole() -> None:
    colours = Colours()
    try:
        found = await all_lines(colours, b"long.py", "x = 'string'\n" * 1000)
        assert [n for n in range(1000) if "string" not in found[n]] == []
    finally:
        await colours.close()


async def test_a_child_that_dies_or_talks_nonsense_costs_only_colours() -> None:
    for program in ("raise SystemExit(3)", "print('nonsense' * 100)"):
        colours = Colours([sys.executable, "-P", "-c", program])
        assert await all_lines(colours, b"a.py", CODE) == {}
        await colours.close()


async def test_a_child_that_cannot_start_costs_only_colours() -> None:
    colours = Colours(["/no/such/program"])
    assert await all_lines(colours, b"a.py", CODE) == {}
    await colours.close()


def test_every_colour_is_one_of_the_theme() -> None:
    assert set(COLOURS) <= set(SYNTAX)
    assert COLOURS[colour_of("Literal.String.Double")] == "string"
    assert COLOURS[colour_of("Keyword.Constant")] == "number"
    assert colour_of("Text") == -1


def test_frames_are_bounded() -> None:
    assert read_frame(io.BytesIO(HEADER.pack(MAX_FRAME + 1) + b"x")) is None
    assert read_frame(io.BytesIO(HEADER.pack(10) + b"short")) is None
    assert read_frame(io.BytesIO(b"\0\0")) is None
    stream = io.BytesIO()
    write_frame(stream, Request(1, b"a", "b"))
    stream.seek(0)
    assert read_frame(stream) is not None


@given(st.lists(st.lists(st.integers(-9, 99), max_size=12), max_size=5))
def test_numbers_that_make_no_span_are_left_out(lines: list[list[int]]) -> None:
    for spans in lines_of(Answer(1, 3, lines)).values():
        assert all(0 <= start < end and kind in COLOURS for start, end, kind in spans)


@settings(max_examples=30)
@given(st.text(st.sampled_from("def x():\n 'ab'\"#\t{}世"), max_size=300))
def test_spans_lie_inside_of_their_lines(text: str) -> None:
    lines = text.split("\n")
    for answer in answers(Request(1, b"a.py", text)):
        for number, spans in lines_of(answer).items():
            assert all(end <= len(lines[number]) for _, end, _ in spans)


async def test_bytes_that_are_no_utf_8_are_coloured_around() -> None:
    async for review in opened_review(
        [FakeFile("a.py", b"x = 1\n", b"name = 'caf\xe9'  # \xff\n")]
    ):
        loaded = review.screen.loaded
        assert loaded is not None
        text, first = loaded.text_of("new")
        assert (text, first) == ("name = 'caf?'  # ?\n", 0)
        await settle(review.pilot)
        document = review.screen.pane.document
        assert document is not None
        assert any(name == "string" for _, _, name in document.spans["new"][0])
