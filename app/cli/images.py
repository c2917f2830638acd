"""`cloche image list` and `cloche image rm`: what is in the store, what is stale, what can go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from app.errors import EXIT_DONE, AppError
from app.paths import Paths
from app.services.image_use import Needs, needs
from app.services.recipes import load_recipes
from vm.image import removal, staleness, store

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from app.cli.output import Output
    from app.services.image_look import Look
    from vm.image.removal import Version
    from vm.image.staleness import Listed

SHORT: Final = 12
"""Digits of a digest that people see."""

FEWEST: Final = 6
"""Digits of a digest that are taken for one."""

NAMED_SESSIONS: Final = 4
"""Sessions that a refusal names."""


def list_images(arguments: argparse.Namespace, output: Output) -> int:
    """List the images, why they are stale, and what else was built and is still there."""
    paths = Paths.from_environment()
    now = time.time()
    listed = staleness.list_stale(paths.store, now, load_recipes(paths.config))
    looks = {} if arguments.offline else _looks(listed)
    listed = [_moved(one, looks.get(one.name)) for one in listed]
    built, used = removal.versions(paths.store), needs(paths)
    output.result(
        {
            "images": [_image(paths.store, one, looks.get(one.name)) for one in listed],
            "versions": [_version(version, used) for version in built],
        },
        lambda: _print(output, listed, looks, built, used),
    )
    return EXIT_DONE


def _looks(listed: list[Listed]) -> dict[str, Look]:
    imported = [
        (one.name, one.record.imported) for one in listed if one.record and one.record.imported
    ]
    if not imported:
        return {}
    from app.services.image_look import look

    return look(imported)


def _moved(listed: Listed, found: Look | None) -> Listed:
    if listed.record is None or found is None or not found.digest:
        return listed
    return listed._replace(reasons=listed.reasons + staleness.moved(listed.record, found.digest))


def _image(folder: Path, listed: Listed, look: Look | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": listed.name, "stale": bool(listed.reasons)}
    facts["reasons"] = [reason._asdict() for reason in listed.reasons]
    facts["unknown"] = look.trouble if look else ""
    if listed.record is None:
        return facts
    record = listed.record
    image = store.image_set(store.image_folder(folder, listed.name).resolve(), record)
    files = {name: str(getattr(image, name)) for name in ("kernel", "vmlinux", "initramfs", "base")}
    return {
        **facts,
        "digest": record.digest,
        "kernel_release": record.kernel_release,
        "built": record.built,
        "suite": record.suite,
        "packages_days": staleness.packages_days(record, time.time()),
        "imported": msgspec.to_builtins(record.imported),
        **files,
    }


def _version(version: Version, used: Needs) -> dict[str, Any]:
    return {
        "digest": version.digest,
        "name": version.recipe,
        "built": version.built,
        "images": list(version.names),
        "sessions": list(used.of(version)),
        "frees": removal.size_of([version.folder]),
    }


def _print(
    output: Output,
    listed: list[Listed],
    looks: dict[str, Look],
    built: list[Version],
    used: Needs,
) -> None:
    rows = [_row(one) for one in listed]
    output.table(rows or [("No images.", "Build one:", "cloche image build base")])
    for one in listed:
        for reason in one.reasons:
            output.line(f"{one.name} is stale: {reason.text}.")
            output.line(f"  {reason.command}")
        if (look := looks.get(one.name)) and look.trouble:
            output.line(f"{one.name} may be stale: {look.trouble}")
    older = [version for version in built if not version.names]
    if not older:
        return
    output.line()
    output.line("Built earlier:")
    output.table(_older(version, used) for version in older)
    if any(not used.of(version) for version in older):
        output.line("  Remove what is unused: cloche image rm --unused")


def _row(one: Listed) -> tuple[str, ...]:
    if one.record is None:
        return one.name, "-", "-", "damaged", ""
    state = "stale" if one.reasons else "fresh"
    record, source = one.record, one.record.imported
    whence = source.reference if source else ""
    return one.name, record.digest[:SHORT], record.kernel_release, state, whence


def _older(version: Version, used: Needs) -> tuple[str, ...]:
    sessions = used.of(version)
    use = f"used by {_some(sessions)}" if sessions else "unused"
    return f"  {version.digest[:SHORT]}", version.recipe or "?", version.built[:16] or "-", use


class _Going(NamedTuple):
    """What a removal takes away."""

    names: tuple[str, ...]
    versions: tuple[Version, ...]
    folders: tuple[Path, ...]
    """What lies on the disk of it."""


def remove(arguments: argparse.Namespace, output: Output) -> int:
    """Take an image, a version of one, or all that nothing needs, out of the store."""
    if bool(arguments.target) == arguments.unused:
        raise AppError("usage", "Say one image, or --unused.", "See them: cloche image list")
    paths = Paths.from_environment()
    with removal.store_held(paths.store):
        going = _unused(paths) if arguments.unused else _named(paths, arguments.target)
        freed = removal.size_of(going.folders)
        if not arguments.dry_run:
            removal.remove(paths.store, going.names, going.versions)
    digests = [version.digest for version in going.versions]
    fields = {"images": list(going.names), "versions": digests, "freed": freed}
    output.result(
        {**fields, "dry_run": arguments.dry_run},
        lambda: _tell(output, going, freed, dry_run=arguments.dry_run),
    )
    return EXIT_DONE


def _unused(paths: Paths) -> _Going:
    used = needs(paths)
    gone = [one for one in removal.versions(paths.store) if not one.names and not used.of(one)]
    return _Going((), tuple(gone), tuple(one.folder for one in gone))


def _named(paths: Paths, target: str) -> _Going:
    """Return what a name or a digest means. Raises AppError when something needs it."""
    built, used = removal.versions(paths.store), needs(paths)
    if target in store.names(paths.store):
        return _image_going(paths, target, built, used)
    version = _by_digest(built, target)
    if version.names:
        name = version.names[0]
        text = f"The version {version.digest[:SHORT]} is what the image {name} is now."
        raise AppError("in-use", text, f"Remove the image: cloche image rm {name}")
    _refuse_used(f"The version {version.digest[:SHORT]}", used.of(version))
    return _Going((), (version,), (version.folder,))


def _image_going(paths: Paths, name: str, built: list[Version], used: Needs) -> _Going:
    folder = store.image_folder(paths.store, name)
    mine = [version for version in built if name in version.names]
    _refuse_used(f"The image {name}", [one for version in mine for one in used.of(version)])
    # where another name means the same version, only this name goes
    gone = [version for version in mine if version.names == (name,)]
    plain = () if folder.is_symlink() else (folder,)
    return _Going((name,), tuple(gone), (*plain, *(version.folder for version in gone)))


def _by_digest(built: list[Version], text: str) -> Version:
    found = [one for one in built if len(text) >= FEWEST and one.digest.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise AppError(
            "not-found",
            f"'{text}' means {len(found)} versions.",
            "Say more of its digest: cloche image list --json",
        )
    raise AppError(
        "not-found", f"There is no image or version '{text}'.", "See them: cloche image list"
    )


def _refuse_used(what: str, sessions: list[str] | tuple[str, ...]) -> None:
    if sessions:
        many = "sessions" if len(sessions) > 1 else "session"
        commands = " && ".join(f"cloche rm {one}" for one in sessions[:NAMED_SESSIONS])
        raise AppError(
            "in-use",
            f"{what} is needed by the {many} {_some(sessions)}.",
            f"Take the changes home, then: {commands}",
        )


def _some(sessions: list[str] | tuple[str, ...]) -> str:
    more = len(sessions) - NAMED_SESSIONS
    return ", ".join(sessions[:NAMED_SESSIONS]) + (f" and {more} more" if more > 0 else "")


def _tell(output: Output, going: _Going, freed: int, *, dry_run: bool) -> None:
    if not going.names and not going.versions:
        output.line("Nothing is unused.")
        return
    verb = "would be removed" if dry_run else "removed"
    for name in going.names:
        output.line(f"image {name} {verb}")
    for version in going.versions:
        output.line(f"version {version.digest[:SHORT]} {verb} (built {version.built[:16] or '?'})")
    output.line(f"{freed / (1 << 20):.0f} MiB {'would go' if dry_run else 'went'} free")
