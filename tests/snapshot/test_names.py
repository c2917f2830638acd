"""Names of an agent: what is refused, and how texts are made printable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.names import NameRefused, alike, check_link, is_git_dir, leaves, split_path
from snapshot.safe_text import decode, is_suspicious, safe_block, safe_line, safe_name


@pytest.mark.parametrize("name", [b".git", b".GIT", b".git.", b".git ", b"git~1", b"GIT~2"])
def test_git_in_all_its_spellings(name: bytes) -> None:
    assert is_git_dir(name)
    with pytest.raises(NameRefused):
        split_path(b"a/" + name + b"/config")


@pytest.mark.parametrize("name", [b".github", b"git", b".gitignore", b"git~x", b"a.git", b"..git"])
def test_names_that_only_resemble_git(name: bytes) -> None:
    assert not is_git_dir(name)
    assert split_path(b"a/" + name) == [b"a", name]


@given(st.binary(max_size=40))
def test_accepted_paths_are_plain(path: bytes) -> None:
    try:
        parts = split_path(path)
    except NameRefused:
        return
    assert b"/".join(parts) == path
    assert not {b"", b".", b".."} & set(parts)


def test_links_inside_are_fine() -> None:
    check_link(b"a/b/link", b"../../c")
    check_link(b"link", b"a/../b")
    assert not leaves(b"a/b", b"../c")
    assert leaves(b"a/b", b"../../c")
    with pytest.raises(NameRefused):
        check_link(b"link", b"")


def test_names_that_differ_in_case_or_form_are_alike() -> None:
    assert alike("é".encode()) == alike("E\u0301".encode())
    assert alike(b"a") != alike(b"b")


@given(st.text())
def test_sanitised_text_has_no_control_character_and_the_same_length(text: str) -> None:
    for safe in (safe_line(text), safe_name(text)):
        assert len(safe.text) == len(text)
        bad = [c for c in safe.text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or is_suspicious(c)]
        assert set(bad) <= {"\t"}
        safe.text.encode()
    assert "\t" not in safe_name(text).text


@given(st.binary())
def test_every_byte_can_be_shown(data: bytes) -> None:
    assert decode(data).encode("utf-8", "surrogateescape") == data
    safe_name(data).text.encode()


def test_markers() -> None:
    assert safe_line("\x1b[2J\x7f\x9b").text == "␛[2J␡\ufffd"
    assert safe_line("a\u2066b") == ("a⇄b", True)
    assert safe_line("a\u200bb") == ("a¤b", True)
    assert safe_name(b"n\nl\xff") == ("n␊l\ufffd", False)
    assert safe_line("app/[slug]/page.tsx") == ("app/[slug]/page.tsx", False)
    assert safe_line("a\u2028b") == ("a␤b", False)
    assert safe_block("a\tb\nc\x1b\u202e\n") == ("a\tb\nc␛⇄\n", True)
