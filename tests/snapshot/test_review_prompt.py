"""The request for changes as a text: what it names, and that no file can speak in it."""

from __future__ import annotations

from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from snapshot.prompt import (
    MAX_QUOTED_LINES,
    MAX_TEXT,
    Item,
    Prompt,
    Standing,
    compose_prompt,
)


def item(key: str, quote: bytes = b"", text: str = "no", start: int = 0, **more: bool) -> Item:
    path = b"src/a.py"
    facts = {"old": False, "outdated": False} | more
    return Item(
        key, path, start, start + 2 if start else 0, facts["old"], quote, text, facts["outdated"]
    )


def test_everything_is_named_once_and_in_order() -> None:
    prompt = compose_prompt(
        [item("r", b"-old\n+new\n", "it breaks the build", 7)],
        [item("c", b"x = 1\n", "Why 1?\nSay so.", 3), Item("all", b"", 0, 0, False, b"", "Thanks")],
        [Standing(b"done.py", 2, 2)],
        [Standing(b"half.py", 1, 3)],
    )
    assert prompt.keys == ("c", "all", "r")
    assert (
        prompt.text
        == """\
I reviewed your changes.

Please change:
1. src/a.py:3-5
   > x = 1
   Why 1?
   Say so.
2. The whole change
   Thanks

I rejected these changes. Undo them and do not bring them back:
3. src/a.py:7-9
   > -old
   > +new
   it breaks the build

Merged into my workspace; build on it and leave it as it is:
- done.py

Accepted; leave it as it is:
- half.py (1 of 3 hunks)"""
    )


def test_without_anything_to_ask_there_is_no_text() -> None:
    assert compose_prompt([], [], [Standing(b"a", 1, 1)], []) == Prompt("", (), 0)


def test_places_say_which_side_and_which_version() -> None:
    text = compose_prompt([item("1", start=4, old=True), item("2", outdated=True)], [], [], []).text
    assert "src/a.py:4-6 (numbers of the snapshot)\n" in text
    assert "src/a.py (an earlier version of it)\n" in text


@given(st.binary(max_size=400), st.text(max_size=200), st.binary(min_size=1, max_size=60))
def test_files_cannot_speak_in_the_prompt(quote: bytes, text: str, path: bytes) -> None:
    prompt = compose_prompt([Item("k", path, 1, 1, False, quote, text)], [], [], [])
    lines = prompt.text.split("\n")
    body = lines[
        lines.index("I rejected these changes. Undo them and do not bring them back:") + 2 :
    ]
    assert all(line.startswith("   ") for line in body)
    assert not [
        c for c in prompt.text if category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"
    ]


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_the_text_is_bounded_and_says_what_it_left_out(sizes: list[int]) -> None:
    items = [item(str(n), b"y" * size + b"\nz" * size, "w" * size) for n, size in enumerate(sizes)]
    prompt = compose_prompt(items, [], [Standing(b"f", 1, 2)] * 100, [])
    assert len(prompt.text) <= MAX_TEXT + 200
    assert len(prompt.keys) + prompt.left_out == len(items)
    assert prompt.text.count("> z") <= MAX_QUOTED_LINES * len(items)
