"""The rewritten patterns match what the plain ones match, and in time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from snapshot.gitignore import matcher
from tests.sampling import sampled

PIECES = ["a", "b", "ab", "*", "?", "[ab]", "[]a]", "\\\\[a^b]", "\\*", "a*b", ".", "*a"]
segments = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def joined(bang: str, slash: str, parts: list[str], end: str) -> str:
    return bang + slash + "/".join(parts) + end


patterns = st.builds(
    joined,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/", "**/"]),
    st.lists(segments | st.just("**") | st.just("*"), min_size=1, max_size=6),
    st.sampled_from(["", "", "/", "/**"]),
)
names = st.text("ab.*", min_size=1, max_size=5)
paths = st.builds(
    joined,
    st.just(""),
    st.just(""),
    st.lists(names, min_size=1, max_size=7),
    st.sampled_from(["", "/"]),
)


@settings(max_examples=sampled(300, 100), deadline=None)
@given(st.lists(patterns, min_size=1, max_size=3), st.lists(paths, min_size=1, max_size=20))
def test_the_same_names_match(lines: list[str], asked: list[str]) -> None:
    plain, ours = GitIgnoreSpec.from_lines(lines, backend="simple"), matcher(lines)
    for path in asked:
        wanted, found = plain.check_file(path), ours.check_file(path)
        assert (found.include, found.index) == (wanted.include, wanted.index), (lines, path)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a*b[!a]*a/", "ab/aa/ab/", False),
        ("a*b[!a]*a/", "abbca/", True),
        ("*[!a]*ab", "aaa/ab", False),
        ("*[!]^]*b*c", "]^xbc", True),
        ("[^ab]?[!c]", "xyz", True),
        ("**/*[!x]*/**/b", "xx/ax/b", True),
        ("[[a&&b||c~~d]", "[", True),
        ("[[a&&b||c~~d]", "&", True),
    ],
)
def test_a_class_never_takes_a_slash(pattern: str, path: str, matches: bool) -> None:
    assert matcher([pattern]).match_file(path) == matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/".join(["**/a"] * 8) + "/**/b", "/".join("a" * 200)),
        ("/".join(["**/*a*a*"] * 8) + "/**/b", "/".join(["aaaa"] * 500)),
        ("*a*a*a*/*a*a*a*/*a*a*a*/*a*a*a*b", "/".join(["a" * 200] * 10)),
        ("a*a*a*a*b", "a" * 250),
        ("*?*?*?*?b", "a" * 250),
        ("[!b]*[!b]*[!b]*[!b]*c", "/".join(["a" * 250] * 16)),
        ("*/**/*/**/*/**/*/**/b", "/".join("a" * 2000)),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    found = matcher([pattern])
    began = time.perf_counter()
    assert not found.match_file(path)
    assert time.perf_counter() - began < 2.0  # milliseconds; the plain ones take minutes to years
