"""What a change can do by side effect, in two tiers and with the reason in one phrase.

"Accept all safe" leaves out what is `held` and says why; what is `warned` it accepts and names.
The names are data (`risk_names`), files of package managers are judged by what changed in them
(`risk_contents`, `risk_locks`), and what an entry is counts as well: links, the executable bit,
binaries, characters that hide.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .lines import is_binary
from .names import NameRefused, check_link, plain_name, short_names
from .risk_contents import risk_of_contents
from .risk_names import FOLDERS, NAMES, NO_RISK, PATTERNS, REPOSITORY, TIERS, Risk, Tier
from .safe_text import decode, is_suspicious

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HIDES_TEXT", "Risk", "Tier", "risk_of", "risk_of_name"]

HIDES_TEXT: Final = "holds invisible or reordering characters"

_EXECUTABLE: Final = "100755"
_LINK: Final = "120000"
_FILE_TYPES: Final = ("100644", "100755")
_BARE_HEAD: Final = re.compile(rb"ref: refs/|[0-9a-f]{40}([0-9a-f]{24})?\n?$")

_SHORT: Final = short_names({*NAMES, *(part for folder in FOLDERS for part in folder.split("/"))})
"""The long names that a short one of NTFS can stand for."""


def risk_of(
    path: bytes,
    *,
    mode: str,
    old_mode: str,
    agent: bytes | None,
    base: bytes | None = None,
    old_path: bytes | None = None,
) -> Risk:
    """Return the strictest risk of a change; `NO_RISK` when there is none.

    Args:
        path: the new path, relative to the workspace.
        mode: git tree mode of the agent's side ("" when it is gone).
        old_mode: git tree mode of the base ("" when it is new).
        agent: the agent's content; a link's target.
        base: the base's content.
        old_path: where a renamed file was; to move it away is as good as to delete it there.

    """
    found = [risk_of_name(path)]
    if old_path is not None and old_path != path:
        found.append(risk_of(old_path, mode="", old_mode=old_mode, agent=None, base=base))
    before = base if old_mode in _FILE_TYPES else None
    after = (agent or b"") if mode in _FILE_TYPES else None
    found += [
        risk
        for name in _spellings(_parts(path)[-1])
        if (risk := risk_of_contents(name, after, before))
    ]
    if mode:
        found.append(_risk_of_entry(path, mode, old_mode, agent or b"", base))
    return _strictest(found)


def _strictest(risks: Iterable[Risk]) -> Risk:
    """Return the first of those with the strictest tier."""
    return max(risks, key=lambda risk: TIERS.index(risk.tier), default=NO_RISK)


@lru_cache(4096)
def risk_of_name(path: bytes) -> Risk:
    """Return the risk of a path alone."""
    *folders, name = _parts(path)
    found = [_risk_of_folders(folders)]
    for spelling in _spellings(name):
        found += [NAMES[spelling]] if spelling in NAMES else []
        found += [risk for pattern, risk in PATTERNS if pattern.search(spelling)][:1]
    return _strictest(found)


def _parts(path: bytes) -> list[str]:
    """Return the components in the form in which names are compared; a backslash splits too."""
    return [plain_name(part) for part in re.split(r"[\\/]", decode(path))]


def _spellings(part: str) -> tuple[str, ...]:
    """Return a component and the long names that it can stand for."""
    stem, tilde, rest = part.partition("~")
    if not tilde:
        return (part,)
    number, _, ending = rest.partition(".")
    if not number.isdecimal() or not stem:
        return (part,)
    long = _SHORT.get((stem[: 7 - len(number)], ending), ())
    return (part, *long) if len(stem) + len(number) <= 7 else (part,)


def _risk_of_folders(folders: list[str]) -> Risk:
    """Return the risk of lying in these folders."""
    found = [REPOSITORY for folder in folders if folder.endswith(".git")]
    for depth, folder in enumerate(folders):
        below = _spellings(folders[depth + 1]) if depth + 1 < len(folders) else ()
        for first in _spellings(folder):
            found += [FOLDERS[first]] if first in FOLDERS else []
            pairs = (f"{first}/{second}" for second in below)
            found += [FOLDERS[pair] for pair in pairs if pair in FOLDERS]
    return _strictest(found)


def _risk_of_entry(path: bytes, mode: str, old_mode: str, agent: bytes, base: bytes | None) -> Risk:
    """Return the risk of what the entry is now; all of these are held."""
    reason = _strange(path, mode, old_mode, agent, base)
    return Risk("held", reason) if reason else NO_RISK


def _strange(path: bytes, mode: str, old_mode: str, agent: bytes, base: bytes | None) -> str:
    """Return the phrase for what the entry is now."""
    if mode == _LINK:
        try:
            check_link(path, agent)
        except NameRefused as refused:
            return f"is a link, and {refused}"
        return "is a link in place of a file" if old_mode in _FILE_TYPES else ""
    if mode == _EXECUTABLE and old_mode != _EXECUTABLE:
        return "becomes executable"
    if mode in _FILE_TYPES and is_binary(agent):
        return "is binary and cannot be read in review"
    if _parts(path)[-1] == "head" and _BARE_HEAD.match(agent):
        return "can make git take its folder for a repository"
    if _hides_text(agent, base) or is_suspicious(decode(path)):
        return HIDES_TEXT
    return ""


def _hides_text(agent: bytes, base: bytes | None) -> bool:
    """Return whether the agent brought in characters that hide or reorder text."""
    if agent.isascii():
        return False
    body = decode(agent).removeprefix("\ufeff")
    if not is_suspicious(body):
        return False
    known = set(decode(base or b"").split("\n"))
    return any(is_suspicious(line) and line not in known for line in body.split("\n"))
