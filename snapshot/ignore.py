"""What is withheld from the agent, and what the review does not show.

Two questions with two sets of rules. *Withheld* (asked while the workspace is captured): the secret
names, the heavy folders without tracked files, `.broodboxignore`, `.clocheignore` and the options.
*Ignored* (asked about the agent's changes): the same user patterns and heavy folders, and what the
`.gitignore` files of the base said. Both are settled when the snapshot is taken: an agent's edit of
an ignore file changes nothing here. A path that git tracks is never ignored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, cast

from snapshot.errors import StoreDamaged
from snapshot.gitignore import matcher
from snapshot.paths import folders_above
from snapshot.patterns import HEAVY_FOLDERS, is_secret, is_secret_below, names_a_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pathspec import GitIgnoreSpec

MAX_PATTERN: Final = 1024
"""Longest pattern in characters; longer ones are left out with a notice."""

MAX_STARS: Final = 4
"""Most `*` in one part of a pattern: with more, matching one long name could take minutes."""

MAX_IGNORE_BYTES: Final = 1 << 20
"""Longest ignore file that is read."""

_MEMO: Final = 50_000
_STARS: Final = re.compile(r"\*+")

Verdict = Literal["keep", "heavy", "excluded"]


def _nothing_tracked(path: bytes) -> bool:
    del path
    return False


@dataclass(slots=True)
class PatternFile:
    """Patterns of one place that can be used, and sentences about those that cannot."""

    lines: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])

    def add(self, lines: Iterable[str], source: str) -> None:
        """Take the usable patterns out of `lines`."""
        for line in lines:
            text = line.rstrip("\r\n")
            reason = _unusable(text)
            if reason:
                self.notices.append(f"{source}: the pattern {text[:80]!r} {reason}.")
            elif text.strip() and not text.startswith("#"):
                self.lines.append(text)

    def add_bytes(self, data: bytes, source: str) -> None:
        """Take the usable patterns out of a file's content."""
        text = data[:MAX_IGNORE_BYTES].decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        self.add(text.split("\n"), source)


def _unusable(line: str) -> str:
    """Say why a line cannot be used, or nothing."""
    if len(line) > MAX_PATTERN or "\0" in line:
        return "is too long to be used"
    if any(len(_STARS.findall(part)) > MAX_STARS for part in line.split("/")):
        return f"has more than {MAX_STARS} stars in one part and is not used"
    if line.startswith("!") and names_a_secret(line[1:]):
        return "cannot bring back a secret and is not used"
    try:
        matcher([line])
    except ValueError:
        return "is no pattern and is not used"
    return ""


