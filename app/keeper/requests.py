"""Asking the agent for changes: what it was not told of yet, as one prompt."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from app import protocol_review as wire
from snapshot.decisions import LETTERS, unit_key
from snapshot.facts import reason_of, sent_fact
from snapshot.hunks import Hunk
from snapshot.prompt import Item, Prompt, Standing, compose_prompt
from snapshot.review import comes_to_be

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.keeper.remarks import Remarks, Shelf
    from app.keeper.summaries import UnitSummary
    from snapshot.review import ChangedFile, FileReview

    class Standings(Shelf, Protocol):
        """What requests need of the desk besides."""

        remarks: Remarks

        def is_merged(self, file: ChangedFile, unit: UnitSummary) -> bool:
            """Tell whether what is accepted of a unit is in the workspace."""
            ...


class Requests:
    """What there is to ask for; blocks on disk like the desk."""

    def __init__(self, desk: Standings) -> None:
        self._desk = desk

    def request(self) -> wire.ChangeRequest:
        """Return the prompt of everything that the agent was not told of yet."""
        with self._desk.lock:
            prompt, comments = self._compose()
        known = set(prompt.keys) & comments
        return wire.ChangeRequest(
            prompt.text,
            rejected=len(prompt.keys) - len(known),
            comments=len(known),
            left_out=prompt.left_out,
            items=prompt.keys,
        )

    def note_sent(self, items: tuple[str, ...]) -> None:
        """Note that the agent was told of these; what is unknown by now is no error."""
        with self._desk.lock:
            now, texts = time.time(), self._texts()
            facts = [sent_fact(key, now, texts[key]) for key in items if key in texts]
            if facts:
                self._desk.log.note(facts)

    def _texts(self) -> dict[str, str]:
        """Return what was said with each comment and each rejected unit."""
        texts = {comment.id: comment.text for comment in self._desk.remarks.known()}
        for file, unit in self._rejected():
            key = unit_key(file.path, unit.id)
            texts[key] = reason_of(self._desk.log.facts("reason"), file.path, unit.id)
        return texts

    def _compose(self) -> tuple[Prompt, set[str]]:
        comments = list(self._comments())
        merged, accepted = self._standing()
        prompt = compose_prompt(self._rejections(), comments, merged, accepted)
        return prompt, {item.key for item in comments}

    def _comments(self) -> Iterator[Item]:
        for comment in self._desk.remarks.known():
            if self._is_sent(comment.id, comment.text):
                continue
            start, end, outdated = self._desk.remarks.placed(comment)
            yield Item(
                comment.id,
                comment.path,
                start,
                end,
                comment.side == "old",
                comment.quote,
                comment.text,
                outdated,
            )

    def _is_sent(self, key: str, text: str) -> bool:
        sent = self._desk.log.facts("sent").get(key)
        return sent is not None and sent["text"] == text

    def _rejected(self) -> Iterator[tuple[ChangedFile, UnitSummary]]:
        for file in self._desk.files.values():
            for unit in self._desk.summary(file).units:
                if LETTERS["rejected"] in self._desk.log.marks(file.path, unit.id, unit.size):
                    yield file, unit

    def _rejections(self) -> Iterator[Item]:
        for file, unit in self._rejected():
            key = unit_key(file.path, unit.id)
            reason = reason_of(self._desk.log.facts("reason"), file.path, unit.id)
            if not self._is_sent(key, reason):
                yield self._rejection(file, unit, key, reason)

    def _rejection(self, file: ChangedFile, unit: UnitSummary, key: str, reason: str) -> Item:
        review = self._desk.review(file)
        found = review.unit(unit.id)
        old_start, old_lines, start, lines = unit.numbers
        is_old = not lines and bool(old_lines)
        first, count = (old_start, old_lines) if is_old else (start, lines)
        if not isinstance(found, Hunk):
            label = f"{found.kind}: {found.label}".encode(errors="surrogateescape")
            return Item(key, file.path, 0, 0, False, label, reason)
        marks = self._desk.log.marks(file.path, unit.id, unit.size)
        quote = _rejected_lines(review, found, marks)
        return Item(key, file.path, first, first + count - 1, is_old, quote, reason)

    def _standing(self) -> tuple[list[Standing], list[Standing]]:
        """Return the files with something merged, and those with something accepted only."""
        merged: list[Standing] = []
        accepted: list[Standing] = []
        for file in self._desk.files.values():
            units = self._desk.summary(file).units
            taken = [unit for unit in units if self._is_accepted(file, unit)]
            done = sum(self._desk.is_merged(file, unit) for unit in taken)
            if done:
                merged.append(Standing(file.path, done, len(units)))
            if len(taken) > done and comes_to_be(file, (unit.aspect for unit in taken)):
                accepted.append(Standing(file.path, len(taken) - done, len(units)))
        return merged, accepted

    def _is_accepted(self, file: ChangedFile, unit: UnitSummary) -> bool:
        marks = self._desk.log.marks(file.path, unit.id, unit.size)
        return LETTERS["accepted"] in marks


def _rejected_lines(review: FileReview, hunk: Hunk, marks: str) -> bytes:
    """Return a hunk's rejected lines with - and + before them."""
    lines: list[bytes] = []
    for change, mark in zip(hunk.changes, marks, strict=True):
        if mark != LETTERS["rejected"]:
            continue
        if change.old is not None:
            lines.append(b"-" + review.old_lines[change.old])
        if change.new is not None:
            lines.append(b"+" + review.new_lines[change.new])
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
