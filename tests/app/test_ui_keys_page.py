from __future__ import annotations

from pathlib import Path

from textual.binding import Binding

from app.ui.keys import key_groups, keys_page, rows_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "keys.md"


def test_the_guides_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == keys_page(), (
        "Run: python -m app.ui.keys > docs/guide/keys.md"
    )


def test_all_binding_ids_differ() -> None:
    assert len({group.title for group in key_groups()}) == len(key_groups())


def test_keys_of_one_action_share_a_row() -> None:
    rows = rows_of([Binding("j,down", "move(1)", "down"), Binding("k", "move(-1)", "up")])
    assert [(row.keys, row.what) for row in rows] == [(("j", "down"), "down"), (("k",), "up")]