class UserRules:
    """Heavy folders and the user's own patterns, in one order: a later pattern decides."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """`patterns` are usable ones (see PatternFile)."""
        self.patterns = tuple(patterns)
        self._spec = matcher([f"{n}/" for n in HEAVY_FOLDERS] + [*self.patterns])
        self._heavy = frozenset(name.encode() for name in HEAVY_FOLDERS)

    def verdict(self, path: bytes, is_dir: bool) -> Verdict:
        """Judge this very path; a heavy folder may still hold tracked files."""
        if not self.patterns:  # the common case, asked for every file of the workspace
            heavy = is_dir and path[path.rfind(b"/") + 1 :] in self._heavy
            return "heavy" if heavy else "keep"
        found = self._spec.check_file(_text(path, is_dir))
        if not found.include or found.index is None:
            return "keep"
        return "heavy" if found.index < len(HEAVY_FOLDERS) else "excluded"


class GitRules:
    """`.gitignore` of every folder and `.git/info/exclude` of the root, as git orders them."""

    def __init__(self) -> None:
        self.lines: dict[bytes, list[str]] = {}
        self.exclude: list[str] = []
        self._specs: dict[bytes, GitIgnoreSpec] = {}
        self._exclude: GitIgnoreSpec | None = None

    def add(self, folder: bytes, lines: list[str]) -> None:
        """Set the patterns of the `.gitignore` in `folder`."""
        if lines:
            self.lines[folder] = lines
            self._specs.pop(folder, None)

    def matches(self, path: bytes, is_dir: bool) -> bool:
        """Judge this very path: the deepest file with an answer decides, the exclude file last."""
        folder = path
        while folder:
            folder = folder[: max(folder.rfind(b"/"), 0)]
            spec = self._spec(folder)
            if spec is not None:
                below = path[len(folder) + 1 :] if folder else path
                found = spec.check_file(_text(below, is_dir)).include
                if found is not None:
                    return found
        if self._exclude is None:
            self._exclude = matcher(self.exclude)
        return bool(self._exclude.check_file(_text(path, is_dir)).include)

    def _spec(self, folder: bytes) -> GitIgnoreSpec | None:
        found = self._specs.get(folder)
        if found is None and folder in self.lines:
            found = self._specs[folder] = matcher(self.lines[folder])
        return found


class IgnoreRules:
    """The base snapshot's rules, as they are asked about the agent's changes."""

    def __init__(
        self,
        user: UserRules | None = None,
        git: GitRules | None = None,
        withheld: Iterable[bytes] = (),
        tracked: Callable[[bytes], bool] = _nothing_tracked,
        holds_tracked: Callable[[bytes], bool] = _nothing_tracked,
    ) -> None:
        """Join the rules.

        `withheld` are the paths that the snapshot left out, `tracked` says whether git lists a
        path, `holds_tracked` whether it lists anything below a folder.
        """
        self.user = user or UserRules(())
        self.git = git or GitRules()
        self.withheld = frozenset(withheld)
        self._tracked = tracked
        self._holds_tracked = holds_tracked
        self._memo: dict[bytes, bool] = {}

    def ignored(self, path: bytes, is_dir: bool = False) -> bool:
        """Whether the review hides a change of `path` (a tracked path never is)."""
        if self._tracked(path):
            return False
        cut = path.rfind(b"/")
        return (cut > 0 and self._folder_ignored(path[:cut])) or self._matches(path, is_dir)

    def secret(self, path: bytes) -> bool:
        """Whether `path` is withheld by name, whatever else is said."""
        return is_secret_below(path)

    def was_withheld(self, path: bytes) -> bool:
        """Whether the snapshot left out `path` or a folder above it."""
        above = folders_above(path)
        return path in self.withheld or any(folder in self.withheld for folder in above)

    def _folder_ignored(self, folder: bytes) -> bool:
        """Ask from the outermost folder on that is not known; an agent's can be very deep."""
        unknown: list[bytes] = []
        while folder and folder not in self._memo:
            unknown.append(folder)
            folder = folder.rpartition(b"/")[0]
        known = self._memo.get(folder, False)
        for below in reversed(unknown):
            known = known or self._matches(below, is_dir=True)
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[below] = known
        return known

    def _matches(self, path: bytes, is_dir: bool) -> bool:
        verdict = self.user.verdict(path, is_dir)
        if verdict == "excluded" or (verdict == "heavy" and not self._holds_tracked(path)):
            return True
        return self.git.matches(path, is_dir)

    def to_json(self) -> dict[str, object]:
        """Give the rules as plain values; what git tracks is in the manifest."""
        return {
            "user": list(self.user.patterns),
            "exclude": self.git.exclude,
            "gitignore": {os.fsdecode(folder): lines for folder, lines in self.git.lines.items()},
            "withheld": sorted(map(os.fsdecode, self.withheld)),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> IgnoreRules:
        """Read what `to_json` gave (`bind_rules` adds what git tracks). Raises StoreDamaged."""
        try:
            git = GitRules()
            git.exclude = _lines(value["exclude"])
            for folder, lines in cast("dict[str, object]", value["gitignore"]).items():
                git.add(os.fsencode(folder), _lines(lines))
            withheld = [os.fsencode(text) for text in _lines(value["withheld"])]
            return cls(UserRules(_lines(value["user"])), git, withheld)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreDamaged(
                f"The snapshot's rules cannot be read ({error}).",
                "Remove the session with: cloche rm ID",
            ) from error


def secret_or_excluded(user: UserRules, path: bytes, is_dir: bool) -> Verdict | Literal["secret"]:
    """Judge this very path for the capture, secrets first."""
    return "secret" if is_secret(path, is_dir) else user.verdict(path, is_dir)


def _text(path: bytes, is_dir: bool) -> str:
    text = path.decode("utf-8", "surrogateescape")
    return text + "/" if is_dir else text


def _lines(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("a list of texts is missing")
    items = cast("list[object]", value)
    if not all(isinstance(item, str) for item in items):
        raise TypeError("a text is missing")
    return cast("list[str]", items)
