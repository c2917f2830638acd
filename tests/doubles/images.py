"""Images in a store that are whole for everybody who looks, and boot nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from vm.image import store


def put_image(
    images: Path,
    content: str = "fake",
    name: str = "base",
    *,
    imported: store.Imported | None = None,
    base: bytes = b"",
    **facts: str,
) -> str:
    """Put an image into `images`, as a build would, and return its digest.

    `facts` are fields of its record, `base` the bytes of its base system where they matter.
    """
    fresh = images / "fresh"
    fresh.mkdir(parents=True)
    for file in store.FILES:
        (fresh / file).write_text(f"{file} {content}")
    if base:
        (fresh / store.BASE).write_bytes(base)
    files = store.record_files(fresh)
    digest = store.set_digest(files)
    record = store.ImageRecord(
        format=store.FORMAT,
        name=name,
        digest=digest,
        kernel_release="6.1",
        files=files,
        toolkit_source=facts.get("toolkit_source", ""),
        base_source=facts.get("base_source", ""),
        suite="s",
        built=facts.get("built", "now"),
        tools={},
        toolkit_packages=[],
        base_packages=[],
        imported=imported,
    )
    (fresh / store.RECORD).write_bytes(msgspec.json.encode(record))
    (images / store.BUILT).mkdir(exist_ok=True)
    fresh.rename(images / store.BUILT / digest)
    (images / name).unlink(missing_ok=True)
    (images / name).symlink_to(f"{store.BUILT}/{digest}")
    return digest


def any_image(*_: object) -> store.ImageSet:
    """Take the place of a search for an image: there is one, whatever it is called."""
    none = Path("/nonexistent")
    return store.ImageSet("base", none, none, none, none, "0" * 64, "6.1")
