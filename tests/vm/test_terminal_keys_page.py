from __future__ import annotations

from pathlib import Path

from tests.vm.key_tables.page import page

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "terminal-keys.md"


def test_the_guides_page_of_what_reaches_an_agent_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "Run: python -m tests.vm.key_tables.page > docs/guide/terminal-keys.md"
    )
