"""What a request used where its answer does not say it, or is not read to its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress.broker.meter import Totals, cost
from vm.egress.broker.tally import Tally
from vm.egress.broker.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def tally(
    kind: str, sent: int, pieces: Sequence[bytes], *, events: bool = True, whole: bool = True
) -> Usage:
    one = Tally(kind)
    one.sent(b"x" * sent)
    one.begins(events)
    for piece in pieces:
        one.received(piece)
    if whole:
        one.ends()
    return one.result()


CHUNK = event({"model": "gpt-5", "choices": []})
START = event({"type": "message_start", "message": {"model": "claude-opus-4-5", "usage":
    {"input_tokens": 1000, "output_tokens": 1}}})  # fmt: skip
NUMBERS = event({"model": "gpt-5", "usage": {"prompt_tokens": 3, "completion_tokens": 2}})


def test_a_stream_without_numbers_is_estimated() -> None:
    assert tally("openai", 41, [CHUNK] * 7) == Usage("gpt-5", 11, output=7, said=False)


def test_a_whole_answer_is_counted_as_it_says() -> None:
    assert tally("openai", 4000, [CHUNK] * 50 + [NUMBERS]) == Usage("gpt-5", 3, output=2)


def test_a_cut_stream_counts_what_came_and_keeps_what_was_told() -> None:
    cut = tally(
        "anthropic", 40, [START, *[event({"type": "content_block_delta"})] * 30], whole=False
    )
    assert cut == Usage("claude-opus-4-5", 1000, output=31)


def test_a_body_without_numbers_is_estimated_by_its_bytes() -> None:
    said = tally("openai", 0, [b"a" * 30, b"b" * 3], events=False, whole=False)
    assert said == Usage("", output=9, said=False)


def test_who_hangs_up_before_a_model_is_named_pays_the_dearest() -> None:
    first = tally("openai", 4_000_000, [], whole=False)
    assert first == Usage("", 1_000_000, said=False)
    dearest, known = cost(first), cost(Usage("gpt-5", 200_000))
    assert dearest is not None
    assert known is not None
    assert dearest >= 5 * known
    totals = Totals().with_answer(first)
    assert totals.dollars == pytest.approx(dearest)
    assert (totals.unpriced, totals.silent) == (0, 1)
    assert cost(Usage("a-model-of-ones-own", 10)) is None  # one that is named has no cost claimed


@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from([CHUNK, NUMBERS, START, b"\n", b"data: {", b"x" * 9])),
    st.booleans(),
    st.booleans(),
)
def test_less_read_is_never_free(sent: int, pieces: list[bytes], events: bool, whole: bool) -> None:
    used = tally("openai", sent, pieces, events=events, whole=whole)
    told = any(b"usage" in piece for piece in pieces)
    assert used.tokens >= (0 if told else -(-sent // 4))
