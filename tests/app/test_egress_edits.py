"""When an edit of the rules by hand is to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from app.egress.edits import MISTAKE, Edits, fingerprint
from app.ui.fleet_facts import newly_mistaken
from tests.doubles.scenes import sessions

if TYPE_CHECKING:
    from pathlib import Path

    from app.protocol import SessionInfo


def test_a_file_that_is_being_written_is_left_alone_until_it_rests(tmp_path: Path) -> None:
    edits, rules = Edits(), tmp_path / "rules.yaml"

    def look() -> bool:
        return edits.rests(fingerprint(tmp_path, tmp_path))

    edits.read(fingerprint(tmp_path, tmp_path))
    assert not look()
    for text in ("always:", "always: {deny:", "always: {deny: [a.example]}"):
        rules.write_text(text)
        assert not look()
    assert look()
    edits.read(fingerprint(tmp_path, tmp_path))
    assert not look()


def test_every_file_counts_and_so_does_what_a_link_leads_to(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    real = tmp_path / "dotfiles.yaml"
    seen = {fingerprint(home, work)}
    (home / "config.yaml").write_text("{}")
    seen.add(fingerprint(home, work))
    (work / ".cloche.yaml").write_text("{}")
    seen.add(fingerprint(home, work))
    (home / "rules.yaml").symlink_to(real)
    seen.add(fingerprint(home, work))  # it leads nowhere: no rules, as before
    for text in ("{}", "{ }"):
        real.write_text(text)
        seen.add(fingerprint(home, work))
    (home / "rules.yaml").unlink()
    seen.add(fingerprint(home, work))
    assert len(seen) == 5
    assert len(fingerprint(home, None)) == 2


def test_a_mistake_is_told_once_though_every_session_has_it() -> None:
    before = [made.info_value for made in sessions()]
    told = f"{MISTAKE} rules.yaml:3: no\x1b[2J"
    after = [_with(info, told) for info in before]
    assert newly_mistaken(before, after) == f"{MISTAKE} rules.yaml:3: no\u241b[2J"
    assert newly_mistaken(after[:1], after) == ""
    assert newly_mistaken(after, before) == ""


def _with(info: SessionInfo, notice: str) -> SessionInfo:
    return msgspec.structs.replace(info, notices=(*info.notices, notice))
