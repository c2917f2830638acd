"""Images in a store that are whole for everybody who looks, and boot nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from vm.image import store

if TYPE_CHECKING:
    from pathlib import Path


def put_image(images: Path, content: str = "fake") -> str:
    """Put an image called `base` into `images`, as a build would, and return its digest."""
    fresh = images / "fresh"
    fresh.mkdir(parents=True)
    for name in store.FILES:
        (fresh / name).write_text(f"{name} {content}")
    files = store.record_files(fresh)
    digest = store.set_digest(files)
    record = store.ImageRecord(
        format=store.FORMAT,
        name="base",
        digest=digest,
        kernel_release="6.1",
        files=files,
        toolkit_source="",
        base_source="",
        suite="s",
        built="now",
        tools={},
        toolkit_packages=[],
        base_packages=[],
    )
    (fresh / store.RECORD).write_bytes(msgspec.json.encode(record))
    (images / store.BUILT).mkdir(exist_ok=True)
    fresh.rename(images / store.BUILT / digest)
    (images / "base").unlink(missing_ok=True)
    (images / "base").symlink_to(f"{store.BUILT}/{digest}")
    return digest
