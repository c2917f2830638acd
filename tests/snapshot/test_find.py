"""Finding a text in one changed file: each line once, and never one less than there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snapshot.find import Places, may_hold
from snapshot.review import ChangedFile, FileReview

LINE = st.text("abKσΣ\u212a\x1b\r\t", max_size=6)
CONTENT = st.lists(LINE, max_size=6).map("\n".join).map(str.encode)


def review_of(base: bytes, agent: bytes) -> FileReview:
    return FileReview(ChangedFile(b"f", "modified", mode="100644", old_mode="100644"), base, agent)


@given(base=CONTENT, agent=CONTENT, text=st.text("abk \x1b␛", min_size=1, max_size=3))
def test_what_is_found_holds_the_text_and_nothing_is_missed(
    base: bytes, agent: bytes, text: str
) -> None:
    review = review_of(base, agent)
    found = Places(review)(text)
    assert len(found) == len(set(found))
    if found:
        assert may_hold(base, text) or may_hold(agent, text)
    for line, data in enumerate(review.new_lines):
        if text.lower() in data.decode().rstrip("\n").lower():
            assert ("new", line) in found or "\x1b" in text or "\r" in data.decode()


def test_a_line_that_stayed_is_found_once_and_one_that_went_on_the_old_side() -> None:
    found = Places(review_of(b"stay x\ngone x\n", b"stay x\ncame x\n"))("X")
    assert found == [("new", 0), ("new", 1), ("old", 1)]
    assert Places(review_of(b"a\n", b"b\n"))("") == []
    assert not may_hold(None, "x")
    assert not may_hold(b"abc", "x")
    assert may_hold(b"abc", "\u241b")
