"""What an image says of itself, as far as it is kept: where it is from, and its ENV."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from vm.image.store import Imported
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.image.oci.documents import Run
    from vm.image.oci.furnish import Furnished
    from vm.image.oci.layout import Image

MAX_ENV: Final = 128
MAX_ENV_BYTES: Final = 32 << 10
"""Bytes of all variables: they stand in the command line of what starts a program in the guest."""

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_OURS: Final = frozenset(
    {
        "SHELL",
        "HOME",
        "USER",
        "LOGNAME",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "HOSTNAME",
        "TERM",
        "XDG_RUNTIME_DIR",
    }
)
"""Variables that tell of the user and the terminal, which are Cloche's own."""

_TEXT: Final = 4096
_WORDS: Final = 100


def environment(entries: Iterable[str]) -> tuple[dict[str, str], int]:
    """Return an image's ENV as defaults for programs, and how many of its lines were left out."""
    found: dict[str, str] = {}
    odd = size = 0
    for entry in entries:
        name, equals, value = entry.partition("=")
        if name in _OURS:
            continue
        size += len(entry.encode("utf-8", "surrogatepass"))
        fits = len(found) < MAX_ENV and size <= MAX_ENV_BYTES and "\0" not in value
        if equals and fits and _ENV_NAME.match(name) and _encodes(value):
            found[name] = value
        else:
            odd += 1
    return found, odd


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def provenance(
    image: Image, reference: str, digest: str, furnished: Furnished, *, plain_http: bool
) -> Imported:
    """Return what is remembered of an imported image; `digest` is what its reference meant."""
    run = image.config.config
    env, odd = environment((run.env or []) if run else [])
    left_out = [f"{odd} of its variables left out"] if odd else []
    return Imported(
        reference=reference,
        digest=digest,
        manifest=image.manifest_digest,
        config=image.manifest.config.digest,
        layers=[one.digest for one in image.manifest.layers],
        platform=image.config.platform.text,
        created=clean(image.config.created or ""),
        env=env,
        shell=furnished.shell,
        **_wishes(run),
        plain_http=plain_http,
        notes=[*furnished.notes, *left_out],
    )


def _wishes(run: Run | None) -> dict[str, Any]:
    if run is None:
        return {}
    return {
        "working_dir": clean(run.working_dir),
        "user": clean(run.user),
        "entrypoint": [clean(word) for word in (run.entrypoint or [])[:_WORDS]],
        "cmd": [clean(word) for word in (run.cmd or [])[:_WORDS]],
    }


def clean(text: str) -> str:
    """Return a text out of an image, printable and not too long."""
    return printable(text[:_TEXT])
