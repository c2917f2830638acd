"""Rows: widths, clusters, and the two ways of reading one giving the same."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.engines import engine
from tests.doubles.noise import noise
from vm.terminal.cell_text import safe_cluster
from vm.terminal.screen import MAX_CLUSTER_TEXT, Unit
from vm.terminal.wire_frame import pack_frame, unpack_frame


@pytest.mark.parametrize(
    ("cluster", "wide", "drawn"),
    [
        ("👨‍👩‍👧‍👦", True, "👨"),
        ("👍🏽", True, "👍"),
        ("🇺🇸", True, "US"),
        ("🇺", True, "U "),
        ("❤\ufe0f", True, "❤"),
        ("☺\ufe0e", False, "☺"),
        ("e\u0301", False, "e\u0301"),
        ("e\u0301\u0323", False, "e\u0301\u0323"),
        ("a\u200d", False, "a"),
        ("\u200d", False, "\ufffd"),
        ("\u202e", True, "\ufffd "),
        ("x\u202e", False, "x"),
        ("\ue0b0\ufe0f", False, "\ue0b0"),
    ],
)
def test_clusters_become_what_every_terminal_draws(cluster: str, wide: bool, drawn: str) -> None:
    assert safe_cluster(cluster, wide) == drawn


def runs(text: str) -> list[tuple[str, int]]:
    terminal = engine(20, 5)
    terminal.feed(text.encode())
    row = terminal.frame().rows[0]
    found: list[tuple[str, int]] = []
    place = 0
    for run in row.runs:
        found.append((row.text[place : place + run.characters], run.cells))
        place += run.characters
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ab漢字c", [("ab", 2), ("漢字", 4), ("c" + " " * 13, 14)]),
        ("e\u0301x", [("e\u0301", 1), ("x" + " " * 18, 19)]),
        ("🇺🇸x", [("USx" + " " * 17, 20)]),
        ("❤\ufe0fx", [("❤", 2), ("x" + " " * 17, 18)]),
        ("\u00a0x", [(" x" + " " * 18, 20)]),
        ("│─é", [("│─é" + " " * 17, 20)]),
        ("\ue0b0\uf126 \U000f0001x", [("\ue0b0\uf126 \U000f0001x" + " " * 15, 20)]),
    ],
)
def test_runs_say_how_many_cells_they_take(text: str, wanted: list[tuple[str, int]]) -> None:
    assert runs(text) == wanted


def test_a_wide_character_that_does_not_fit_goes_to_the_next_row() -> None:
    terminal = engine(20, 5)
    terminal.feed(("x" * 19 + "漢").encode())
    rows = terminal.frame().rows
    assert rows[0].text == "x" * 19 + " "
    assert rows[1].text.startswith("漢")


def test_half_a_wide_character_is_never_shown() -> None:
    terminal = engine(20, 5)
    terminal.feed("漢字\x1b[1;2Hx".encode())
    row = terminal.frame().rows[0]
    assert row.text.startswith(" x字")
    assert sum(run.cells for run in row.runs) == 20


@pytest.mark.parametrize("number", range(5))
def test_frames_of_noise_at_any_size_survive_the_wire(number: int) -> None:
    seed = random.Random(number)
    terminal = engine(seed.randrange(20, 150), seed.randrange(5, 50))
    for step in range(60):
        terminal.feed(noise(seed))
        if seed.random() < 0.3:
            terminal.resize(seed.randrange(0, 200), seed.randrange(0, 60))
        terminal.scroll(seed.randrange(-20, 20))
        frame = terminal.frame(full=seed.random() < 0.1)
        assert unpack_frame(pack_frame(step, frame)) == (step, frame)
    terminal.select(0, 0, Unit.CELL)
    terminal.select_to(19, 4)
    terminal.selected_text()
    terminal.snapshot()


def test_halves_left_behind_take_one_cell_each() -> None:
    terminal = engine(20, 5)
    for data in ("漢字\x1b[1;2H\x1b[P", "漢字\x1b[1;2H\x1b[@", "\x1b[1;19H漢\x1b[1;20H\x1b[X"):
        terminal.feed(f"\x1bc{data}".encode())
        row = terminal.frame(full=True).rows[0]
        assert sum(run.cells for run in row.runs) == 20
        assert sum(run.characters for run in row.runs) == len(row.text)


def test_a_cluster_bomb_is_bounded() -> None:
    terminal = engine(20, 5)
    terminal.feed(("e" + "\u0301" * 20_000).encode())
    row = terminal.frame().rows[0]
    assert len(row.text) < 400
    assert sum(run.cells for run in row.runs) == 20


PIECES = st.lists(
    st.sampled_from(
        ["abc", " ", "é", "漢", "👍🏽", "🇺🇸", "e\u0301", "\u200d", "❤\ufe0f", "\u202e", "ｱ", "नि",
         "\x1b[31m", "\x1b[1m", "\x1b[m", "\x1b[K", "\x1b[5G", "\x1b[2X", "\x1b[4@", "\x1b[3P",
         "\r\n", "\t", "\b", "\x1b[44m\x1b[K", "\x1b[1;1H"]
    ),
    max_size=60,
)  # fmt: skip


@given(PIECES)
@settings(max_examples=150, deadline=None)
def test_runs_always_cover_their_row(pieces: list[str]) -> None:
    terminal = engine(33, 7)
    terminal.feed("".join(pieces).encode())
    frame = terminal.frame(full=True)
    assert set(frame.rows) == set(range(7))
    for row in frame.rows.values():
        assert sum(run.cells for run in row.runs) == 33
        assert sum(run.characters for run in row.runs) == len(row.text)
        assert row.text.isprintable()
    assert terminal.frame(full=True).rows == frame.rows


@given(st.lists(PIECES, max_size=5))
@settings(max_examples=80, deadline=None)
def test_changed_rows_add_up_to_the_page(batches: list[list[str]]) -> None:
    terminal = engine(33, 7)
    shown = dict(terminal.frame().rows)
    for pieces in batches:
        terminal.feed("".join(pieces).encode())
        shown.update(terminal.frame().rows)
    assert shown == terminal.frame(full=True).rows


def test_a_pile_of_marks_on_one_letter_is_cut() -> None:
    terminal = engine(40, 6)
    terminal.feed(("e" + "\u0301" * 60).encode())
    row = terminal.frame(full=True).rows[0]
    assert row.text.rstrip() == "e" + "\u0301" * (MAX_CLUSTER_TEXT - 1)
