"""Whether imported images are still what their names mean, asked where they came from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from vm.errors import VMError
from vm.image.imports import meaning
from vm.image.oci.reference import parse
from vm.image.oci.skopeo import Way

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.image.store import Imported

ASK_S: Final = 10.0
"""Seconds that a registry may take to say what a tag means."""

_AT_ONCE: Final = 8


class Look(NamedTuple):
    """What a name means now, or why nobody could say."""

    digest: str
    trouble: str


def look(images: Iterable[tuple[str, Imported]]) -> dict[str, Look]:
    """Ask for every image (by its name in the store) at once; those that cannot move are not asked.

    Returns within about ASK_S for eight images.
    """
    asked = {name: imported for name, imported in images if _moves(imported)}
    if not asked:
        return {}
    with ThreadPoolExecutor(min(_AT_ONCE, len(asked))) as pool:
        return dict(zip(asked, pool.map(_ask, asked.values()), strict=True))


def _moves(imported: Imported) -> bool:
    return "@sha256:" not in imported.reference and imported.reference.startswith(
        ("docker://", "oci:")
    )


def _ask(imported: Imported) -> Look:
    try:
        digest = meaning(parse(imported.reference), Way(imported.plain_http), ASK_S)
    except VMError as error:
        return Look("", error.message)
    return Look(digest, "")
