"""Whether an image is what a build would make today, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vm.errors import ImageMissing
from vm.image import store
from vm.image.build import base_source, is_current
from vm.image.imports import import_source
from vm.image.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vm.image.recipes import Recipe

PACKAGES_DAYS: Final = 30
"""After so many days the packages of a base system are old: security fixes are waiting."""

_DAY_NS: Final = 86_400 * 10**9


class Reason(NamedTuple):
    """Why an image is stale."""

    code: str
    """`damaged`, `recipe`, `toolkit`, `packages`, or `moved` of an imported one."""
    text: str
    """The same as a part of a sentence."""
    command: str
    """What makes the image fresh."""


def stale(
    record: store.ImageRecord, now: float, recipes: Mapping[str, Recipe] = RECIPES
) -> tuple[Reason, ...]:
    """Return why an image is stale at `now` (unix seconds); nothing when it is fresh.

    `recipes` are all that there are. Whether an imported image moved on is asked elsewhere.
    """
    if record.imported is not None:
        return _imported(record, record.imported)
    build = f"cloche image build {record.name}"
    found: list[Reason] = []
    recipe = recipes.get(record.name)
    if recipe is None:
        found.append(Reason("recipe", "its recipe is gone", f"cloche image rm {record.name}"))
    elif record.base_source != base_source(recipe):
        found.append(Reason("recipe", "its recipe changed", build))
    elif not is_current(record):
        found.append(Reason("toolkit", "Cloche's toolkit changed", build))
    days = packages_days(record, now)
    if days > PACKAGES_DAYS:
        text = f"its packages are {days} days old"
        found.append(Reason("packages", text, f"cloche image build --force {record.name}"))
    return tuple(found)


def _imported(record: store.ImageRecord, imported: store.Imported) -> tuple[Reason, ...]:
    again = store.remedy(record)
    if record.base_source != import_source(imported.config):
        return (Reason("recipe", "images are imported in another way now", again),)
    if not is_current(record):
        build = f"cloche image build {record.name}"
        return (Reason("toolkit", "Cloche's toolkit changed", build),)
    return ()


def moved(record: store.ImageRecord, digest: str) -> tuple[Reason, ...]:
    """Return why an imported image is stale where its reference means `digest` now."""
    if record.imported is None or digest == record.imported.digest:
        return ()
    text = f"{record.imported.reference} is another image now ({digest[7:19]})"
    return (Reason("moved", text, store.remedy(record)),)


def packages_days(record: store.ImageRecord, now: float) -> int:
    """Return the age of an image's base system in days.

    A new toolkit takes over the base system that was there, so what counts is when that was made.
    """
    return max(0, (int(now * 10**9) - record.files[store.BASE].mtime_ns) // _DAY_NS)


class Listed(NamedTuple):
    """An image by name: its record, unless it is damaged, and why it is stale."""

    name: str
    record: store.ImageRecord | None
    reasons: tuple[Reason, ...]


def list_stale(
    store_folder: Path, now: float, recipes: Mapping[str, Recipe] = RECIPES
) -> list[Listed]:
    """Return every name of the store, those of damaged images too, and why each is stale."""
    return [_listed(store_folder, name, now, recipes) for name in store.names(store_folder)]


def _listed(store_folder: Path, name: str, now: float, recipes: Mapping[str, Recipe]) -> Listed:
    try:
        record = store.read_record(store.image_folder(store_folder, name))
    except ImageMissing as error:
        why = error.message.partition(name)[2].strip(" .")
        return Listed(name, None, (Reason("damaged", f"it {why}", error.hint),))
    return Listed(name, record, stale(record, now, recipes))
