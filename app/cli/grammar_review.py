"""The grammar of the commands about what an agent changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli.grammar import add_repeated

if TYPE_CHECKING:
    from app.cli.grammar import Adder


def add_review(add: Adder) -> None:
    """Add what shows, judges and takes home what an agent changed."""
    add("changes", "list what the agent changed", session=True)
    diff = add("diff", "print what the agent changed", session=True)
    diff.add_argument("path", metavar="PATH", nargs="?", default="", help="only this path")
    diff.add_argument(
        "--commit",
        default="",
        metavar="COMMIT",
        help="one of the agent's commits by its id or the beginning of it, or a whole branch",
    )
    diff.add_argument("--patch", action="store_true", help="exact bytes, for git apply")
    _comment(add)
    _judge(add)
    commits = add("commits", "list the agent's commits, or take them as refs", session=True)
    commits.add_argument(
        "--fetch",
        action="store_true",
        help="write them into the workspace's repository as refs/cloche/ID/BRANCH",
    )
    _merge(add)
    undo = add("undo", "take a whole merge back")
    undo.add_argument("merge", metavar="MERGE", help="the id that merge printed")


def _comment(add: Adder) -> None:
    comment = add("comment", "comment on what the agent changed, or list comments", session=True)
    comment.add_argument(
        "place",
        metavar="PATH[:LINE[-LINE]]",
        nargs="?",
        default="",
        help="a file, or lines of it; . is the whole review",
    )
    comment.add_argument(
        "text", metavar="TEXT", nargs="?", default="", help="the comment; - reads it from stdin"
    )
    comment.add_argument("--hunk", default="", metavar="HID", help="comment on this hunk")
    comment.add_argument("--old", action="store_true", help="LINE counts in the snapshot's file")
    comment.add_argument("--list", action="store_true", help="list the comments (the default)")
    comment.add_argument("--remove", default="", metavar="CID", help="remove a comment by its id")


def _judge(add: Adder) -> None:
    review = add("review", "say how far a review is, export it, or ask for changes", session=True)
    review.add_argument(
        "--export",
        choices=("prompt", "patch"),
        default="",
        metavar="WHAT",
        help="prompt: what to ask the agent for; patch: what is accepted, for git apply",
    )
    review.add_argument(
        "--import",
        dest="patch",
        default="",
        metavar="FILE",
        help="decide as a patch says that was exported and edited; - reads it from stdin",
    )
    review.add_argument(
        "--send", action="store_true", help="show that prompt and type it into the agent's terminal"
    )


def _merge(add: Adder) -> None:
    merge = add("merge", "write accepted changes into the workspace", session=True)
    what = "accept a path, or what is open and held by no risk of what a gitignore pattern matches"
    add_repeated(merge, "--accept", "PATTERN", what)
    add_repeated(merge, "--reject", "PATTERN", "leave out what would be accepted")
    add_repeated(merge, "--hunk", "HID", "accept one hunk by its id or the beginning of it")
    merge.add_argument(
        "--accept-safe", action="store_true", help="accept all that cannot execute by side effect"
    )
    add_repeated(
        merge,
        "--resolve",
        "PATH=SIDE",
        "solve the conflicts of a path: base, yours, agent, both or both-reversed",
    )
    merge.add_argument("--dry-run", action="store_true", help="only say what would be written")
