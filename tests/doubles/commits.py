"""Commits of an agent for the screen that reads them, hostile texts among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.protocol_commits import Branch, CommitFile, CommitInfo, CommitList
from tests.doubles.keeper import FakeFile
from tests.doubles.scenes import QUOTES, TOKENIZER, TOKENIZER_NEW, WORKFLOW

if TYPE_CHECKING:
    from tests.doubles.keeper import FakeSession

FIRST, SECOND, MERGE, TRAP = ("1" * 40, "2" * 40, "3" * 40, "4" * 40)
BEFORE = "0" * 40
HOUR = 3600


def give_commits(keeper: FakeSession, now: float) -> None:
    """Let the agent have made four commits on two branches, the last of them with bad manners."""
    files: dict[str, list[FakeFile]] = {
        FIRST: [FakeFile("src/tokenizer.py", TOKENIZER.encode(), TOKENIZER_NEW.encode())],
        SECOND: [
            FakeFile("src/quotes.py", None, QUOTES.encode()),
            FakeFile("logo.png", b"\x89PNG\0\1", b"\x89PNG\0\2\3"),
            FakeFile("docs/guide.md", b"a\n" * 9, b"a\n" * 8 + b"b\n", "renamed", "docs/intro.md"),
        ],
        MERGE: [],
        TRAP: [
            FakeFile(".env", None, b"TOKEN=1\n"),
            FakeFile(".github/workflows/ci.yml", WORKFLOW, WORKFLOW.replace(b"small", b"large")),
        ],
    }
    keeper.commit_files = {(name, False): one for name, one in files.items()}
    keeper.commit_files[TRAP, True] = [file for one in files.values() for file in one]
    keeper.commit_files[SECOND, True] = files[FIRST] + files[SECOND]
    commits = (
        _commit(keeper, TRAP, (MERGE,), "fix\x1b]0;owned\x07 \u202eetad", now - HOUR, (".env",)),
        _commit(keeper, MERGE, (FIRST, SECOND), "Merge branch 'quotes'", now - 2 * HOUR),
        _commit(keeper, SECOND, (FIRST,), "Add quotes\n\nWith a body.\n", now - 3 * HOUR),
        _commit(keeper, FIRST, (BEFORE,), "Scan both kinds of quotes", now - 90 * HOUR),
    )
    branches = (Branch("main", TRAP), Branch("quotes", SECOND))
    keeper.agents_commits = CommitList(keeper.info_value.id, branches, commits)


def _commit(
    keeper: FakeSession,
    name: str,
    parents: tuple[str, ...],
    message: str,
    at: float,
    withheld: tuple[str, ...] = (),
) -> CommitInfo:
    files: list[CommitFile] = []
    for file in keeper.commit_files[name, False]:
        review = file.review()
        counts = (review.added, review.removed) if review.by_lines else (None, None)
        letter = {"added": "A", "deleted": "D"}.get(file.change_kind, "M")
        files.append(CommitFile(file.path, letter, False, *counts))
    author = "Ann \x1b[31mAgent <ann@agent.example>"
    return CommitInfo(name, parents, author, int(at), message, tuple(files), False, withheld)
