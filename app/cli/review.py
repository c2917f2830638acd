"""Commands that look at what the agent changed: changes and diff."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from app.cli.patch_output import put_patch, refuse_terminal
from app.cli.sources import Asked, source_of
from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE
from app.paths import Paths
from app.services.patches import load_review
from app.wire_text import to_bytes, to_text
from app.wording import counted, plural
from snapshot.decisions import Uniform
from snapshot.patch import export_patch
from snapshot.rows import RowModel
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.cli.sources import Source
    from app.protocol import Changes, FileChange
    from snapshot.rows import Row

LETTERS: Final = {
    "added": "A",
    "modified": "M",
    "deleted": "D",
    "renamed": "R",
    "mode": "m",
    "type": "T",
}
DECIDED: Final = {"open": " ", "accepted": "✓", "rejected": "✗", "mixed": "◐"}
WINDOW: Final = 4096


async def fetch_changes(paths: Paths, session_id: str) -> Changes:
    """Return the session's changes, mirrored just now where its machine runs."""
    async with await SessionClient.open(paths, session_id) as client:
        return await client.changes(refresh=True)


def changes(arguments: argparse.Namespace, output: Output) -> int:
    """List what the agent changed."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    found = asyncio.run(fetch_changes(paths, info.id))
    output.result(msgspec.to_builtins(found), lambda: _print_changes(output, found))
    return EXIT_DONE


def shown(path: str) -> str:
    """Return a path of the protocol for people's eyes."""
    return safe_name(to_bytes(path)).text


def _print_changes(output: Output, found: Changes) -> None:
    if not found.files:
        output.line("Nothing changed.")
    for file in found.files:
        name = shown(file.path)
        if file.old_path:
            name = f"{shown(file.old_path)} → {name}"
        mode = f" {file.old_mode}→{file.mode}" if _mode_changed(file) else ""
        facts = [fact for fact in (file.risk, file.note, "you changed it" * file.drift) if fact]
        facts += _remarks(file)
        output.line(
            f"{DECIDED[file.decision]} {LETTERS[file.kind]} {name}  +{file.added} -{file.removed}"
            f"{mode}{' binary' * file.binary}{'  (' + '; '.join(facts) + ')' if facts else ''}"
        )
    if found.ignored:
        paths, verb = counted(found.ignored, "more path"), "is" if found.ignored == 1 else "are"
        output.line(f"{paths} that changed {verb} ignored by the workspace's own rules.")


def _remarks(file: FileChange) -> list[str]:
    """Return what was said about a file, in a word each."""
    counts = {
        plural(file.comments, "comment"): file.comments,
        "rejected before": sum(hunk.rejected_before for hunk in file.hunks),
        "edited by you": sum(hunk.edited for hunk in file.hunks),
        "merged": sum(hunk.merged for hunk in file.hunks),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _mode_changed(file: FileChange) -> bool:
    return bool(file.mode and file.old_mode and file.mode != file.old_mode)


def diff(arguments: argparse.Namespace, output: Output) -> int:
    """Print the changed lines, of all files or of one."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    path = to_text(arguments.path.encode("utf-8", "surrogateescape")).removeprefix("./")
    asked = Asked(info, path, arguments.commit)
    if arguments.patch:
        return _patch(paths, asked, output)
    source, found = asyncio.run(_fetch_diff(paths, asked))
    value = {"session": info.id, **source.facts, "files": [_json(*one) for one in found]}
    output.result(value, lambda: _print_diff(output, source, found))
    return EXIT_DONE


Diff = list[tuple["FileChange", list[str]]]


async def _fetch_diff(paths: Paths, asked: Asked) -> tuple[Source, Diff]:
    async with await SessionClient.open(paths, asked.info.id) as client:
        source = await source_of(client, asked)
        return source, [(file, await _lines(source, file)) for file in source.files]


def _patch(paths: Paths, asked: Asked, output: Output) -> int:
    """Write the changes as a patch that `git apply` takes. Raises AppError `usage`."""
    refuse_terminal(output, f"cloche diff {asked.info.id} --patch > changes.patch")
    data, left_out = asyncio.run(_fetch_patch(paths, asked))
    return put_patch(output, asked.info.id, data, left_out)


async def _fetch_patch(paths: Paths, asked: Asked) -> tuple[bytes, list[str]]:
    """Return the patch, and the shown names of the files that a patch cannot carry."""
    async with await SessionClient.open(paths, asked.info.id) as client:
        source = await source_of(client, asked)
        kept = [file for file in source.files if not (file.binary or file.note)]
        reviews = [await load_review(source.read, file) for file in kept]
    left_out = [shown(file.path) for file in source.files if file.binary or file.note]
    return export_patch(reviews, Uniform("accepted")), left_out


async def _lines(source: Source, file: FileChange) -> list[str]:
    if file.binary or file.note:
        return []
    return _unified(RowModel(await load_review(source.read, file), "unified"))


def _unified(model: RowModel) -> list[str]:
    """Return the rows as a unified diff; the ids of the hunks stand in the headers."""
    lines: list[str] = []
    block: list[Row] = []
    for start in range(0, len(model), WINDOW):
        for row in model.rows(start, start + WINDOW):
            if row.kind == "fold":
                lines += _block(block, model)
                block = []
            else:
                block.append(row)
    return lines + _block(block, model)


def _block(rows: list[Row], model: RowModel) -> list[str]:
    """Return the rows between two folds with their header."""
    if not rows:
        return []
    old = [row.old_no for row in rows if row.old_no is not None and row.kind != "insert"]
    new = [row.new_no for row in rows if row.new_no is not None and row.kind != "delete"]
    hunks = model.review.hunks
    ids = dict.fromkeys(hunks[row.hunk].id for row in rows if row.hunk is not None)
    span = f"-{old[0] if old else 0},{len(old)} +{new[0] if new else 0},{len(new)}"
    return [f"@@ {span} @@ {' '.join(ids)}", *(_row(row) for row in rows)]


def _row(row: Row) -> str:
    if row.kind == "delete":
        return f"-{row.old_text}{row.old_end}"
    if row.kind == "insert":
        return f"+{row.new_text}{row.new_end}"
    return f" {row.new_text if row.new_text is not None else row.old_text}"


def _json(file: FileChange, lines: list[str]) -> dict[str, Any]:
    return {
        "path": file.path,
        "old_path": file.old_path,
        "kind": file.kind,
        "binary": file.binary,
        "note": file.note,
        "lines": lines,
    }


def _print_diff(output: Output, source: Source, found: Diff) -> None:
    if source.facts.get("left_out"):
        output.line(f"{source.facts['left_out']} more changed paths are not shown.")
    for file, lines in found:
        title = f"{LETTERS[file.kind]} {shown(file.path)}"
        if file.old_path:
            title += f" (was {shown(file.old_path)})"
        if _mode_changed(file):
            title += f" {file.old_mode} → {file.mode}"
        output.styled(output.painted("bold", title))
        if file.binary or file.note:
            output.line(f"  {file.note or 'binary'}")
        for line in lines:
            colour = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
            output.styled(output.painted(colour, line) if colour else output.plain(line))
