from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vm.egress.names import (
    MAX_NAME,
    BadName,
    canonical,
    canonical_pattern,
    covers,
    covers_pattern,
    from_labels,
    printable,
    specificity,
    too_wide,
    widened,
)

LABELS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=12).map(
    lambda text: "a" + text
)
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
PATTERNS = st.tuples(st.booleans(), NAMES).map(lambda pair: "*." * pair[0] + pair[1])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Pkgs.Example", "pkgs.example"),
        ("pkgs.example.", "pkgs.example"),
        ("_dmarc.a_b.example", "_dmarc.a_b.example"),
        ("r3---sn-x.example", "r3---sn-x.example"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("a。b．example", "a.b.example"),
        ("ｐｋｇｓ.example", "pkgs.example"),
        ("dead.beef", "dead.beef"),
        ("1password.example", "1password.example"),
        ("single", "single"),
    ],
)
def test_every_spelling_of_a_name_is_one_name(text: str, name: str) -> None:
    assert canonical(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "1.2.3.4.",
        "１２７.0.0.1",
        "127。0。0。1",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
        "fe80::1%eth0",
        "host.0x",
        "example.1",
    ],
)
def test_what_could_be_an_address_is_no_name(text: str) -> None:
    with pytest.raises(BadName) as caught:
        canonical(text)
    assert caught.value.code == "literal"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.b..",
        "a b",
        "a\0.example",
        "evil.example\0.good.example",
        "a\nb.example",
        "a\x1b[2J.example",
        "-a.example",
        "a-.example",
        "a/b",
        "a:443",
        "a%2eb.example",
        "user@a.example",
        "*.example",
        "☃.example",
        "a‮b.example",
        "é" * 70 + ".example",
        "a" * 64 + ".example",
        ".".join(["a" * 63] * 4) + ".b",
        "a" * 100_000,
    ],
)
def test_what_is_no_name_is_refused_in_printable_words(text: str) -> None:
    with pytest.raises(BadName) as caught:
        canonical(text)
    assert caught.value.reason.isascii()
    assert caught.value.reason.isprintable()
    assert len(caught.value.reason) < 400


def test_the_longest_name_is_taken_and_one_more_is_not() -> None:
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    assert len(longest) == MAX_NAME
    assert canonical(longest + ".") == longest
    with pytest.raises(BadName, match="at most 253"):
        canonical(longest + "d")


def test_a_look_alike_shows_as_what_it_is() -> None:
    assert canonical("аpple.example") == "xn--pple-43d.example"


@pytest.mark.parametrize(
    "labels", [(b"a.b", b"example"), (b"a\0", b"example"), (b"\xc3\xa9", b"example"), (), (b"",)]
)
def test_labels_of_a_dns_message_hide_no_dot_and_no_byte(labels: tuple[bytes, ...]) -> None:
    with pytest.raises(BadName):
        from_labels(labels)


def test_labels_of_a_dns_message_become_the_same_name() -> None:
    assert from_labels((b"Pkgs", b"EXAMPLE")) == canonical("pkgs.example.")


@given(st.text(max_size=80))
def test_canonical_is_idempotent_and_ascii(text: str) -> None:
    try:
        name = canonical(text)
    except BadName:
        return
    assert canonical(name) == name
    assert canonical(name.upper() + ".") == name
    assert name.isascii()
    assert name.isprintable()
    assert not name.endswith(".")


def test_a_space_in_what_was_typed_shows_as_a_space() -> None:
    with pytest.raises(BadName) as caught:
        canonical("foo bar")
    assert "'foo bar'" in caught.value.reason


@given(st.lists(st.binary(max_size=70), max_size=8))
@example([b"A", b""])
def test_no_labels_do_more_than_being_refused(labels: list[bytes]) -> None:
    try:
        name = from_labels(tuple(labels))
    except BadName:
        return
    assert name.count(".") == len([label for label in labels if label]) - 1


@pytest.mark.parametrize("text", ["*", "*.", "a.*.example", "*a.example", "*.*.example", "**.x"])
def test_a_star_stands_alone_and_first(text: str) -> None:
    with pytest.raises(BadName):
        canonical_pattern(text)


def test_a_wildcard_means_one_label_at_least_and_never_the_apex() -> None:
    pattern = canonical_pattern("*.Pkgs.Example.")
    assert pattern == "*.pkgs.example"
    assert covers(pattern, "a.pkgs.example")
    assert covers(pattern, "b.a.pkgs.example")
    assert not covers(pattern, "pkgs.example")
    assert not covers(pattern, "evilpkgs.example")


@given(PATTERNS, PATTERNS, NAMES)
def test_a_pattern_that_covers_another_covers_its_names(wide: str, narrow: str, name: str) -> None:
    if covers_pattern(wide, narrow) and covers(narrow, name):
        assert covers(wide, name)
    if covers(wide, name):
        assert covers_pattern(wide, name)


@given(PATTERNS, NAMES)
def test_below_a_wildcard_all_are_covered(pattern: str, name: str) -> None:
    rest = pattern.removeprefix("*.")
    assert covers("*." + rest, f"{name}.{rest}")
    assert covers_pattern("*." + rest, f"*.{name}.{rest}")
    assert not covers("*." + rest, rest)


def test_the_longer_name_is_the_more_specific_one() -> None:
    patterns = ["*.b.example", "a.b.example", "*.a.b.example", "*.example"]
    ordered = sorted(patterns, key=specificity, reverse=True)
    assert ordered == ["a.b.example", "*.a.b.example", "*.b.example", "*.example"]


def test_widening_stops_below_a_public_top_level() -> None:
    assert widened("a.pkgs.example") == "*.pkgs.example"
    assert widened("pkgs.lan") == "*.lan"
    assert widened("pkgs.invalid-public") is None
    assert widened("single") is None
    assert too_wide("*.com")
    assert not too_wide("com")


@given(st.one_of(st.text(max_size=400), st.binary(max_size=400)))
def test_a_refused_name_is_shown_as_visible_ascii(raw: str | bytes) -> None:
    shown = printable(raw)
    assert shown.isascii()
    assert shown.isprintable()
    assert " " not in shown
    assert len(shown) <= MAX_NAME
    assert printable(shown) == shown
