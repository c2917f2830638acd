from __future__ import annotations

import pickle
import time
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import find_lexer_class_by_name

from snapshot.highlight import (
    MAX_LINE,
    MAX_TEXT,
    START,
    Span,
    highlight,
    highlight_window,
    is_resumable,
    lexer_for,
    line_starts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLES = {
    "python": (
        'def f(x):\n    """Doc\n    with `code` and {x}.\n    """\n'
        "    return f\"{x!r}\" + 'a\\\n b'\n@d\nclass A: pass\n"
    ),
    "typescript": (
        "const a = `x ${b + `y ${c}` } z\n more`;\n/* long\n comment */ let d: string = /re[g]/;\n"
    ),
    "javascript": "function f() { return `a ${1}\n b` }\n// c\n",
    "rust": '/* a /* nested */\n b */ fn main() { let s = r#"raw\n "# ; }\n',
    "go": "package main\n/* c\n */ var s = `raw\n string`\n",
    "java": 'class A { /** doc\n */ String s = """\n text\n """; }\n',
    "kotlin": 'fun f() = """raw ${x}\n s"""\n',
    "css": "a { color: red; /* c\n */ }\n@media x { b { c: d } }\n",
    "html": "<a href='x'>t</a><!-- c\n --><script>let x = '</b>';\n</script>\n",
    "toml": "[a]\nb = '''x\n y'''\nc = 1\n",
    "bash": 'f() { echo "$(ls `x`)" ; }\ncat <<EOF\n$x\nEOF\n',
    "csharp": 'class A { string s = @"a\n b"; }\n',
}

WHOLE = {
    "c": 'int x; /* a\n b */ char *s = "x";\n',
    "json": '{"a": [1,\n 2]}\n',
    "yaml": "a:\n  - b\n",
}


def reference(text: str, name: str) -> list[list[Span]]:
    """Return the spans of pygments' own lexing, put to lines character by character."""
    tokens = find_lexer_class_by_name(name)().get_tokens_unprocessed(text)
    names: list[str] = [""] * len(text)
    edges: set[int] = set()
    for at, token, value in tokens:
        edges.add(at)
        names[at : at + len(value)] = [".".join(cast("tuple[str, ...]", token))] * len(value)
    lines: list[list[Span]] = []
    for begin, line in zip(line_starts(text), text.split("\n"), strict=True):
        spans: list[Span] = []
        for at in range(len(line)):
            name_here = names[begin + at]
            joins = spans and spans[-1].end == at and spans[-1].token == name_here
            if joins and begin + at not in edges:
                spans[-1] = Span(spans[-1].start, at + 1, name_here)
            elif name_here not in ("", "Text", "Text.Whitespace"):
                spans.append(Span(at, at + 1, name_here))
        lines.append(spans)
    return lines


@pytest.mark.parametrize("name", [*SAMPLES, *WHOLE])
def test_whole_texts_are_token_identical_to_pygments(name: str) -> None:
    text = (SAMPLES | WHOLE)[name] * 3
    assert highlight(text, name) == reference(text, name)


@pytest.mark.parametrize("name", SAMPLES)
def test_these_lexers_resume(name: str) -> None:
    assert is_resumable(find_lexer_class_by_name(name))


@pytest.mark.parametrize("name", SAMPLES)
def test_windows_are_token_identical_from_any_checkpoint(name: str) -> None:
    text = SAMPLES[name] * (20_000 // len(SAMPLES[name]))
    everything = highlight_window(text, name, 0, 1 << 30)
    assert len(everything.checkpoints) > 2
    count = len(everything.lines)
    for first in range(0, count, max(1, count // 10)):
        window = highlight_window(text, name, first, first + 60, everything.checkpoints)
        assert window.lines == everything.lines[first : first + 60]
        cold = highlight_window(text, name, first, first + 60, START)
        assert cold.lines == window.lines


@given(st.sampled_from(sorted(SAMPLES)), st.text(alphabet="\"'`{}()/*\\\n #<>=ab1$", max_size=200))
def test_nonsense_is_lexed_like_pygments(name: str, text: str) -> None:
    assert highlight(text, name) == reference(text, name)


@given(st.sampled_from([*SAMPLES, *WHOLE]), st.text(max_size=60))
def test_spans_stay_inside_of_their_lines(name: str, text: str) -> None:
    lines = text.split("\n")
    found = highlight(text, name)
    assert len(found) == len(lines)
    for line, spans in zip(lines, found, strict=True):
        assert all(0 <= span.start < span.end <= len(line) for span in spans)
        assert ordered(spans)


def ordered(spans: Sequence[Span]) -> bool:
    return all(a.end <= b.start for a, b in pairwise(spans))


def test_carriage_returns_and_marks_do_not_shift_spans() -> None:
    text = "\n\nx = 1\r\ny = 'a\x0cb'\r\n"
    lines = highlight(text, "python")
    assert [line[0].start for line in lines if line] == [0, 0]
    assert Span(4, 5, "Literal.Number.Integer") in lines[2]


def test_a_window_deep_in_a_file_is_cheap() -> None:
    text = SAMPLES["python"] * 3000
    began = time.process_time()
    known = highlight_window(text, "python", 0, 1 << 30).checkpoints
    whole = time.process_time() - began
    windows: list[float] = []
    for first in range(20_000, 20_500, 100):
        began = time.process_time()
        highlight_window(text, "python", first, first + 60, known)
        windows.append(time.process_time() - began)
    assert min(windows) < whole / 8  # usually a ninetieth


def test_values_pass_between_processes() -> None:
    window = highlight_window(SAMPLES["go"], "go", 0, 2)
    assert pickle.loads(pickle.dumps(window)) == window


def test_lexers_are_found_by_name() -> None:
    assert lexer_for(b"src/a.py", "x = 1\n") == "python"
    assert lexer_for(b"a.unknown-ending", "x\n") == ""
    assert lexer_for(b"\xff.rs", "fn main() {}\n") == "rust"
    assert lexer_for(b"a.py", "x" * (MAX_LINE + 1)) == ""
    assert lexer_for(b"a.py", "x\n" * (MAX_TEXT // 2 + 1)) == ""
    assert lexer_for(b"a.c", "int x;\n" * 50_000) == ""


def test_no_lexer_means_no_spans() -> None:
    assert highlight_window("a\nb\n", "", 0, 2).lines == [[], []]
    assert highlight("a\nb", "no such lexer") == [[], []]
    assert highlight_window("a\nb\n", "python", 5, 9).lines == []
