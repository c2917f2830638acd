"""Images whose recipe is a line of shell: it runs in a machine, whose `/programs` the image gets.

Nothing of it runs on this host, and the machine reaches what every sandbox does: the registries
that this host's own tools are configured for, and the profile's hosts.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.client.sandboxes import SandboxSpec
from app.errors import AppError
from app.programs import Program
from app.services.sandbox import CopyPair, SandboxRequest, Streams, run_sandbox
from vm.image import added, build, store
from vm.image.recipes import RECIPES
from vm.install import PROGRAMS
from vm.text import printable

if TYPE_CHECKING:
    from app.paths import Paths
    from app.services.sandbox import SandboxReport
    from vm.image.progress import Progress
    from vm.image.recipes import Recipe
    from vm.image.store import ImageSet

TIMEOUT_S: Final = 3600.0
"""For the machine's start and the installation; an emulated processor needs minutes."""

SCRATCH: Final = ".installing-"
"""Beginning of the name of a build's own folder in the store."""

ARCHIVE: Final = "/workspace/programs.tar"
KEPT_BYTES: Final = 4096
"""Of what the installation says, the end."""

SCRIPT: Final = (
    f"umask 022; mkdir {PROGRAMS} && cd {PROGRAMS} && ({{command}}) && "
    f"exec tar -C / -cf {ARCHIVE} {PROGRAMS.strip('/')}"
)


async def make(paths: Paths, recipe: Recipe, progress: Progress, *, force: bool) -> ImageSet:
    """Return the image of a recipe with `install`, made where it is not there as it would be now.

    Raises AppError `failed` with the last line that the installation said, and what images and
    machines raise.
    """
    folder = store.image_folder(paths.store, recipe.name)
    build.refuse_imported(folder)
    older = None if force else build.older_record(folder)
    if older is not None and older.base_source == build.base_source(recipe):
        return build.refresh_image(paths.store, recipe.name, progress)
    below = build.build_image(paths.store, recipe=RECIPES[recipe.below], progress=progress)
    progress("installing in a machine", 0.3)
    sweep(paths.store)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=paths.store) as scratch:
        archive = Path(scratch) / "programs.tar"
        await _install(paths, recipe, archive)
        return added.add(paths.store, recipe, below, archive, progress)


def sweep(folder: Path) -> None:
    """Remove what builds left that were killed: older than any that can still run."""
    for stale in folder.glob(f"{SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # its build may just have ended
            if time.time() - stale.stat().st_mtime > 2 * TIMEOUT_S:
                shutil.rmtree(stale, ignore_errors=True)  # another build may do the same


async def _install(paths: Paths, recipe: Recipe, archive: Path) -> None:
    argv = ("sh", "-c", SCRIPT.format(command=recipe.command))
    request = SandboxRequest(
        Program(argv, root=True),
        SandboxSpec(argv, image=recipe.below),
        timeout_s=TIMEOUT_S,
        copy_out=(CopyPair(ARCHIVE.encode(), archive),),
    )
    said = bytearray()

    async def hear(data: bytes) -> None:
        said.extend(data)
        del said[:-KEPT_BYTES]

    report = await run_sandbox(paths, request, lambda _: Streams(hear, hear))
    if report.exit_code != 0:
        raise AppError("failed", _reason(recipe, report, bytes(said)), _hint(recipe, report))
    for failed in report.copies_failed:
        raise AppError(failed.code, failed.message, failed.hint)


def _reason(recipe: Recipe, report: SandboxReport, said: bytes) -> str:
    lines = said.decode("utf-8", "replace").split("\n")
    words = [printable(line).strip() for line in lines]
    last = next((line for line in reversed(words) if line), "it said nothing")
    how = "ran out of time" if report.timed_out else f"ended with status {report.status}"
    return f"Installing {recipe.name} {how}: {last[:200]}"


def _hint(recipe: Recipe, report: SandboxReport) -> str:
    refused = ", ".join(sorted({one.host for one in report.refused}))
    if refused:
        return f"It was refused: {refused}. Allow a host: cloche egress allow HOST --always"
    return f"Look: cloche sandbox --root --image {recipe.below} -- sh -c '...'"
