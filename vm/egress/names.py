"""The one canonicaliser of host names: rules, `explain`, DNS, SNI and Host all go through it.

A canonical name is ASCII in small letters, without trailing dot, each label 1–63 characters of
letters, digits, `-` and `_`, the whole at most 253. Names beyond ASCII become their `xn--` form and
stay in it, so a look-alike letter shows. What could be read as an address is never a name.

Pure functions; sources: RFC 1035 (lengths), RFC 5891 (IDNA, by the `idna` package), the WHATWG URL
standard ("ends in a number": such a host is an address, in whatever notation).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

import idna

MAX_NAME: Final = 253
"""Longest name in characters, without the trailing dot."""

MAX_LABEL: Final = 63
MAX_TEXT: Final = 1024
"""Longest text that is looked at at all; no name has a longer spelling that anyone types."""

WILDCARD: Final = "*."

INTERNAL: Final = "cloche.internal"
"""Names below it are services of Cloche itself, never looked up in any DNS."""

PRIVATE_SUFFIXES: Final = frozenset(
    ("corp", "example", "home", "internal", "intranet", "lan", "private", "test")
)
"""Top-level names that no public registry hands out (RFC 6762 appendix G, RFC 2606, ICANN)."""

_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")


class BadName(ValueError):
    """A text that is no host name: `code` is stable, `reason` one printable sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def canonical(text: str) -> str:
    """Return the one spelling of a host name; raise BadName for everything else."""
    if not text:
        raise BadName("bad-name", "A host name is missing.")
    if len(text) > MAX_TEXT:
        raise BadName("name-too-long", f"A host name has at most {MAX_NAME} characters.")
    lowered = text.lower() if text.isascii() else _mapped(text)
    if lowered.endswith("."):
        lowered = lowered[:-1]
    if _is_literal(lowered):
        raise BadName("literal", f"{quoted(text)} is an address, not a name.")
    if len(lowered) > MAX_NAME:
        raise BadName("name-too-long", f"A host name has at most {MAX_NAME} characters.")
    name = ".".join(_label(label, text) for label in lowered.split("."))
    return _checked_again(name, text)


def from_labels(labels: tuple[bytes, ...]) -> str:
    """Return the canonical name of a DNS message's labels, with or without the root's empty one.

    A dot inside a label would move the border between labels: such a name is refused, like every
    byte beyond ASCII and any other empty label. Raises BadName.
    """
    labels = labels[:-1] if labels[-1:] == (b"",) else labels
    if not all(label and label.isascii() and b"." not in label for label in labels):
        raise BadName("bad-name", "A label of the name holds bytes that no host name has.")
    return canonical(b".".join(labels).decode("ascii"))


def canonical_pattern(text: str) -> str:
    """Return the one spelling of a rule's host: a name, or `*.` before one.

    `*.x.example` stands for names with at least one label more, not for `x.example`.
    Raises BadName.
    """
    if not text.startswith(WILDCARD):
        if "*" in text:
            reason = f"In {quoted(text)} the * may only stand alone and first, as in *.x.example."
            raise BadName("bad-wildcard", reason)
        return canonical(text)
    rest = text.removeprefix(WILDCARD)
    if "*" in rest:
        raise BadName("bad-wildcard", "A rule has at most one *, and it stands first.")
    return WILDCARD + canonical(rest)


def covers(pattern: str, name: str) -> bool:
    """Tell whether a canonical pattern stands for a canonical name."""
    if pattern.startswith(WILDCARD):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return pattern == name


def covers_pattern(wide: str, narrow: str) -> bool:
    """Tell whether every name that `narrow` stands for is one of `wide`'s."""
    if narrow.startswith(WILDCARD):
        return wide.startswith(WILDCARD) and (wide == narrow or narrow[2:].endswith("." + wide[2:]))
    return covers(wide, narrow)


def specificity(pattern: str) -> tuple[int, bool]:
    """Return what orders patterns: the longer name first, and before a wildcard its equal."""
    return len(pattern.removeprefix(WILDCARD)), not pattern.startswith(WILDCARD)


def widened(name: str) -> str | None:
    """Return `*.x` of a name in `x`, or None where that would be a whole public top level."""
    _, dot, parent = name.partition(".")
    return WILDCARD + parent if dot and not too_wide(WILDCARD + parent) else None


def too_wide(pattern: str) -> bool:
    """Tell whether a pattern stands for a whole public top-level domain."""
    rest = pattern.removeprefix(WILDCARD)
    return pattern != rest and "." not in rest and rest not in PRIVATE_SUFFIXES


def printable(raw: bytes | str, limit: int = MAX_NAME) -> str:
    """Return a refused name as printable ASCII for logs, in at most `limit` characters.

    Everything else than visible ASCII is written as a number, so nothing in it can act; what is
    visible stays, so a text that was made printable before stays the same.
    """
    text = raw[: limit + 1].decode("latin-1") if isinstance(raw, bytes) else raw[: limit + 1]
    shown = "".join(_visible(character, isinstance(raw, bytes)) for character in text)
    return shown if len(shown) <= limit else shown[: max(0, limit - 3)] + "..."


def quoted(text: str) -> str:
    """Return a refused text in quotes for an error: printable, and a space in it is a space."""
    words = text[: MAX_NAME + 1].split(" ")
    shown = " ".join(printable(word) for word in words)
    return f"'{shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 3] + '...'}'"


def _visible(character: str, is_byte: bool) -> str:
    if "!" <= character <= "~":
        return character
    return f"\\{ord(character):03o}" if is_byte else f"\\u{{{ord(character):x}}}"


def _mapped(text: str) -> str:
    """Map a text beyond ASCII as browsers do (UTS 46): case, widths, full stops of scripts."""
    try:
        return idna.uts46_remap(text, std3_rules=False, transitional=False)
    except idna.IDNAError:
        raise BadName("bad-name", f"{quoted(text)} is no host name.") from None


def _label(label: str, text: str) -> str:
    if not label.isascii():
        try:
            label = idna.alabel(label).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise BadName("bad-name", f"{quoted(text)} is no host name.") from None
    if len(label) > MAX_LABEL:
        raise BadName(
            "name-too-long", f"A label of a host name has at most {MAX_LABEL} characters."
        )
    if not _LABEL.match(label):
        raise BadName("bad-name", f"{quoted(text)} is no host name.")
    return label


def _checked_again(name: str, text: str) -> str:
    """Check what only shows once all labels are ASCII."""
    if len(name) > MAX_NAME:
        raise BadName("name-too-long", f"A host name has at most {MAX_NAME} characters.")
    if _is_literal(name):
        raise BadName("literal", f"{quoted(text)} is an address, not a name.")
    return name


def _is_literal(text: str) -> bool:
    """Tell whether some resolver would take this text for an address (`0x7f.1`, `[::1]`)."""
    if ":" in text:
        return text.startswith("[") or _is_ipv6(text)
    return bool(_NUMBER.match(text.rpartition(".")[2]))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
